"""Lines over epochs: which are told apart, how, and what a click tells."""

import numpy as np
import pytest

from idc_core.figures import epochs as figures

VALUES = np.linspace(0, 1, 30).reshape(3, 10) * np.linspace(1, 0.5, 10)
NAMES = [f"hypothesis {at}" for at in range(10)]
KEYS = np.stack([np.broadcast_to(np.arange(10), (3, 10)), np.full((3, 10), 7)], 2)
EPOCHS = ["0<br>10 %", "1<br>50 %", "4<br>97 %"]


def drawn(told, chosen=None, dark=False, values=VALUES):
    return figures.by_epoch(EPOCHS, values, NAMES, told, "title", "score", keys=KEYS, chosen=chosen, dark=dark)


@pytest.mark.parametrize("dark", [False, True])
def test_told_lines_differ_in_more_than_colour_and_bear_their_names(dark):
    figure = drawn([3, 1, 4, 0, 5], chosen=9, dark=dark)
    others, *told = figure.data
    assert {line.name for line in told} == {f"hypothesis {at}" for at in (9, 3, 1, 4, 0, 5)}
    signs = [(line.line.dash, line.marker.symbol) for line in told]
    assert len(set(signs)) == 6
    assert [line.line.width for line in told if line.name == "hypothesis 9"] == [4]
    names = [note.text for note in figure.layout.annotations]
    assert len(names) == 6
    assert any("◆</span> <b>hypothesis 9 0.50</b>" in name for name in names)
    assert sum(value is None for value in others.y) == 4
    heights = sorted(note.y for note in figure.layout.annotations)
    low, high = figure.layout.yaxis.range
    assert min(np.diff(heights)) > 0.05 * (high - low)
    assert low <= heights[0]
    assert heights[-1] <= high


def test_clicks_tell_hypothesis_and_unit():
    others, line = drawn([2]).data
    assert line.customdata[0] == [2, 7]
    assert [told[0] for told in others.customdata if told is not None][:4] == [0, 0, 0, 1]
    assert len(others.x) == len(others.text) == len(others.customdata) == 9 * 4


def test_scores_below_zero_and_absent_ones():
    values = -VALUES.copy()
    values[2, 4] = np.nan
    figure = drawn([4, 5], values=values)
    assert figure.layout.yaxis.range[0] < values[2, 9] < figure.layout.yaxis.range[1]
    names = [note.text for note in figure.layout.annotations]
    assert any(name.endswith("hypothesis 4 (no score)") for name in names)
    assert any("\u2212" in name for name in names)
    assert list(figure.layout.xaxis.ticktext) == EPOCHS
