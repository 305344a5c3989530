"""Figures: what they draw is what was counted, in both themes, and never more marks than can be told apart."""

from dataclasses import replace

import numpy as np
import pytest

from idc_core.analysis.overview import Overview, TrainingReach, _training_reach, shares, worst_tests
from idc_core.clustering.kmeans import cluster
from idc_core.coverage.cell_table import tabulate
from idc_core.coverage.growth import growth
from idc_core.errors import DataError, SettingError
from idc_core.evidence.discovery import Discovery
from idc_core.evidence.finding import Control, Finding
from idc_core.figures import clusters as cluster_figures
from idc_core.figures import neurons, palette
from idc_core.figures.coverage import growth_curve
from idc_core.figures.palette import contrast

SIZES = (2, 3, 2, 4)
NAMES = ("7", "1", "4", "9")


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    assignments = np.stack([rng.integers(0, size, 30) for size in SIZES], axis=1).astype(np.uint8)
    return tabulate(assignments, SIZES, rng.integers(0, 3, 30), rng.random(30) < 0.5, classes=3)


@pytest.mark.parametrize("dark", [False, True])
def test_colours_can_be_read(dark):
    colours = palette.palette(dark)
    for text in (colours.ink, colours.muted):
        assert contrast(text, colours.ground) >= 4.5
    for fill in (*colours.counts, colours.error, *palette.CLASSES):
        assert contrast(palette.ON_FILL, fill) >= 4.5
    for line in (colours.accent, colours.error, colours.tests, *colours.lines):
        assert contrast(line, colours.ground) >= 3


@pytest.mark.parametrize("dark", [False, True])
def test_scales_begin_in_the_grounds_colour_and_stand_out_more_the_stronger(dark):
    ground = palette.palette(dark).ground
    halves = [palette.palette(dark).scale]
    for scheme in palette.SCHEMES.values():
        whole = scheme.scale(dark)
        halves += [whole[3:], whole[3::-1]]
    for half in halves:
        assert half[0][1] == ground
        steps = [contrast(palette.at(half if half[0][0] == 0 else sorted(half), place), ground) for place, _ in half]
        assert steps == sorted(steps)
        assert steps[-1] >= 3
        for place in np.linspace(half[0][0], half[-1][0], 41):
            fill = palette.at(sorted(half), float(place))
            assert contrast(palette.ink_on(fill), fill) >= 4.5, "numbers can be read on every colour"


@pytest.mark.parametrize("dark", [False, True])
def test_relevance_is_red_for_blue_against_and_the_ground_at_zero(dark):
    red, blue, none = palette.relevance_colours(np.array([2.0, -2.0, 0.0]), 2.0, dark=dark).tolist()
    assert none == [int(palette.palette(dark).ground[i : i + 2], 16) for i in (1, 3, 5)]
    assert red[0] > red[2] + 50
    assert blue[2] > blue[0] + 50
    with pytest.raises(SettingError, match="must be positive"):
        palette.relevance_colours(np.zeros(2), 0.0)


def test_contrast_is_as_defined():
    assert palette.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert palette.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)  # the known example of WCAG


@pytest.mark.parametrize(("errors", "drawn"), [(0.02, "all"), (0.5, neurons._MOST_POINTS // 2), (1.0, "full")])
def test_scatter_draws_both_kinds_of_tests(errors, drawn):
    rng = np.random.default_rng(0)
    n = 5 * neurons._MOST_POINTS
    activations, relevance = rng.random((n, 2)), rng.random((n, 2))
    correct = rng.random(n) >= errors
    figure = neurons.activation_relevance(activations, relevance, correct, ["a", "b"], "A finding")
    marks = {trace.name: trace for trace in figure.data[:2] if trace.xaxis == "x"}
    expected = {"all": (~correct).sum(), "full": neurons._MOST_POINTS}.get(drawn, drawn)
    assert len(marks["misclassified"].x) == expected
    assert sum(len(trace.x) for trace in marks.values()) == neurons._MOST_POINTS
    assert len({trace.marker.symbol for trace in marks.values()}) == len(marks)


@pytest.mark.parametrize(("m", "most"), [(1, 200), (3, 200), (6, 100), (10, 60), (12, 60)])
def test_more_panels_hold_fewer_marks_each(m, most):
    points = np.random.default_rng(0).random((500, m))
    figure = neurons.activation_relevance(points, points, None, [str(i) for i in range(m)], "A finding")
    assert neurons.most_points(m) == most
    assert [len(trace.x) for trace in figure.data] == [most] * m


def test_correlation_is_pearsons():
    rng = np.random.default_rng(0)
    a, r = rng.random((50, 3)), rng.random((50, 3))
    a[:, 2] = 4.0
    found = neurons.correlations(a, r)
    assert found[:2] == pytest.approx([np.corrcoef(a[:, i], r[:, i])[0, 1] for i in range(2)])
    assert np.isnan(found[2])


@pytest.mark.parametrize("train", [np.linspace(0, 1, 30), np.zeros(30)], ids=["spread", "constant"])
def test_histograms_hold_every_training_input(train):
    found = cluster(train)
    figure = cluster_figures.histograms([found], train[:, None], np.zeros((0, 1)), ["a"], "A finding")
    bars = next(trace for trace in figure.data if trace.name == "training inputs")
    assert np.nansum(bars.y) == pytest.approx(100.0)
    lines = next(trace for trace in figure.data if trace.name == "centroid")
    assert sorted({float(x) for x in lines.x}) == pytest.approx(sorted(set(found.centroids)))


def test_silhouettes_star_the_chosen_number():
    found = cluster(np.concatenate([np.zeros(20), np.ones(20), 5 + np.zeros(20)]) + np.linspace(0, 0.1, 60))
    trace = cluster_figures.silhouettes([found], ["a"], "A finding").data[0]
    assert list(trace.x) == [2, 3, 4]
    assert [k for k, symbol in zip(trace.x, trace.marker.symbol, strict=True) if symbol == "star"] == [found.k]


def test_growth_curve_is_in_per_cent_of_all_cells():
    figure = growth_curve(growth(np.array([0, 1, 1, 2])), 8, "A finding")
    given = next(trace for trace in figure.data if trace.name == "given order")
    assert list(given.y) == pytest.approx([0, 12.5, 25, 25, 37.5])


def test_growth_goes_on_dashed_with_what_more_tests_would_reach():
    left = Discovery.of_counts(np.array([1, 1, 2]), 8)
    figure = growth_curve(growth(np.array([0, 1, 2, 2])), 8, "A finding", left=left)
    drawn = [trace for trace in figure.data if trace.legendgroup == "more"]
    assert [trace.line.dash for trace in drawn] == ["dash"] * 3
    assert [trace.showlegend for trace in drawn] == [True, False, False]
    for trace, number in zip(drawn, left.new(4), strict=True):
        assert (trace.x[0], trace.x[-1]) == (4, 8)
        assert trace.y[0] == 37.5
        assert trace.y[-1] == pytest.approx(100 * (3 + number) / 8)


def test_shares_are_of_positive_relevance():
    importance = np.array([6.0, -9.0, 3.0, 1.0])
    assert shares(importance, np.array([0, 2])) == pytest.approx((0.6, 0.9))
    assert shares(-np.abs(importance), np.array([0])) == (0.0, 0.0)


def test_training_inputs_are_compared_by_the_cells_they_reach():
    train, test = (np.array(cells, np.uint8)[:, None] for cells in ([0, 0, 1, 2, 5, 5, 7], [1, 2, 3, 3]))
    assert _training_reach(train, tabulate(test, (8,))) == TrainingReach(7, 5, ((0,), (5,), (7,)), (2, 2, 1))
    assert _training_reach(test, tabulate(test, (8,))).untested == 0


def test_worst_tests_are_wrong_and_those_alone_in_their_cell_come_first():
    correct = np.array([True, False, False, True, False, False])
    confidence = np.array([0.9, 0.5, 0.6, 0.7, 0.8, 0.99])
    lonely = np.array([False, True, True, False, False, False])
    assert worst_tests(np.array([0, 1, 2, 3, 4]), correct, confidence, lonely).tolist() == [2, 1, 4]


FOUND = Finding(
    "recall", "Recall of class *7*", 0.5, Control("for others", 0.9, 0.8, 1.0), 0.1, 0.2, 0.0, where=(("a", "b"),)
)
REACH = TrainingReach(9, 3, ((0, 0, 0, 0), (1, 2, 1, 3)), (4, 1))


@pytest.mark.parametrize("training", [None, TrainingReach(9, 3, (), ()), REACH])
def test_overview_survives_its_file(table, training):
    typical, rows = tuple(range(table.covered)), tuple(np.repeat(np.arange(table.covered), table.counts).tolist())
    kept = Overview(
        ("a", "b", "c"), 30, 0.5, None, "fc", 9, (3, 1, 2, 0), 0.1, 0.4, table, training, (FOUND,), typical, rows
    )
    again = Overview.from_json(kept.to_json())
    assert again.to_json() == kept.to_json()
    assert (again.training, again.findings) == (training, (FOUND,))
    assert again.table.cells.tolist() == table.cells.tolist()
    assert again.errors_only.tolist() == table.only_errors.tolist()
    others = replace(kept, typical=typical[1:]), replace(kept, rows=rows[1:])
    texts = ("", "[]", "{}", '{"table": 3}', kept.to_json().replace('"tests"', '"texts"'))
    for broken in (*texts, *(other.to_json() for other in others)):
        with pytest.raises(DataError, match="write it anew"):
            Overview.from_json(broken)
