"""The registry of criteria."""

import numpy as np
import pytest

from idc_core.base.parameters import Parameter
from idc_core.base.registry import Registry
from idc_core.coverage import CRITERIA, registry
from idc_core.coverage.profiles import Profiles
from idc_core.coverage.registry import Criterion, criterion
from idc_core.errors import SettingError


class Toy(Criterion):
    def __init__(self, model, layer, m=6, rule="epsilon"):
        self.seen = 0

    def fit(self, inputs):
        return self

    def update(self, inputs):
        self.seen += len(inputs)
        return self

    def profile(self, inputs):
        return Profiles.of_mask(np.ones((len(inputs), 1), bool))

    def merge(self, other):
        self.seen += other.seen
        return self

    @property
    def score(self):
        return min(self.seen / 10, 1.0)


@pytest.fixture
def registered():
    yield criterion("toy", label="Toy", help="Counts to ten.", citation="none")(Toy)
    del CRITERIA["toy"]


def test_a_registered_criterion_is_found_with_its_card(registered):
    assert CRITERIA["toy"] is registered is Toy
    card = registered.card
    assert (card.name, card.label, card.help, card.citation) == ("toy", "Toy", "Counts to ten.", "none")
    assert card.defaults == {"m": 6, "rule": "epsilon"}


def test_a_card_cannot_be_changed(registered):
    with pytest.raises(TypeError):
        registered.card.defaults["m"] = 7


def test_an_unknown_name_is_answered_with_the_known_ones(registered):
    with pytest.raises(SettingError, match=r"Unknown coverage criterion 'toi': expected one of .*toy"):
        CRITERIA["toi"]
    assert "toi" not in CRITERIA


def test_a_taken_name_is_refused(registered):
    with pytest.raises(SettingError, match="taken by Toy"):
        criterion("toy", label="", help="", citation="")(Toy)


@pytest.mark.parametrize("parameter", [Parameter("m", "m", "", 7), Parameter("k", "k", "", 1)])
def test_parameters_on_the_card_are_those_of_the_constructor(parameter):
    with pytest.raises(SettingError, match=f"gives {parameter.name} the default {parameter.default}"):
        criterion("toy", label="", help="", citation="", parameters=(parameter,))(Toy)
    assert "toy" not in CRITERIA


@pytest.mark.parametrize("name", ["Toy", "", "to y"])
def test_a_name_is_short_and_lower_case(name):
    with pytest.raises(SettingError, match="lower-case"):
        criterion(name, label="", help="", citation="")


def test_every_criterion_says_what_it_is():
    for name, cls in CRITERIA.items():
        card = cls.card
        assert card.name == name == name.lower()
        assert card.label
        assert card.citation
        assert card.help.endswith(".")
        assert "\n" not in card.help


def test_menus_list_criteria_in_one_order_whichever_is_imported_first(monkeypatch):
    declared = list(CRITERIA)
    assert declared == list(registry._ORDER)
    monkeypatch.setattr(registry, "CRITERIA", Registry("coverage criterion"))
    for name in ("toy", *reversed(declared), "other"):
        criterion(name, label="", help="", citation="")(type(name, (Toy,), {}))
    assert list(registry.CRITERIA) == [*declared, "toy", "other"]
