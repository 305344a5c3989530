"""The figure of the Layers page: a square a combination, at its place, with its number and its colour."""

import numpy as np
import pytest

from idc_core.analysis.layer_sweep import LayerCoverage, Sweep
from idc_core.evidence.discovery import Discovery
from idc_core.figures.layers import chances, sweep_grid
from idc_core.figures.palette import _DARK, LIGHT, at, contrast


def swept(suites=("digits",), layers=("conv1", "fc1"), ms=(2, 8), cells=None):
    if cells is None:
        cells = [
            LayerCoverage(suite, layer, m, min(m, 6), 1 + i, 2**m)
            for suite in suites
            for i, layer in enumerate(layers)
            for m in ms
        ]
    return Sweep(layers, ms, suites, tuple(cells), {}, {}, {})


def test_every_cell_is_a_square_at_its_layer_and_m():
    bars = sweep_grid(swept(), "Title").data[0]
    assert [tuple(one) for one in bars.customdata] == [
        ("digits", "conv1", 2),
        ("digits", "conv1", 8),
        ("digits", "fc1", 2),
        ("digits", "fc1", 8),
    ]
    assert list(bars.x) == [0, 1, 0, 1]
    centres = np.array(bars.base) + np.array(bars.y) / 2
    np.testing.assert_allclose(centres, [0, 0, 1, 1])


def test_first_layer_is_on_top():
    low, high = sweep_grid(swept(), "Title").layout.yaxis.range
    assert low > high


def test_colour_follows_the_logarithm_and_the_number_is_written():
    cells = [LayerCoverage("digits", "conv1", 2, 2, 4, 4), LayerCoverage("digits", "conv1", 8, 8, 1, 2000)]
    bars = sweep_grid(swept(cells=cells), "Title").data[0]
    np.testing.assert_allclose(bars.marker.color, [2, np.log10(0.05)])
    assert list(bars.text) == ["100.0", "0.050"]


def test_small_layers_say_that_all_their_neurons_are_taken():
    bars = sweep_grid(swept(), "Title").data[0]
    assert ["all 6" in text for text in bars.text] == [False, True, False, True]
    assert "conv1, all 6 neurons" in bars.hovertext[1]
    assert "1 of 256 cells" in bars.hovertext[1]


def test_one_panel_a_test_set_and_two_a_row():
    figure = sweep_grid(swept(("a", "b", "c")), "Title", labels={"b": "The second"})
    assert len(figure.data) == 3
    assert [note.text for note in figure.layout.annotations] == ["a", "The second", "c"]
    assert figure.data[2].yaxis == "y3"
    assert figure.layout.yaxis3.domain[1] < figure.layout.yaxis.domain[0]
    assert figure.layout.height > sweep_grid(swept(("a", "b")), "Title").layout.height


def test_the_setup_is_framed_and_nothing_else():
    bars = sweep_grid(swept(), "Title", selected=("digits", "fc1", 2)).data[0]
    assert [width > 0 for width in bars.marker.line.width] == [False, False, True, False]


def test_what_was_not_finished_stays_empty():
    whole = swept()
    figure = sweep_grid(swept(cells=whole.cells[:1]), "Title")
    assert len(figure.data[0].x) == 1
    assert list(figure.layout.yaxis.ticktext) == ["conv1", "fc1"]
    assert len(sweep_grid(swept(cells=()), "Title").data[0].x) == 0


@pytest.mark.parametrize(("dark", "colours"), [(False, LIGHT), (True, _DARK)])
def test_both_themes_use_the_scale_that_text_can_be_read_on(dark, colours):
    figure = sweep_grid(swept(), "Title", dark=dark)
    assert [colour for _, colour in figure.layout.coloraxis.colorscale] == [colours.ground, *colours.counts]
    low = figure.layout.coloraxis.cmin
    fills = [at(colours.scale, (value - low) / (2 - low)) for value in figure.data[0].marker.color]
    assert all(contrast(*pair) >= 4.5 for pair in zip(figure.data[0].insidetextfont.color, fills, strict=True))
    assert figure.layout.coloraxis.cmax == 2


def test_the_chance_of_a_new_cell_is_a_point_with_its_interval():
    left = [Discovery.of_counts(np.array(counts), 32) for counts in ([1, 1, 2, 16], [1, 9, 10])]
    cells = [LayerCoverage("digits", layer, 6, 6, 4, 32, one) for layer, one in zip("ab", left, strict=True)]
    dead, few = LayerCoverage("digits", "c", 6, 6, 1, 1, left[0]), LayerCoverage("digits", "d", 6, 6, 1, 32)
    (points,) = chances([*cells, dead, few], "Title", selected="b").data
    assert list(points.x) == pytest.approx([10, 5])
    assert [value + more for value, more in zip(points.x, points.error_x.array, strict=True)] == pytest.approx(
        [100 * one.high for one in left]
    )
    assert [value - less for value, less in zip(points.x, points.error_x.arrayminus, strict=True)] == pytest.approx(
        [100 * one.low for one in left]
    )
    assert list(points.marker.symbol) == ["circle", "diamond"]
    assert list(map(list, points.customdata)) == [["digits", "a", 6], ["digits", "b", 6]]
    assert "chance of a new cell 10.0 % (" in points.hovertext[0]
