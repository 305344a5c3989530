"""Figures of experiments draw the numbers they are given, in both themes and not by colour alone."""

import numpy as np
import pytest

from idc_core.experiments.ablation import Ablation
from idc_core.experiments.rq1 import RQ1
from idc_core.figures.experiments import ablation_curve, rq1_boxes
from idc_core.figures.palette import palette


def ablation(task="classification"):
    random = np.array([[0.9, 0.8, np.nan], [0.9, 0.6, np.nan]])
    return Ablation(
        "fc2", 8, task, np.array([4, 1, 0]), np.array([0, 2, 3]), (0, 1), 0.9, np.array([0.9, 0.5, 0.25]), random, 200
    )


@pytest.mark.parametrize("dark", [False, True])
def test_ablation_curves_hold_important_mean_and_band(dark):
    figure = ablation_curve(ablation(), "Silencing two neurons costs 40 points", dark=dark)
    band, mean, important = figure.data
    assert list(important.x) == [0, 2, 3]
    assert important.y.tolist() == pytest.approx([90, 50, 25])
    # No seed has three other neurons to silence.
    assert list(mean.x) == [0, 2]
    assert mean.y.tolist() == pytest.approx([90, 70])
    assert list(band.x) == [0, 2, 2, 0]
    assert band.y.tolist() == pytest.approx([90, 80, 60, 90])
    assert (mean.line.dash, important.line.dash) == ("dash", None)
    assert mean.marker.symbol != important.marker.symbol
    assert figure.layout.shapes[0].y0 == pytest.approx(90)
    assert figure.layout.title.text == "Silencing two neurons costs 40 points"
    assert figure.layout.title.font.color == palette(dark).ink
    assert figure.layout.yaxis.title.text == "accuracy on 200 tests (%)"


def test_regression_is_drawn_in_its_own_unit():
    figure = ablation_curve(ablation("regression"), "x")
    assert figure.data[2].y.tolist() == pytest.approx([0.9, 0.5, 0.25])
    assert figure.layout.yaxis.title.text == "RMSE on 200 tests"


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
def test_boxes_show_quantiles_of_every_draw(dark, scaled):
    rng = np.random.default_rng(0)
    own, others, own_scaled, others_scaled = rng.random(50), rng.random((3, 50)), rng.random(50), rng.random((3, 50))
    result = RQ1(
        "fc2",
        np.array([1]),
        np.array([[2], [3], [4]]),
        (0, 1, 2),
        own,
        others,
        own_scaled,
        others_scaled,
        0,
        np.ones(50, np.int64),
        {},
    )
    figure = rq1_boxes(result, "Important neurons move further", scaled=scaled, dark=dark)
    important, random = figure.data
    drawn, others = (own_scaled, others_scaled) if scaled else (own, others)
    assert list(important.x) == ["important"]
    assert list(random.x) == ["seed 0", "seed 1", "seed 2"]
    assert important.median[0] == pytest.approx(np.median(drawn))
    assert list(random.q1) == pytest.approx(np.quantile(others, 0.25, axis=1))
    assert list(random.upperfence) == pytest.approx(np.quantile(others, 0.95, axis=1))
    assert list(random.mean) == pytest.approx(others.mean(1))
    assert ("deviations" in figure.layout.yaxis.title.text) is scaled
    # Only the quantiles travel to the browser.
    assert important.y is None
