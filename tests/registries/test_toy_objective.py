"""An objective in one file outside the package is in the menu, the command line's choices and under the laws."""

import runpy
from pathlib import Path

import pytest

from idc_core.cli import main
from idc_core.generation import OBJECTIVES
from studio.differential.search_controls import _objective_menu
from tests.generation import test_search as laws

FILE = Path(__file__).parent / "toys" / "objective.py"


@pytest.fixture(autouse=True)
def registered():
    before = dict(OBJECTIVES)
    runpy.run_path(str(FILE))
    yield
    for name in set(OBJECTIVES) - set(before):
        del OBJECTIVES[name]


def test_it_is_in_the_registry_and_in_the_menu():
    assert OBJECTIVES["probability"].help
    assert _objective_menu()["probability"] == "Probability"


def test_the_command_line_offers_it(capsys):
    with pytest.raises(SystemExit):
        main(["differential", "--help"])
    assert "probability" in capsys.readouterr().out
    few = ["--models", "lenet5-digits", "lenet5-digits:2", "--seeds", "4", "--iterations", "3", "--lambda2", "0"]
    assert main(["differential", *few, "--objective", "probability"]) == 0


def test_it_obeys_the_laws():
    models = [laws.network(variant) for variant in (0, 1, 2)]
    laws.test_every_objective_leads_to_disagreements("probability", models, laws.agreeing_seeds(models))
