"""What the Coverage page offers to take away: its table, the inputs of a cell, and the smallest set of tests."""

import io
import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from idc_core.coverage.reach import CellState
from idc_core.figures.coverage import coverage_grid
from idc_core.figures.grid import lay_out
from studio.jobs.overview import summarise
from studio.text import cell_name
from studio.widgets import grid_axes

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
    assert re.fullmatch(r"idc-grid_lenet5-digits_digits_fc2_m6_\d{4}-\d\d-\d\d\.csv", name)
    assert content.decode().startswith("cell,state,tests,misclassified,class_0")
    whole = pd.read_csv(io.BytesIO(content), dtype={"cell": str})
    table, others = whole[whole["state"] == CellState.COVERED], whole[whole["state"] != CellState.COVERED]
    reach = summarise(view).reach()
    assert others["cell"].tolist() == [cell_name(cell) for cell in reach.cells]
    assert others["state"].tolist() == reach.states
    assert table["cell"].tolist() == [cell_name(cell) for cell in view.table.cells]
    assert table["tests"].tolist() == view.table.counts.tolist()
    assert table["misclassified"].tolist() == view.table.wrong.tolist()
    assert table["tests"].sum() == len(view.chosen)
    assert len(table) == view.table.covered


def test_the_frame_of_the_selected_cell_is_on_its_tile_and_in_the_picture(visitor, view, fullest):
    grid = lay_out(view.table, [str(neuron) for neuron in view.analysis.important])
    option = coverage_grid(grid, view.table, "covered", grid_axes.finding(view, grid), reach=summarise(view).reach())
    cell = cell_name(view.table.cells[fullest])
    row, column = (option[axis][0]["data"].index(part) for axis, part in (("yAxis", cell[:5]), ("xAxis", cell[6:])))
    picture = ElementTree.fromstring(visitor.save("SVG")[1])
    tiles, wide = len(option["xAxis"][0]["data"]), float(picture.get("width"))
    frame = picture[-1]
    assert frame.tag.endswith("rect")
    assert frame.get("fill") == "none"
    left, top, width, height = (float(frame.get(name)) for name in ("x", "y", "width", "height"))
    inner = option["grid"]
    high = float(picture.get("height")) - inner["top"] - inner["bottom"]
    assert width == pytest.approx((wide - inner["left"] - inner["right"]) / tiles, abs=0.5)
    assert left == pytest.approx(inner["left"] + column * width, abs=1)
    assert height == pytest.approx(high / len(option["yAxis"][0]["data"]), abs=0.5)
    assert top == pytest.approx(inner["top"] + row * height, abs=1)


def test_pictures_of_every_kind_of_chart_say_in_themselves_what_they_are_of(visit):
    with visit() as visitor:
        for address in ("coverage", "coverage?tab=growth"):  # drawn by ECharts, by plotly
            visitor.open(address)
            name, png = visitor.save("PNG")
            picture = Image.open(io.BytesIO(png))
            picture.load()  # checks the sums of its parts
            said = picture.info["Description"]
            svg = ElementTree.fromstring(visitor.save("SVG")[1])
            title, origin = (svg.find(f"{{http://www.w3.org/2000/svg}}{tag}").text for tag in ("title", "desc"))
            assert said == f"{title} · {origin}"
            assert title
            assert re.fullmatch(r"LeNet-5 · digits · layer fc2 · m = 6 · 540 tests · \d{4}-\d\d-\d\d", origin)
            assert name.endswith(f"_{origin[-10:]}.png")
            assert min(picture.size) > 500


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
