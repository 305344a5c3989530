"""Every criterion of the registry keeps the laws, and refuses settings outside its definition."""

import pytest

from idc_core import CRITERIA
from idc_core.errors import IdcError
from tests.coverage.criteria_laws import CriterionLaws, CriterionRefusals
from tests.coverage.one_pass import NAMES, TRAIN, make


@pytest.mark.parametrize("name", NAMES)
class TestLaws(CriterionLaws):
    """Each law for each criterion."""


@pytest.mark.parametrize("name", NAMES)
class TestRefusals(CriterionRefusals):
    """Each refusal for each criterion."""


IMPOSSIBLE = {
    "nc": [{"threshold": float("nan")}, {"scale": "all"}],
    "kmnc": [{"k": 0}, {"k": 1.5}, {"k": True}],
    "nbc": [{"margin": -1}, {"margin": float("inf")}],
    "snac": [{"margin": -1}],
    "tknc": [{"k": 0}],
    "tknp": [{"k": 2.0}],
    "nlc": [{"divide": "all"}],
    "cc": [{"threshold": -1}, {"threshold": float("nan")}],
    "lsc": [{"buckets": 0}, {"upper": 0.0}, {"drop": "no"}, {"variance": 1e9}],
    "dsc": [{"second": "third"}],
    "mdsc": [{"lower": 100.0}, {"buckets": True}],
}


@pytest.mark.parametrize(("name", "options"), [(name, each) for name in IMPOSSIBLE for each in IMPOSSIBLE[name]])
def test_settings_outside_the_definition(name, options):
    with pytest.raises(IdcError):
        make(name, **options).fit(TRAIN)


def test_every_criterion_but_idc_is_tested_here():
    assert {"idc", *NAMES} == set(CRITERIA)
    assert set(NAMES) == set(IMPOSSIBLE)


def test_defaults_are_those_of_the_papers():
    defaults = {name: CRITERIA[name].card.defaults for name in NAMES}
    assert defaults["nc"]["threshold"] == 0.75
    assert (defaults["kmnc"]["k"], defaults["tknc"]["k"]) == (1000, 3)
    buckets = [(defaults[name]["upper"], defaults[name]["buckets"]) for name in ("lsc", "dsc")]
    assert buckets == [(2000, 1000), (2, 1000)]
