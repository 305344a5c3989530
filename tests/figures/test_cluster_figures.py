"""Figures of the Clusters page: marks carry what is behind them, and colour is never the only sign."""

import numpy as np
import pytest

from idc_core.analysis.cluster_choices import try_choices
from idc_core.clustering.kmeans import cluster
from idc_core.clustering.methods import CLUSTERINGS
from idc_core.figures.clusters import choices, histograms, silhouettes
from idc_core.figures.projection import MOST_GROUPS, SYMBOLS, Groups, gather, plane

ACTIVATIONS = np.maximum(np.random.default_rng(0).normal(1, 2, (300, 3)), 0).astype(np.float32)
CLUSTERS = [cluster(column) for column in ACTIVATIONS.T]
LABELS = {name: entry.label for name, entry in CLUSTERINGS.items()}


def drawn(**given):
    return histograms(CLUSTERS, ACTIVATIONS, ACTIVATIONS[:50], ["a", "b", "c"], "title", **given)


class TestHistograms:
    def test_diamonds_stand_on_the_centroids_and_carry_neuron_and_cluster(self):
        figure = drawn(numbers=[44, 7, 9])
        handles = [trace for trace in figure.data if trace.type == "scatter" and trace.marker.symbol == "diamond"]
        for neuron, found, trace in zip((44, 7, 9), CLUSTERS, handles, strict=True):
            np.testing.assert_array_equal(trace.x, found.centroids)
            assert [list(carried) for carried in trace.customdata] == [[neuron, c] for c in range(found.k)]

    def test_centroid_lines_leave_clicks_to_the_diamonds(self):
        assert {trace.hoverinfo for trace in drawn().data if trace.name == "centroid"} == {"skip"}

    def test_selected_cluster_is_shaded_between_its_boundaries(self):
        last = CLUSTERS[1].k - 1
        shade = drawn(selected=(1, last)).layout.shapes[0]
        assert shade.x0 == CLUSTERS[1].boundaries[-1]
        assert shade.x1 == pytest.approx(ACTIVATIONS[:, 1].max())
        assert shade.xref == "x2"

    def test_one_test_is_a_star_in_every_panel(self):
        stars = [trace for trace in drawn(marked=ACTIVATIONS[4]).data if trace.name == "selected test"]
        assert [star.x[0] for star in stars] == pytest.approx(ACTIVATIONS[4].tolist())
        assert not [trace for trace in drawn().data if trace.name == "selected test"]


def test_lines_of_silhouettes_are_told_apart_by_colour_dash_and_name():
    clusters = [cluster(ACTIVATIONS[:, 0] + shift) for shift in range(6)]
    figure = silhouettes(clusters, [f"neuron {i}" for i in range(6)], "title")
    assert len({line.line.color for line in figure.data}) == 6
    assert len({line.line.dash for line in figure.data}) == 6
    assert [note.text.split("</span> ")[1] for note in figure.layout.annotations] == [f"neuron {i}" for i in range(6)]


def test_a_constant_neuron_has_no_line_of_silhouettes():
    figure = silhouettes([cluster(np.zeros(50)), CLUSTERS[0]], ["dead", "alive"], "title")
    assert [line.name for line in figure.data] == ["alive"]
    assert len(figure.layout.annotations) == 1


class TestChoices:
    @pytest.mark.parametrize("dark", [False, True])
    def test_marks_stand_for_their_choice(self, dark):
        found = [
            one
            for name in CLUSTERINGS
            for drop in (False, True)
            for one in try_choices(ACTIVATIONS, ACTIVATIONS[:50], name, drop)
        ]
        figure = choices(found, LABELS, "title", found[3], dark=dark)
        left = [trace for trace in figure.data if trace.yaxis == "y" and trace.name != "this setup"]
        assert sum(place is not None for trace in left for place in trace.customdata) == len(found)
        for trace in left:
            assert trace.x[:2] == ("auto", "auto")
            assert trace.y[1] is None, "no line leads from the automatic choice to a number"
            for x, y, place in zip(trace.x, trace.y, trace.customdata, strict=True):
                if place is None:
                    continue
                one = found[place]
                assert (x, y) == ("auto" if one.k is None else str(one.k), one.total)
                assert LABELS[one.clustering] in trace.name
        signs = [(trace.marker.symbol, trace.line.dash) for trace in left]
        assert len(set(signs)) == len(signs) == 8
        ring = [trace for trace in figure.data if trace.name == "this setup"]
        assert [trace.y[0] for trace in ring] == [found[3].total, 100 * found[3].score]


class TestPlane:
    def test_every_point_is_drawn_with_its_number_colour_and_mark(self):
        points = np.random.default_rng(1).random((40, 2))
        groups = Groups(np.arange(40) % 10, [f"class {i}" for i in range(10)])
        figure = plane(points, groups, np.arange(100, 140), ("x", "y"), "title", selected=3)
        traces = figure.data[:-1]
        assert sorted(number for trace in traces for number in trace.customdata) == list(range(100, 140))
        assert len({trace.marker.symbol for trace in traces}) == len({trace.marker.color for trace in traces}) == 10
        for label, trace in enumerate(traces):
            np.testing.assert_array_equal(trace.x, points[groups.member == label, 0])
            assert trace.name == f"class {label} (4)"
        assert figure.data[-1].name == "selected test 103"
        assert {trace.type for trace in figure.data} == {"scatter"}, "WebGL marks cannot be clicked everywhere"

    def test_dragging_draws_around_only_where_asked_for(self):
        one = (np.zeros((1, 2)), Groups(np.zeros(1, np.int64), ["a"]), np.zeros(1, np.int64), ("x", "y"), "title")
        assert plane(*one, lasso=True).layout.dragmode == "lasso"
        assert plane(*one).layout.dragmode == "zoom"

    def test_low_to_high_takes_one_hue(self):
        groups = Groups(np.arange(3), ["low", "middle", "high"], ordered=True)
        figure = plane(np.zeros((3, 2)), groups, np.arange(3), ("x", "y"), "title")
        assert len({trace.marker.color for trace in figure.data}) == 3

    def test_many_groups_keep_the_largest_apart(self):
        member = np.repeat(np.arange(15), np.arange(15, 0, -1))
        found = gather(member, [f"cell {i}" for i in range(15)], "other cells")
        assert list(found.names) == [f"cell {i}" for i in range(MOST_GROUPS - 1)] + ["other cells"]
        np.testing.assert_array_equal(found.member, np.minimum(member, MOST_GROUPS - 1))
        few = Groups(np.arange(3), ["a", "b", "c"])
        np.testing.assert_array_equal(gather(few.member, few.names, "rest").member, few.member)

    def test_there_is_a_mark_for_every_group(self):
        assert len(set(SYMBOLS)) == len(SYMBOLS) >= MOST_GROUPS
