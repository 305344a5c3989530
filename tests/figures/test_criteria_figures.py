"""Figures of the Criteria page: every number is drawn, in its panel, and what stands out is what was asked for."""

import numpy as np
import pytest

from idc_core.coverage.prioritisation import Order, detect_faults
from idc_core.figures.criteria import fault_curves, growth_panels, suite_scores

CRITERIA = ("IDC", "NC", "KMNC", "NLC, activation")
SUITES = ("All (4)", "Half (2)")
SCORES = np.array([[0.5, 0.25], [1.0, 1.0], [0.0, 0.0], [3.0, np.nan]])
WRITTEN = [["50 %", "25 %"], ["100 %", "100 %"], ["0 %", "0 %"], ["3", ""]]


@pytest.mark.parametrize("dark", [False, True])
def test_a_panel_per_criterion_with_a_bar_per_suite(dark):
    figure = suite_scores(SCORES, CRITERIA, SUITES, WRITTEN, "They differ", dark=dark)
    assert [note.text for note in figure.layout.annotations] == list(CRITERIA)
    assert [list(bars.text) for bars in figure.data] == WRITTEN
    for bars, row in zip(figure.data, SCORES, strict=True):
        assert np.array_equal(bars.x, row, equal_nan=True)
        assert bars.marker.color[0] != bars.marker.color[1]
    assert list(figure.layout.yaxis.ticktext) == list(SUITES)
    assert "They differ" in figure.layout.title.text


def test_every_panel_has_room_for_its_longest_bar():
    figure = suite_scores(SCORES, CRITERIA, SUITES, WRITTEN, "They differ")
    ends = [figure.layout[f"xaxis{i or ''}"].range[1] for i in ("", 2, 3, 4)]
    assert ends == pytest.approx([0.8, 1.6, 1.0, 4.8]), "four panels in a row are narrow: 60 % for the number"
    figure = suite_scores(SCORES[:2], CRITERIA[:2], SUITES, WRITTEN[:2], "They differ")
    ends = [figure.layout[f"xaxis{i or ''}"].range[1] for i in ("", 2)]
    assert ends == pytest.approx([0.7, 1.4]), "40 % where panels are wide"


def test_growth_draws_mean_and_band_in_per_cent_where_it_is_a_share():
    growth = np.array([[[0.1, 0.4], [0.3, 0.4]], [[1.0, 5.0], [2.0, 5.0]]])
    figure = growth_panels(np.array([2, 4]), growth, ("IDC", "CC"), (True, False), "Still rising")
    bands, lines = figure.data[0::2], figure.data[1::2]
    assert [list(line.y) for line in lines] == [pytest.approx([20, 40]), [1.5, 5.0]]
    assert list(bands[0].y) == pytest.approx([30, 40, 40, 10])
    assert (figure.layout.yaxis.ticksuffix, figure.layout.yaxis2.ticksuffix) == (" %", "")
    assert figure.layout.yaxis.exponentformat == "none", "a small share without a prefix"


def test_marked_orders_stand_out_by_more_than_colour():
    wrong = np.arange(30) % 7 == 0
    orders = [Order(name, "value", np.random.default_rng(i).permutation(30)) for i, name in enumerate("abcd")]
    detection = detect_faults(orders, wrong, seeds=3)
    labels = {order.key: f"Order {order.name}" for order in orders}
    figure = fault_curves(detection, labels, ["c-value", "a-value"], "C is early")
    thick = [line for line in figure.data if (line.line.width or 0) > 2]
    assert [line.name for line in thick] == [
        f"Order {n} (APFD {100 * detection.apfd[f'{n}-value']:.1f} %)" for n in "ca"
    ]
    assert len({line.line.dash for line in thick}) == 2
    assert list(thick[0].y) == pytest.approx(100 * detection.curves["c-value"])
    assert "3 random orders" in figure.data[0].name
    assert sum(bool(line.showlegend) for line in figure.data if line.legendgroup == "others") == 1
