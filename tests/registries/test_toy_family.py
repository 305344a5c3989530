"""A family of hypotheses and a measure, in one file each outside the package: every menu has them."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from idc_core.cli import main
from idc_core.datasets import load_dataset
from idc_core.inspection import FAMILIES, MEASURES, inspect, library
from idc_core.inspection.measures import PAIR_MEASURES
from studio.hypotheses import controls, inspections

TOYS = Path(__file__).parent / "toys"
FAMILY, MEASURE = "toy-family", "toy-measure"


@pytest.fixture(scope="module", autouse=True)
def toys():
    for name in ("family.py", "measure.py"):
        runpy.run_path(str(TOYS / name))
    yield
    del FAMILIES[FAMILY], PAIR_MEASURES[MEASURE]
    assert MEASURE not in MEASURES


@pytest.fixture(scope="module")
def digits():
    return load_dataset("digits", limit=200)


def test_they_are_in_the_menus_of_the_page(digits):
    view = SimpleNamespace(test=digits)
    assert inspections.family_menu(view)[FAMILY] == "Toy family (1)"
    assert controls._measure_menu()[MEASURE] == "Toy measure"
    settings = inspections.InspectionSettings((FAMILY,), (), (MEASURE,), ("fc2",), None, None)
    assert [one.name for one in inspections.chosen_hypotheses(view, settings)] == ["even number"]


def test_they_score(digits):
    (even,) = library(digits, [FAMILY])
    assert even.family == FAMILY
    found = inspect("lenet5-digits", digits, [even], ["pearson", MEASURE], ["fc2"])
    signed, absolute = (found.matrix(name, "lenet5-digits", "fc2")[1] for name in ("pearson", MEASURE))
    assert np.isfinite(signed).any()
    np.testing.assert_array_equal(absolute, np.abs(signed))


def test_the_command_line_takes_and_lists_them(capsys):
    arguments = ["inspect", "lenet5-digits", "--limit", "100", "--families"]
    assert main([*arguments, FAMILY, "--measures", MEASURE, "--most", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("even number")
    assert main([*arguments, "nothing"]) == 2
    assert FAMILY in capsys.readouterr().err
    assert main([*arguments, FAMILY, "--measures", "nothing"]) == 2
    assert MEASURE in capsys.readouterr().err
