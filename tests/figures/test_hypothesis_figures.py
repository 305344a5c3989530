"""Figures of the Hypotheses page: what is drawn is what was measured, and what does not pass stays empty."""

import numpy as np
import pytest

from idc_core.figures import hypotheses as figures

SCORES = np.array([[0.9, -0.4, 0.05], [np.nan, 0.2, -0.1]])
PASSES = np.array([[True, True, False], [False, True, True]])


def drawn(dark=False, **changes):
    settings = {"keys": ([4, 7], [31, 2, 0]), "signed": True, "passes": PASSES} | changes
    return figures.score_map(SCORES, ["a rule", "a word"], [31, 2, 0], "title", "Pearson", dark=dark, **settings)


@pytest.mark.parametrize("dark", [False, True])
def test_map_is_empty_where_nothing_passes_and_marks_negative_scores(dark):
    figure = drawn(dark)
    squares, marks, minus = figure.data
    np.testing.assert_allclose(squares.z, [[0.9, -0.4, np.nan], [np.nan, 0.2, -0.1]], rtol=1e-6)
    assert (squares.zmin, squares.zmax) == pytest.approx((-0.9, 0.9))
    assert list(zip(minus.y, minus.x, minus.text, strict=True)) == [(0, 1, "\u2212")]
    assert [tuple(one) for one in marks.customdata] == [(4, 31), (4, 2), (4, 0), (7, 31), (7, 2), (7, 0)]
    assert "not significant" in marks.text[2]
    assert "not significant" not in marks.text[0]


def test_map_frames_what_is_selected_and_starts_at_zero_without_signs():
    assert not drawn().layout.shapes
    framed = drawn(selected=(1, 0)).layout.shapes
    assert (framed[0].y0, framed[0].y1) == (0.5, 1.5)
    assert (framed[1].x0, framed[1].x1) == (-0.5, 0.5)
    assert drawn(signed=False).data[0].zmin == 0


def test_map_of_nothing_that_passes_is_empty():
    assert np.isnan(np.array(drawn(passes=np.zeros_like(PASSES)).data[0].z)).all()


def test_ranked_scores_have_their_intervals_and_open_marks_where_they_do_not_pass():
    figure = figures.ranked_scores(
        ["neuron 3", "neuron 1"],
        [3, 1],
        np.array([0.8, -0.5]),
        np.array([0.7, -0.6]),
        np.array([0.95, -0.4]),
        np.array([True, False]),
        "title",
        "Pearson",
        chosen=1,
    )
    (marks,) = figure.data
    np.testing.assert_allclose(marks.error_x.array, [0.15, 0.1])
    np.testing.assert_allclose(marks.error_x.arrayminus, [0.1, 0.1])
    assert marks.marker.symbol == ("circle", "circle-open")
    assert marks.marker.size == (10, 15)
    assert marks.customdata == (3, 1)


def test_string_trace_draws_unit_and_hypothesis_at_every_symbol():
    figure = figures.string_trace("a b", np.array([0.1, -0.2, 3]), np.array([0, 1, 0]), "title", "neuron 3", "is space")
    line, bars = figure.data
    assert line.y == (0.1, -0.2, 3)
    assert bars.y == (0, 1, 0)
    assert bars.marker.pattern.fillmode == "overlay", "else only the hatching would be drawn, on the ground's colour"
    assert figure.layout.xaxis.ticktext == ("a", "␣", "b")


def test_by_truth_draws_each_group_as_shares_of_its_own():
    figure = figures.by_truth(np.array([1.0, 1, 2]), np.array([0.0]), "title", "neuron 3", "a hole")
    assert [sum(bar.y) for bar in figure.data] == [pytest.approx(100), pytest.approx(100)]
    assert figure.data[0].name == "a hole (n = 3)"
    assert figures.by_truth(np.ones(3), np.ones(0), "title", "neuron 3", "a hole").data[1].name == "others (n = 0)"


def test_important_units_are_marked_by_shape_and_every_unit_is_drawn_once():
    figure = figures.importance_against(
        np.array([3.0, 1, 2]), np.array([0.9, 0.1, 0.2]), np.array([0]), ["a", "b", "c"], "title", "Pearson"
    )
    others, important = figure.data
    assert sorted([*others.customdata, *important.customdata]) == [0, 1, 2]
    assert important.customdata == (0,)
    assert others.marker.symbol != important.marker.symbol
