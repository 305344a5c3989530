"""A criterion from one file outside the package: menu, command line, searches, experiments and laws find it there."""

import importlib.util
from pathlib import Path

import pytest

from idc_core import CRITERIA
from idc_core.cli import main
from idc_core.coverage.streamed import measure
from idc_core.experiments.criterion_scores import other_criteria
from idc_core.generation import guides
from studio.criteria import criterion_controls
from tests.coverage.criteria_laws import CriterionLaws, CriterionRefusals
from tests.coverage.one_pass import FITTED, LAYERS, NETWORK, TESTS, TRAIN

FILE = Path(__file__).parent / "toys" / "criterion.py"


@pytest.fixture(autouse=True, scope="module")
def toy():
    spec = importlib.util.spec_from_file_location("toy_criterion", FILE)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    yield CRITERIA["toy"]
    del CRITERIA["toy"]
    FITTED.pop("toy", None)


def test_the_page_offers_it_with_its_parameter(toy):
    (shared,) = [parameter for names, parameter in criterion_controls._shared_parameters() if "toy" in names]
    assert "toy" in criterion_controls._offered()
    assert shared == toy.card.parameters[0]


def test_the_command_line_names_it_among_the_criteria_that_guide_a_search(capsys):
    models = ["lenet1-digits", "lenet4-digits"]
    assert main(["differential", "--models", *models, "--seeds", "1", "--guide", "none-such"]) != 0
    assert "toy" in capsys.readouterr().err


def test_searches_and_experiments_take_it():
    assert "toy" in guides()
    assert "toy" in other_criteria()


def test_it_shares_a_pass_with_the_others(toy):
    alone = toy(NETWORK, LAYERS).update(TESTS).score
    assert 0 < alone < 1
    assert measure([toy(NETWORK, LAYERS), CRITERIA["kmnc"](NETWORK, LAYERS)], TRAIN, TESTS)[0] == alone


@pytest.mark.parametrize("name", ["toy"])
class TestToyLaws(CriterionLaws):
    """Monotone, independent of order and of batches; merged parts are the whole."""


@pytest.mark.parametrize("name", ["toy"])
class TestToyRefusals(CriterionRefusals):
    """Mistakes are refused as by every criterion."""
