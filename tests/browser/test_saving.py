"""What the Coverage page offers to take away: its table, the inputs of a cell, and the smallest set of tests."""

import io

import numpy as np
import pandas as pd
import pytest

from studio.text import cell_name

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def fullest(view):
    """Row of the cell with the most tests."""
    return int(view.table.counts.argmax())


@pytest.fixture(scope="module")
def visitor(visit, view, fullest):
    """One visit to the page with a cell opened; nothing is changed on it."""
    with visit() as visitor:
        visitor.open(f"coverage?cell={cell_name(view.table.cells[fullest])}")
        yield visitor


def test_the_table_reads_again_with_its_numbers(visitor, view):
    name, content = visitor.save("CSV")
    assert name == "idc-grid.csv"
    assert content.decode().startswith("cell,tests,misclassified,class_0")
    table = pd.read_csv(io.BytesIO(content), dtype={"cell": str})
    assert table["cell"].tolist() == [cell_name(cell) for cell in view.table.cells]
    assert table["tests"].tolist() == view.table.counts.tolist()
    assert table["misclassified"].tolist() == view.table.wrong.tolist()
    assert table["tests"].sum() == len(view.chosen)
    assert len(table) == view.table.covered


def test_inputs_of_a_cell_can_be_taken_away(visitor, view, fullest):
    content = np.load(io.BytesIO(visitor.download(f"these {view.table.counts[fullest]} tests")), allow_pickle=False)
    positions = np.flatnonzero((view.analysis.assignments == view.table.cells[fullest]).all(axis=1))
    assert content["ids"].tolist() == view.test.ids[positions].tolist()
    assert (content["inputs"] == view.test.inputs[positions]).all()


def test_the_smallest_set_of_tests_covers_as_much(visitor, view):
    visitor.open("coverage?tab=smallest")
    tests = np.load(io.BytesIO(visitor.download(f"These {view.table.covered} tests (npz)")), allow_pickle=False)
    listed = pd.read_csv(io.BytesIO(visitor.download("numbers (CSV)")), dtype={"cell": str})
    assert listed["test"].tolist() == tests["ids"].tolist()
    positions = [view.test.ids.tolist().index(number) for number in tests["ids"]]
    assert (tests["inputs"] == view.test.inputs[positions]).all()
    reached = np.unique(view.analysis.codes[positions])
    assert len(reached) == len(positions) == view.table.covered
    assert listed["cell"].tolist() == [cell_name(view.analysis.assignments[place]) for place in positions]
