"""Figures of the Runs page: every run has its bar, its name and its number in each panel."""

import pytest

from idc_core.figures import runs
from idc_core.figures.style import BAR_PIXELS


@pytest.mark.parametrize("number", [2, 5])
def test_every_run_has_room_for_its_bar_and_its_name(number):
    values = [[0.5] * number, [192.0] * (number - 1) + [None]]
    texts = [["50.0 %"] * number, ["192"] * (number - 1) + [""]]
    names = list("ABCDE"[:number])
    figure = runs.side_by_side(values, texts, ["IDC", "cells"], names, "Figures of runs")
    assert [list(bars.text) for bars in figure.data] == texts
    assert list(figure.layout.yaxis.ticktext) == names
    inside = figure.layout.height - figure.layout.margin.t - figure.layout.margin.b
    assert inside >= BAR_PIXELS * number, "a panel is as high as its bars"
    assert [note.text for note in figure.layout.annotations] == ["IDC", "cells"]
