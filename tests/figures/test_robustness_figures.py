"""Figures of retraining: every mean, band and interval is drawn, and no addition is told by its colour alone."""

from dataclasses import replace

import numpy as np
import pytest

from idc_core.experiments.retraining_results import RetrainedNetwork, Retraining
from idc_core.figures.robustness import curves, differences

ADDITIONS = {"none": "nothing added", "random": "random inputs", "raising": "inputs that raise IDC"}
TESTS = {"clean": "tests as they are", "noise": "random noise"}


def result(seeds=3, task="classification", missing=()):
    random = np.random.default_rng(0)
    units = {
        (name, seed): RetrainedNetwork(random.random((5, 2)), 4, np.zeros((0, 3)), np.zeros(0), {})
        for seed in range(seeds)
        for name in ADDITIONS
        if (name, seed) not in missing
    }
    return Retraining(tuple(ADDITIONS), tuple(range(seeds)), tuple(TESTS), task, 4, 10, 99, "trained", units)


@pytest.mark.parametrize("dark", [False, True])
def test_curves_are_means_with_bands_of_a_deviation(dark):
    found = result()
    figure = curves(found, ADDITIONS, TESTS, "It helps", dark=dark)
    lines = [trace for trace in figure.data if trace.mode == "lines+markers"]
    bands = [trace for trace in figure.data if trace.fill == "toself"]
    assert [line.name for line in lines] == [label for label in ADDITIONS.values() for _ in TESTS]
    assert [note.text for note in figure.layout.annotations] == list(TESTS.values())
    for place, (line, band) in enumerate(zip(lines, bands, strict=True)):
        values = 100 * found.values[place // 2, :, :, place % 2]
        assert line.y == pytest.approx(values.mean(0))
        assert band.y[:5] == pytest.approx(np.minimum(values.mean(0) + values.std(0, ddof=1), 100))
        assert band.y[5:] == pytest.approx(np.maximum(values.mean(0) - values.std(0, ddof=1), 0)[::-1])
    for sign in ("dash", "symbol"):
        assert len({line.line.dash if sign == "dash" else line.marker.symbol for line in lines}) == 3
    assert sum(bool(line.showlegend) for line in lines) == 3


def test_bands_end_where_there_is_no_accuracy():
    for high, end in (((0,), 0.0), ((0, 1), 100.0)):
        found = result()
        extreme = {
            key: replace(unit, values=0 * unit.values + (key[1] in high)) for key, unit in found.networks.items()
        }
        figure = curves(replace(found, networks=extreme), ADDITIONS, TESTS, "It helps")
        bands = np.concatenate([trace.y for trace in figure.data if trace.fill == "toself"])
        assert (bands.max() if end else bands.min()) == end


def test_what_is_not_finished_is_left_out_and_one_seed_has_no_band():
    figure = curves(result(1, missing={("raising", 0)}), ADDITIONS, TESTS, "Begun")
    assert [trace.name for trace in figure.data] == ["nothing added"] * 2 + ["random inputs"] * 2
    assert all(trace.fill is None for trace in figure.data)


def test_errors_are_not_in_per_cent():
    figure = curves(result(task="regression"), ADDITIONS, TESTS, "It helps")
    assert figure.layout.yaxis.title.text == "RMSE"
    lines = [trace for trace in figure.data if trace.mode == "lines+markers"]
    assert max(lines[0].y) < 1


def test_differences_are_drawn_with_their_intervals():
    found = result()
    pairs = [found.difference("raising", "random"), found.difference("raising", "none")]
    figure = differences(found, pairs, ADDITIONS, TESTS, "Nothing differs")
    assert [trace.name for trace in figure.data] == [
        "inputs that raise IDC \u2212 random inputs",
        "inputs that raise IDC \u2212 nothing added",
    ]
    for trace, pair in zip(figure.data, pairs, strict=True):
        assert trace.x == pytest.approx(100 * pair.mean)
        assert trace.error_x.array == pytest.approx(100 * (pair.high - pair.mean))
    assert list(figure.layout.yaxis.ticktext) == list(TESTS.values())
    assert len({trace.marker.symbol for trace in figure.data}) == 2
    alone = differences(result(1), [result(1).difference("raising", "none")], ADDITIONS, TESTS, "One seed")
    assert list(alone.data[0].error_x.array) == [0, 0]
