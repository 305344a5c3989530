"""A rule in one file outside the package: menus, page and command line have it, and relevance is conserved."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from idc_core import IDC, RelevanceSettings, relevance
from idc_core.attribution.methods import METHODS, attribute
from idc_core.cli import main
from idc_core.errors import SettingError
from idc_core.lrp.rules import RULES
from tests.lrp import test_conservation as laws
from tests.lrp.cases import CASES
from tests.pages.conftest import front_door, open_page_fixture  # noqa: F401

NAME = "toy-mix"


@pytest.fixture(scope="module", autouse=True)
def toy():
    runpy.run_path(str(Path(__file__).parent / "toys" / "rule.py"))
    yield RULES[NAME]
    del RULES[NAME]
    assert NAME not in METHODS


def test_it_is_a_method_with_its_parameter():
    assert NAME in METHODS
    assert list(METHODS).index(NAME) < list(METHODS).index("deeplift"), "rules come before other methods"
    assert [parameter.name for parameter in METHODS[NAME].parameters] == ["evenness", "bias"]
    assert RelevanceSettings(NAME, evenness=1).as_dict() == {"rule": NAME, "evenness": 1.0, "bias": "absorb"}
    assert dict(RelevanceSettings(NAME).values) == {"evenness": 0.5}
    with pytest.raises(SettingError, match=r"evenness of a relevance rule must be a number from 0.0 to 1.0, not 2"):
        RelevanceSettings(NAME, evenness=2)


# The rules that are built in conserve it in all of these networks at every run.
@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.rare if place % 4 else ()) for place, name in enumerate(CASES)]
)
def test_it_conserves_relevance(name):
    case = CASES[name]
    laws.check(case.network(), case.inputs, case.layers, bias="redistribute", rule=NAME, evenness=0.25)


def test_its_parameter_reaches_every_entrance():
    case = CASES["convolutional block"]
    network, layer = case.network(), case.layers[0]
    plain = relevance(network, case.inputs, [layer], "z")[layer]
    np.testing.assert_array_equal(relevance(network, case.inputs, [layer], NAME, evenness=0)[layer], plain)
    mixed = relevance(network, case.inputs, [layer], NAME, evenness=0.75)[layer]
    assert not np.allclose(mixed, plain)
    np.testing.assert_array_equal(attribute(network, case.inputs, NAME, layer, evenness=0.75), mixed)
    settings = RelevanceSettings(NAME, evenness=0.75)
    np.testing.assert_array_equal(relevance(network, case.inputs, [layer], settings)[layer], mixed)
    assert IDC(network, layer, 2, NAME, evenness=0.75).settings == IDC(network, layer, 2, settings).settings == settings


def test_the_page_offers_it(open_page):
    app = open_page("relevance", method="Toy mix")
    assert not app.exception
    assert app.selectbox(key="method").value == NAME
    assert app.number_input(key="evenness").value == 0.5
    assert not app.number_input(key="evenness").set_value(1.0).run().exception


def test_the_command_line_takes_it(capsys):
    few = ["analyze", "--limit-train", "60", "--limit-test", "20"]
    assert main([*few, "--rule", NAME]) == 0
    assert main([*few, "--rule", "nothing"]) == 2
    assert NAME in capsys.readouterr().err
