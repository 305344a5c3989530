"""A constraint in one file outside the package is in the menu, the command line's choices and under the laws."""

import runpy
from pathlib import Path

import pytest

from idc_core.cli import main
from idc_core.datasets import load_dataset
from idc_core.generation import CONSTRAINTS, differential_search, rounded
from idc_core.models import load_model
from studio.differential.search_controls import _constraint_menu
from tests.generation import test_constraints as laws

FILE = Path(__file__).parent / "toys" / "constraint.py"


@pytest.fixture(autouse=True)
def registered():
    before = dict(CONSTRAINTS)
    runpy.run_path(str(FILE))
    yield
    for name in set(CONSTRAINTS) - set(before):
        del CONSTRAINTS[name]


def test_it_is_in_the_registry_and_in_the_menu():
    assert CONSTRAINTS["negative"].card.parameters[0].name == "most"
    assert _constraint_menu()["negative"] == "Negative"


def test_the_command_line_offers_it(capsys):
    with pytest.raises(SystemExit):
        main(["differential", "--help"])
    assert "negative" in capsys.readouterr().out
    few = ["--models", "lenet5-digits", "lenet5-digits:2", "--seeds", "4", "--iterations", "3", "--lambda2", "0"]
    assert main(["differential", *few, "--constraint", "negative", "--set", "most=0.5"]) == 0
    assert main(["differential", *few, "--constraint", "negative", "--set", "most=2"]) == 2
    assert "most of Negative must be a number from 0.1 to 1.0" in capsys.readouterr().err


def test_it_obeys_the_laws():
    laws.test_pictures_have_eight_bits_and_change("negative")
    laws.test_parameters_have_the_constraints_own_defaults_and_every_end_of_their_range_is_taken("negative")


def test_a_search_runs_with_it():
    model = load_model("lenet5-digits")
    seeds = load_dataset("digits", "test").inputs[:12]
    found = differential_search([model, rounded(model, 2)], seeds, "negative", iterations=10)
    assert len(found) > 0
