"""Figures of the Class errors page: what is drawn, what can be clicked, what is marked, and how large they get."""

import numpy as np
import pytest

from idc_core.confusion import cost_effectiveness
from idc_core.confusion.distance import cluster_order
from idc_core.figures import classes as figures
from idc_core.figures import confusion_matrix as matrices
from idc_core.figures.palette import at, contrast, palette


def distances(count, seed=0):
    values = np.triu(np.random.default_rng(seed).random((count, count)) + 0.1, 1)
    return values + values.T


@pytest.mark.parametrize("dark", [False, True])
def test_every_pair_of_few_classes_can_be_clicked(dark):
    distance = distances(9)
    order = cluster_order(distance)
    names = [f"class {i}" for i in range(9)]
    marks = {"hit": np.array([[0, 3]]), "missed": np.zeros((0, 2), np.int64)}
    figure = figures.distance_map(distance, order, names, marks, "A finding", selected=(2, 5), dark=dark)
    heatmap, squares, hit, hit_named, missed, _ = figure.data
    assert heatmap.z.shape == (9, 9)
    for x, y, pair in zip(squares.x, squares.y, squares.customdata, strict=True):
        assert pair == f"{order[y]}-{order[x]}"
        assert heatmap.z[y, x] == pytest.approx(distance[order[y], order[x]], rel=1e-6)
    assert len(squares.x) == 72
    assert squares.text is not None
    nearest, farthest = np.nanmin(heatmap.z), np.nanmax(heatmap.z)
    places = [
        (float(heatmap.z[y, x]) - nearest) / (farthest - nearest) for x, y in zip(squares.x, squares.y, strict=True)
    ]
    scale = list(heatmap.colorscale)
    assert [at(scale, place) for place in (0, 1)] == [palette(dark).counts[-1], palette(dark).ground], "near is strong"
    fills = [at(scale, place) for place in places]
    assert all(contrast(*pair) >= 4.5 for pair in zip(squares.textfont.color, fills, strict=True))
    assert (len(hit.x), len(missed.x)) == (1, 0)
    x, y = hit.x[0], hit.y[0]
    assert {order[round(x - 0.32)], order[round(y + 0.3)]} == {0, 3}
    assert hit_named.showlegend
    assert not hit.showlegend
    assert hit_named.marker.color == palette(dark).ink, "the legend lies on the ground"
    assert len(figure.layout.shapes) == 2
    assert list(figure.layout.xaxis.ticktext) == [names[one] for one in order]


@pytest.mark.parametrize("count", [100, 1000])
def test_many_classes_stay_small(count):
    distance = distances(count)
    order = cluster_order(distance)
    figure = figures.distance_map(distance, order, [str(i) for i in range(count)], {"hit": np.array([[0, 1]])}, "Many")
    assert len(figure.data) == 1
    assert figure.data[0].z.shape == (min(count, 200),) * 2
    assert np.nanmin(figure.data[0].z) == pytest.approx(distance[distance > 0].min(), rel=1e-6)
    assert len(figure.to_json()) < 700_000


def test_third_classes_lean_to_either_side():
    bias = np.array([np.nan, np.nan, 0.4, -0.6, 0, 0.1])
    figure = figures.third_classes(bias, list("abcdef"), ("a", "b"), "A finding", most=2)
    closer, farther = figure.data
    assert closer.name == "closer to a"
    assert (closer.customdata.tolist(), farther.customdata.tolist()) == ([2], [3])
    assert list(figure.layout.yaxis.categoryarray) == ["d", "c"]
    assert farther.marker.pattern.shape == "/"


def test_effectiveness_shows_random_and_best():
    score, truth = distances(8), distances(8, 1)
    curve = cost_effectiveness(score, truth)
    figure = figures.cost_effectiveness({"confused pairs": curve}, "A finding")
    assert [line.name for line in figure.data] == ["random order", "confused pairs", "confused pairs, best possible"]
    np.testing.assert_allclose(figure.data[1].y, 100 * curve.found)
    assert len({line.line.dash for line in figure.data}) == 3


@pytest.mark.parametrize("dark", [False, True])
def test_a_matrix_colours_only_errors_and_every_cell_with_inputs_can_be_clicked(dark):
    counts = np.array([[48, 2, 0], [0, 50, 0], [5, 1, 14]])
    figure = matrices.confusion_matrix(counts, ["a", "b", "c"], "A finding", selected=(2, 0), dark=dark)
    heatmap, wrong, correct, frames = figure.data
    np.testing.assert_allclose(heatmap.z, [[np.nan, 4, np.nan], [np.nan] * 3, [25, 5, np.nan]])
    assert dict(zip(wrong.customdata, wrong.text, strict=True)) == {"0-1": "2", "2-0": "5", "2-1": "1"}
    assert dict(zip(correct.customdata, correct.text, strict=True)) == {"0-0": "48", "1-1": "50", "2-2": "14"}
    assert set(correct.textfont.color) == {palette(dark).ink}, "correct cells have no colour"
    fills = [at(palette(dark).scale, share / 25) for share in (4, 25, 5)]
    assert all(contrast(*pair) >= 4.5 for pair in zip(wrong.textfont.color, fills, strict=True))
    assert wrong.hovertext[1] == "c as a<br>5 (25.0 % of c)"
    assert len(frames.x) == 18
    (box,) = figure.layout.shapes
    assert (box.x0, box.x1, box.y0, box.y1) == (-0.5, 0.5, 1.5, 2.5)
    shares = matrices.confusion_matrix(counts, ["a", "b", "c"], "A finding", shares=True)
    assert dict(zip(shares.data[1].customdata, shares.data[1].text, strict=True))["0-1"] == "4.0"
    nothing = matrices.confusion_matrix(np.diag([3, 0]), ["a", "b"], "None")
    assert np.isnan(nothing.data[0].z).all()


def test_a_matrix_of_many_classes_has_no_numbers_and_shows_those_with_errors():
    random = np.random.default_rng(0)
    many = random.poisson(0.2, (21, 21))
    assert matrices.confusion_matrix(many, [str(i) for i in range(21)], "Many").data[1].text is None
    counts = 40 * np.eye(300, dtype=np.int64)
    counts[250, 7], counts[11, 299] = 3, 1
    drawn = matrices.drawn_classes(counts)
    assert len(drawn) == 60
    assert {7, 11, 250, 299} <= set(drawn.tolist())
    figure = matrices.confusion_matrix(counts, [str(i) for i in range(300)], "Many", selected=(250, 7))
    assert sorted(figure.data[1].customdata) == ["11-299", "250-7"]
    assert len(figure.layout.shapes) == 1
    assert len(figure.to_json()) < 200_000
