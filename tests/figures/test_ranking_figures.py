"""Figures of the Neurons page: rankings with what stands beside them, their agreement, and a neuron's classes."""

import numpy as np
import pytest

from idc_core.figures import neurons
from idc_core.figures.palette import SCHEMES, at, contrast, palette

VALUES = np.array([1.0, 5.0, -2.0, 3.0])
ORDER = np.argsort(-VALUES, kind="stable")


def rows(*values):
    return [neurons.Row(f"Measure {i}", "unit", np.asarray(one, np.float64)) for i, one in enumerate(values)]


def bars(figure):
    """Height of every neuron's bar by row, in the order of the axis."""
    found = {}
    for trace in figure.data:
        for x, y, neuron in zip(trace.x, trace.y, trace.customdata, strict=True):
            assert x == str(neuron)
            found.setdefault(trace.yaxis, {})[int(neuron)] = float(y)
    return list(found.values())


def test_every_row_draws_its_own_numbers_of_the_same_neurons():
    figure = neurons.ranking(ORDER, np.array([1, 3]), rows(VALUES, VALUES**2), "A finding")
    assert bars(figure) == [dict(enumerate(VALUES)), dict(enumerate(VALUES**2))]
    assert list(figure.layout.xaxis.categoryarray) == ["1", "3", "0", "2"]
    assert figure.layout.yaxis.title.text == "unit"


def test_important_neurons_differ_by_pattern_as_well_as_colour():
    figure = neurons.ranking(ORDER, np.array([1, 3]), rows(VALUES), "A finding")
    important, others = figure.data
    assert sorted(important.customdata) == [1, 3]
    assert sorted(others.customdata) == [0, 2]
    assert important.marker.pattern.shape != others.marker.pattern.shape
    assert important.name == "important, m = 2"


@pytest.mark.parametrize("dark", [False, True])
def test_selected_neuron_is_framed_and_named(dark):
    figure = neurons.ranking(ORDER, np.array([1]), rows(VALUES, VALUES), "A finding", selected=0, dark=dark)
    assert [(shape.x0, shape.x1) for shape in figure.layout.shapes] == [(1.5, 2.5)] * 2
    assert "neuron 0" in [note.text for note in figure.layout.annotations]
    assert figure.layout.shapes[0].line.color == palette(dark).error
    assert not neurons.ranking(ORDER, np.array([1]), rows(VALUES), "A finding").layout.shapes


def test_long_rankings_keep_both_ends_and_the_selected_neuron():
    values = np.random.default_rng(0).normal(size=200)
    order = np.argsort(-values, kind="stable")
    first = neurons._MOST_BARS - neurons._LAST_BARS
    figure = neurons.ranking(order, order[:6], rows(values), "A finding")
    drawn = bars(figure)[0]
    assert set(drawn) == {*order[:first].tolist(), *order[-neurons._LAST_BARS :].tolist()}
    assert all(drawn[neuron] == values[neuron] for neuron in drawn)
    hidden = int(order[100])
    figure = neurons.ranking(order, order[:6], rows(values), "A finding", selected=hidden)
    assert set(bars(figure)[0]) == {*drawn, hidden}
    columns = list(figure.layout.xaxis.categoryarray)
    assert len(columns) == len(set(columns)), "plotly draws a name that comes twice in one place"
    assert columns.index(str(hidden)) == first + 1
    shape = figure.layout.shapes[0]
    assert (shape.x0 + shape.x1) / 2 == first + 1


def test_no_bar_is_empty_without_a_word():
    values = np.concatenate([np.arange(70, 0, -1), np.zeros(14), [-1]]).astype(float)
    figure = neurons.ranking(np.arange(85), np.arange(6), rows(values, values**2), "A finding", selected=72)
    drawn = bars(figure)[0]
    assert [neuron for neuron, height in drawn.items() if not height] == [72], "the selected one has its place"
    assert (
        figure.layout.xaxis2.title.text
        == "neuron, by measure 0<br>not drawn: 12 in the middle and 13 that are 0 in every row"
    )
    everything = neurons.ranking(np.arange(6), np.arange(2), rows(values[:6]), "A finding")
    assert "not drawn" not in everything.layout.xaxis.title.text


@pytest.mark.parametrize("selected", [None, 3, 19])
def test_marks_of_the_scatter_carry_the_numbers_of_their_tests(selected):
    rng = np.random.default_rng(0)
    activations, relevance = rng.random((20, 2)), rng.random((20, 2))
    ids = np.arange(20) * 7 + 100
    figure = neurons.activation_relevance(
        activations, relevance, None, ["a", "b"], "A finding", ids=ids, selected=selected
    )
    everything = [trace for trace in figure.data if trace.name == "test"]
    for index, trace in enumerate(everything):
        for x, y, number in zip(trace.x, trace.y, trace.customdata, strict=True):
            place = ids.tolist().index(number)
            assert (x, y) == (activations[place, index], relevance[place, index])
    marked = [trace for trace in figure.data if trace.name == f"test {None if selected is None else ids[selected]}"]
    assert len(marked) == (0 if selected is None else 2)
    for index, trace in enumerate(marked):
        assert trace.x.tolist() == [activations[selected, index]]
        assert trace.customdata.tolist() == [ids[selected]]
        assert trace.marker.symbol not in {one.marker.symbol for one in everything}


def test_selected_test_is_marked_even_where_it_was_not_drawn():
    n = 5 * neurons._MOST_POINTS
    points = np.random.default_rng(0).random((n, 1))
    figure = neurons.activation_relevance(points, points, None, ["a"], "A finding")
    hidden = next(place for place in range(n) if place not in figure.data[0].customdata)
    figure = neurons.activation_relevance(points, points, None, ["a"], "A finding", selected=hidden)
    assert figure.data[-1].x.tolist() == [points[hidden, 0]]


@pytest.mark.parametrize("dark", [False, True])
def test_agreement_writes_numbers_while_they_can_be_read(dark):
    matrix = np.array([[1.0, -0.5], [-0.5, 1.0]])
    heatmap, numbers = neurons.agreement(matrix, ["a", "b"], "A finding", dark=dark).data
    assert np.asarray(heatmap.z).tolist() == matrix.tolist()
    assert (heatmap.zmin, heatmap.zmax) == (-1, 1)
    assert list(numbers.text) == ["1.00", "\u22120.50", "\u22120.50", "1.00"]
    assert list(zip(numbers.y, numbers.x, strict=True)) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    fills = [at(SCHEMES["orange-purple"].scale(dark), (value + 1) / 2) for value in matrix.ravel()]
    assert all(contrast(*pair) >= 4.5 for pair in zip(numbers.textfont.color, fills, strict=True))
    none = neurons.agreement(np.array([[1.0, -0.001], [-0.001, 1.0]]), ["a", "b"], "A finding").data[1]
    assert list(none.text) == ["1.00", "0.00", "0.00", "1.00"], "no negative zero"
    many = neurons._MOST_NUMBERS + 1
    assert len(neurons.agreement(np.eye(many), [str(i) for i in range(many)], "A finding").data) == 1
