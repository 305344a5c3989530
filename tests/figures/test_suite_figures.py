import json

import numpy as np
import pytest

from idc_core.figures.palette import suite_style
from idc_core.figures.suites import DrawnSuite, cumulative_gains, gains, shared_cells

SUITES = [
    DrawnSuite("Original tests", "original"),
    DrawnSuite("Random noise", "noise"),
    DrawnSuite("Rotation", "rotation"),
]
SCORES = np.array([[0.5, 0.6, 0.5], [0.1, 0.1, 0.2]])
ADDED = np.array([[0, 10, 0], [0, 0, 1]])


def marks(figure):
    return [trace for trace in figure.data if trace.mode == "markers+text"]


@pytest.mark.parametrize("dark", [False, True])
def test_gains_lead_from_the_original_to_each_suite(dark):
    figure = gains(SUITES, (6, 8), SCORES, ADDED, "It adds", dark=dark)
    found = marks(figure)
    assert [mark.x[0] for mark in found] == pytest.approx((100 * SCORES).ravel())
    assert [mark.text[0].strip() for mark in found] == ["50.0 %", "+10 cells", "none", "10.0 %", "none", "+1 cell"]
    lines = [trace for trace in figure.data if trace.mode == "lines"]
    assert [tuple(line.x) for line in lines] == [
        pytest.approx((100 * row[0], 100 * value)) for row in SCORES for value in row
    ]
    assert [tuple(mark.customdata[0]) for mark in found] == [(number, m) for m in (6, 8) for number in range(3)]
    style = suite_style("noise")
    assert (found[1].marker.color, found[1].marker.symbol) == (style.colour(dark), style.marker)
    assert lines[1].line.dash == style.dash
    for mark, axis in zip(found, ["xaxis"] * 3 + ["xaxis2"] * 3, strict=True):
        low, high = figure.layout[axis].range
        assert low < mark.x[0] < high
    assert [shape.x0 for shape in figure.layout.shapes] == [50, 10], "the original's IDC in each panel"
    assert [note.text for note in figure.layout.annotations][:2] == ["m = 6", "m = 8"]


def test_small_shares_are_written_without_powers_and_prefixes():
    figure = gains(SUITES[:2], (12,), np.array([[7.7e-8, 9e-8]]), np.array([[0, 1]]), "It adds")
    assert marks(figure)[0].text[0].strip() == "0.0000077 %"
    assert figure.layout.xaxis.exponentformat == "none"


def test_parts_of_the_first_suite_are_written_with_what_they_reach():
    part = DrawnSuite("Misclassified tests", "own", within=True)
    figure = gains([SUITES[0], part], (6,), np.array([[0.5, 0.125]]), np.zeros((1, 2), int), "They reach less")
    assert [mark.text[0].strip() for mark in marks(figure)] == ["50.0 %", "12.5 %"]


def test_gains_of_suites_that_are_alike_can_be_drawn():
    figure = gains(SUITES[:2], (6,), np.full((1, 2), 0.25), np.zeros((1, 2), int), "None adds")
    low, high = figure.layout.xaxis.range
    assert low < 25 < high


def test_shared_cells_are_written_into_the_squares():
    counts = np.array([[5, 4, 0], [4, 9, 2], [0, 2, 3]])
    figure = shared_cells(SUITES, counts, "They share")
    heat, written = figure.data
    np.testing.assert_array_equal(heat.z, counts)
    assert list(written.text) == list("540492023")
    assert heat.customdata[0][2] == "Original tests and Rotation"
    assert json.loads(figure.to_json())["layout"]["yaxis"]["ticktext"][1] == "Random noise"
    assert shared_cells(SUITES[:1], np.array([[4]]), "One").data[0].zmax == 4, (
        "few and many stand out from nothing, not from each other"
    )


def test_shared_cells_take_no_more_room_than_a_table():
    figure = shared_cells(SUITES, np.eye(3, dtype=np.int64), "They share")
    squares = figure.layout.height - figure.layout.margin.t - figure.layout.margin.b
    assert 3 * 30 <= squares <= 3 * 40
    assert figure.layout.margin.b <= 40, "one line of names, and nothing below it"


def test_axis_of_a_few_cells_names_each_number_once():
    figure = cumulative_gains(SUITES, [("given", [0, 1, 2], np.array([50, 1, 0]))], "In turn")
    assert figure.layout.xaxis.dtick == 1
    many = cumulative_gains(SUITES, [("given", [0, 1, 2], np.array([50, 40, 0]))], "In turn")
    assert many.layout.xaxis.dtick is None


def test_each_bar_begins_where_those_before_it_end():
    orders = [("given", [0, 1, 2], np.array([50, 4, 3])), ("best", [0, 2, 1], np.array([50, 6, 0]))]
    figure = cumulative_gains(SUITES, orders, "In turn")
    first, second = figure.data
    assert list(first.base) == [0, 4]
    assert list(first.x) == [4, 3]
    assert list(second.text) == ["+6", "none"]
    assert figure.layout.yaxis2.ticktext == ("Rotation", "Random noise")
    assert figure.layout.xaxis.matches == "x2" or figure.layout.xaxis.range == figure.layout.xaxis2.range
    assert figure.layout.xaxis.range[1] > 7


def test_marks_without_an_inside_are_drawn_by_their_outline():
    marker = DrawnSuite("Mine", "own").marker(dark=False)
    assert marker["line"] == {"width": 3, "color": suite_style("own").light}
    assert DrawnSuite("FGSM", "fgsm").marker(dark=False)["line"] == {"width": 0}
