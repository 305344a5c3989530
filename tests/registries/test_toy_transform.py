"""A transform in one file outside the package: every menu has it, every law holds, and no other file is touched."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import idc_core as idc
from idc_core.figures.palette import _SUITE_STYLES, suite_style
from idc_core.perturbation import TRANSFORMS
from idc_core.suites import SUITES
from studio.jobs import suite_catalog
from tests.perturbation import test_transforms
from tests.suites import test_suites

NAME = "toy-transform"


@pytest.fixture(scope="module", autouse=True)
def toy():
    runpy.run_path(str(Path(__file__).parent / "toys" / "transform.py"))
    yield TRANSFORMS[NAME]
    del TRANSFORMS[NAME]
    assert NAME not in SUITES


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))


@pytest.fixture(scope="module")
def lenet():
    return idc.load_model("lenet5-digits")


@pytest.fixture(scope="module")
def digits():
    return idc.load_dataset("digits", limit=24)


@pytest.fixture
def pictures():
    return np.random.default_rng(1).random((7, 2, 9, 12)).astype(np.float32)


def test_it_is_wherever_transforms_are(toy, digits):
    assert SUITES[NAME].family == "transform"
    assert SUITES[NAME].parameters == toy.parameters
    view = SimpleNamespace(test=digits, correct=digits.targets)
    assert [one.label for one in suite_catalog._perturbations(view) if one.name == NAME] == ["Toy transform"]


def test_it_is_drawn_as_no_other_kind_is():
    style = suite_style(NAME)
    assert style.marker not in {one.marker for one in _SUITE_STYLES.values()}
    assert style.dash not in {one.dash for one in _SUITE_STYLES.values()}


@pytest.mark.parametrize("law", test_transforms.LAWS, ids=lambda law: law.__name__)
def test_it_obeys_the_laws_of_transforms(law, pictures):
    law(NAME, pictures)


@pytest.mark.parametrize("law", test_suites.LAWS, ids=lambda law: law.__name__)
def test_it_obeys_the_laws_of_suites(law, lenet, digits):
    law(NAME, lenet, digits)
