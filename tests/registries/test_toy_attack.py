"""An attack in one file outside the package: every menu has it, every law holds, and no other file is touched."""

import inspect
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

import idc_core as idc
from idc_core.figures.palette import _SUITE_STYLES, suite_style
from idc_core.perturbation import ATTACKS
from idc_core.suites import SUITES
from studio.adversarial import attack_controls, attack_runs
from studio.jobs import suite_catalog
from tests.perturbation import test_attacks
from tests.perturbation.conftest import COUNT
from tests.suites import test_suites

NAME = "toy-attack"


@pytest.fixture(scope="module", autouse=True)
def toy():
    runpy.run_path(str(Path(__file__).parent / "toys" / "attack.py"))
    yield ATTACKS[NAME]
    del ATTACKS[NAME]
    assert NAME not in SUITES


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))


@pytest.fixture(scope="module")
def lenet():
    return idc.load_model("lenet5-digits")


@pytest.fixture(scope="module")
def digits():
    return idc.load_dataset("digits", limit=COUNT)


def test_it_is_wherever_attacks_are(toy, digits):
    assert attack_controls._menu()[NAME] == "Toy attack"
    assert [one.attack for one in attack_runs._all_plans(attack_controls.Plan("fgsm", ()))] == list(ATTACKS)
    assert SUITES[NAME].family == "attack"
    assert SUITES[NAME].parameters == toy.parameters
    view = SimpleNamespace(test=digits, correct=digits.targets)
    assert [one.label for one in suite_catalog._perturbations(view) if one.name == NAME] == ["Toy attack"]


def test_it_is_drawn_as_no_other_kind_is():
    style = suite_style(NAME)
    assert style.marker not in {one.marker for one in _SUITE_STYLES.values()}
    assert style.dash not in {one.dash for one in _SUITE_STYLES.values()}


@pytest.mark.parametrize("law", test_attacks.LAWS, ids=lambda law: law.__name__)
def test_it_obeys_the_laws_of_attacks(law, lenet, digits):
    fixtures = {"lenet": lenet, "digits": digits}
    law(NAME, **{name: fixtures[name] for name in inspect.signature(law).parameters if name != "name"})


@pytest.mark.parametrize("law", test_suites.LAWS, ids=lambda law: law.__name__)
def test_it_obeys_the_laws_of_suites(law, lenet, digits):
    law(NAME, lenet, digits)
