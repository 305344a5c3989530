"""Figures of the Adversarial page: every input is counted, every number drawn, changes magnified as said."""

import numpy as np
import pytest

from idc_core.figures.adversarial import attack_bars, confusions, magnification, magnified, size_panels

FOOLED = np.array([True, True, False, True])
SIZES = {"L0": np.array([3, 9, 9, 1]), "L\u221e": np.array([0.3, 0.3, 0.3, 0.3000001])}


@pytest.mark.parametrize("dark", [False, True])
def test_every_input_is_in_a_bar_of_its_kind(dark):
    figure = size_panels(SIZES, FOOLED, "Three are fooled", dark=dark)
    assert [note.text for note in figure.layout.annotations] == list(SIZES)
    assert [(bars.name, int(sum(bars.y))) for bars in figure.data] == [("fooled", 3), ("not fooled", 1)] * 2
    assert {bars.marker.pattern.shape for bars in figure.data} == {"", "/"}
    assert [bars.showlegend for bars in figure.data] == [True, True, False, False]
    first = figure.data[0]
    low, high = first.x - first.width / 2, first.x + first.width / 2
    for value in (3, 9, 1):
        assert any(y > 0 and a <= value <= b for y, a, b in zip(first.y, low, high, strict=True))


def test_equal_sizes_are_one_bar():
    figure = size_panels(SIZES, FOOLED, "All alike")
    assert sum(np.asarray(figure.data[2].y) > 0) == 1


def test_sizes_of_nothing_are_drawn():
    zero = size_panels({"L2": np.zeros(2)}, np.zeros(2, bool), "Nothing moved")
    assert int(sum(zero.data[0].y)) == 2


def test_confusions_show_counts_and_leave_zero_empty():
    before, after = np.diag([2, 3]), np.array([[0, 2], [1, 2]])
    figure = confusions(before, after, ("cat", "dog"), "Cats become dogs")
    maps = [trace for trace in figure.data if trace.type == "heatmap"]
    for one, counts in zip(maps, (before, after), strict=True):
        np.testing.assert_array_equal(np.nan_to_num(one.z), counts)
        assert np.isnan(one.z[counts == 0]).all()
        assert (one.zmin, one.zmax) == (0, 3)
    written = [trace for trace in figure.data if trace.type == "scatter" and trace.mode == "text"]
    assert [list(one.text) for one in written] == [["2", "3"], ["2", "1", "2"]]
    assert tuple(maps[1].customdata[0][1]) == ("cat", "dog")
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1], "the first class is on top"


def test_attacks_stand_side_by_side():
    figure = attack_bars(
        ("FGSM", "Carlini-Wagner L2"),
        ("fgsm", "cw"),
        {"fooled": ((0.5, 1.0), ("50 %", "100 %")), "L2": ((float("nan"), 1.5), ("", "1.5"))},
        "One is better",
    )
    assert [list(bars.text) for bars in figure.data] == [["50 %", "100 %"], ["", "1.5"]]
    assert len(set(figure.data[0].marker.color)) == 2
    assert list(figure.layout.yaxis.ticktext) == ["FGSM", "Carlini-Wagner L2"]
    assert figure.layout.xaxis2.range[1] == pytest.approx(1.4 * 1.5)


@pytest.mark.parametrize(("largest", "factor"), [(0.3, 2), (1.0, 1), (0.009, 100), (0.05, 20), (0.0, 1)])
def test_magnification_is_the_most_that_stays_on_the_scale(largest, factor):
    assert magnification(np.array([[0.0, -largest]])) == factor


def test_magnified_changes_are_grey_where_nothing_changed():
    change = np.array([[[[0.0, 0.1, -0.1, 0.4]]]])
    drawn = magnified(change, 5, 1)
    assert drawn.shape == (1, 1, 4, 3)
    assert drawn[0, 0, :, 0].tolist() == [128, 191, 64, 255]
