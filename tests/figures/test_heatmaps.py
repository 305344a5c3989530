"""Pictures of relevance: scales, signs that do not rest on colour, escaped words, sums of layers."""

import re

import numpy as np
import pytest

from idc_core.errors import SettingError
from idc_core.figures import heatmaps, text_relevance
from idc_core.figures.layer_relevance import layer_sums
from idc_core.figures.palette import SCHEMES, palette, relevance_colours
from idc_core.figures.wording import readable_pieces


def luminance(colour):
    channels = np.asarray(colour, dtype=float) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_a_convolution_is_summed_over_its_channels():
    relevance = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(heatmaps.layer_map(relevance), relevance[0] + relevance[1])


@pytest.mark.parametrize("shape", [(84,), (84, 1), (1, 84), (3, 84)])
def test_units_and_positions_stand_in_reading_order(shape):
    relevance = np.random.default_rng(0).standard_normal(shape)
    values = relevance.sum(axis=0) if shape[0] == 3 else relevance.ravel()
    block = heatmaps.layer_map(relevance)
    assert block.shape == (9, 10)
    np.testing.assert_array_equal(block.ravel()[:84], values)
    assert np.isnan(block.ravel()[84:]).all()


def test_few_units_stand_in_one_row():
    assert heatmaps.layer_map(np.ones(10)).shape == (1, 10)


def test_scales_are_each_pictures_each_layers_or_one():
    maps = [
        {"conv": np.array([[1.0, -4.0]]), "input": np.array([[2.0, np.nan]])},
        {"conv": np.array([[3.0, 0.0]]), "input": np.array([[0.0, 0.0]])},
    ]
    assert heatmaps.limits(maps, "picture") == [{"conv": 4.0, "input": 2.0}, {"conv": 3.0, "input": 1.0}]
    assert heatmaps.limits(maps, "layer") == [{"conv": 4.0, "input": 2.0}, {"conv": 4.0, "input": 2.0}]
    assert heatmaps.limits(maps, "all") == [{"conv": 4.0, "input": 4.0}, {"conv": 4.0, "input": 4.0}]
    with pytest.raises(SettingError, match="Unknown scale 'row'"):
        heatmaps.limits(maps, "row")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_pixels_against_have_a_dot_and_others_have_none(scheme):
    tile = heatmaps.heatmap(np.array([[1.0, -1.0, -0.01, np.nan]]), 1.0, 48, scheme)
    assert tile.shape == (12, 48, 4)
    cells = [tile[:, start : start + 12] for start in range(0, 48, 12)]
    colours = [len(np.unique(cell.reshape(-1, 4), axis=0)) for cell in cells]
    assert colours == [1, 2, 1, 1]
    middle, corner = cells[1][6, 6, :3], cells[1][0, 0, :3]
    assert contrast(middle, corner) > 3
    assert [cell[0, 0, 3] for cell in cells] == [255, 255, 255, 0]
    assert cells[0][0, 0, :3].tolist() == SCHEMES[scheme].anchors(dark=False)[-1].tolist()


def test_overlay_covers_what_is_relevant_as_strongly_as_asked():
    image = np.full((3, 2, 2), 0.5)
    values = np.array([[1.0, 0.0], [-1.0, 0.0]])
    bare = heatmaps.overlay(image, values, 0.0, 2)
    assert (bare == 128).all()
    tiles = {strength: heatmaps.overlay(image, values, strength, 2) for strength in (0.3, 1.0)}
    for tile in tiles.values():
        assert (tile[:, 1] == 128).all()
    red, blue = tiles[1.0][0, 0].astype(int), tiles[1.0][1, 0].astype(int)
    assert red[0] > red[2] + 50
    assert blue[2] > blue[0] + 50
    assert 0 < abs(int(tiles[0.3][0, 0, 2]) - 128) < abs(red[2] - 128)


def test_overlay_of_nothing_is_the_image():
    assert (heatmaps.overlay(np.ones((1, 2, 2)), np.zeros((2, 2)), 1.0, 2) == 255).all()


@pytest.mark.parametrize(
    ("values", "strength", "message"), [((2, 2), 1.5, "in 0..1; got 1.5"), ((3, 2), 0.5, r"shape \(2, 2\)")]
)
def test_overlay_refuses_by_a_sentence(values, strength, message):
    with pytest.raises(SettingError, match=message):
        heatmaps.overlay(np.ones((1, 2, 2)), np.zeros(values), strength, 8)


def test_half_of_the_positive_relevance_lies_in_the_fewest_places():
    values = np.array([[1.0, -9.0, 4.0], [np.nan, 3.0, 0.0]])
    assert heatmaps.half(values).tolist() == [2]
    assert heatmaps.half(np.array([3.0, 3.0, 3.0, 3.0])).tolist() == [0, 1]
    assert heatmaps.half(np.array([-1.0, 0.0])).tolist() == []


def test_shares_have_unit_sum_of_absolute_values():
    assert np.abs(heatmaps.shares(np.array([[3.0, -5.0]]))).sum() == pytest.approx(1.0)
    assert heatmaps.shares(np.zeros((1, 2))).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_words_carry_colour_sign_and_number_and_are_escaped(scheme, dark):
    text = text_relevance.words(["<b>car</b>", "bike", "the"], np.array([2.0, -2.0, 0.01]), 2.0, scheme, dark=dark)
    assert "<b>" not in text
    assert "&lt;b&gt;car&lt;/b&gt;" in text
    supports, against, neutral = re.findall(r"<span.*?</span>", text)
    assert "font-weight:600" in supports
    assert "+2" in re.sub("<[^>]*>", "", supports)
    assert "font-style:italic" in against
    assert "\u22122" in re.sub("<[^>]*>", "", against)
    assert neutral == '<span title="+0.01">the</span>'
    ink = [int(palette(dark).ink[i : i + 2], 16) for i in (1, 3, 5)]
    for span in (supports, against):
        ground = [int(channel) for channel in re.search(r"rgb\((\d+),(\d+),(\d+)\)", span).groups()]
        assert contrast(ground, ink) > 4.5


def test_no_words_are_told():
    assert text_relevance.words([], np.zeros(0), 1.0) == "<p>(no words)</p>"


def test_legend_names_its_ends_and_escapes():
    text = text_relevance.legend("strongest against <x>", "strongest for")
    assert ">strongest against &lt;x&gt;<" in text
    assert ">strongest for<" in text


@pytest.mark.parametrize("scheme", SCHEMES)
def test_schemes_run_from_against_over_white_to_for(scheme):
    against, white, supports = relevance_colours(np.array([-1.0, 0.0, 1.0]), 1.0, scheme)
    assert white.tolist() == [255, 255, 255]
    assert against[2] > against[0]
    assert supports[0] > supports[2]


def test_layer_sums_show_both_signs_their_sum_and_what_is_expected():
    figure = layer_sums(
        ["logits", "fc", "input"],
        [5.0, 7.0, 9.0],
        [0.0, -2.0, -5.0],
        5.0,
        "score",
        "One title",
        beside=[1.0, 1.0, 1.0],
        beside_label="Class 3",
    )
    traces = {trace.name: trace for trace in figure.data}
    assert list(traces["for"].y) == [5.0, 7.0, 9.0]
    assert list(traces["against"].y) == [0.0, -2.0, -5.0]
    assert traces["against"].marker.pattern.shape == "/"
    assert list(traces["sum"].y) == [5.0, 5.0, 4.0]
    assert list(traces["score"].y) == [5.0, 5.0, 5.0]
    assert list(traces["Class 3: sum"].y) == [1.0, 1.0, 1.0]
    assert figure.layout.title.text == "One title"
    assert figure.layout.yaxis.title.text == "relevance (score units)"


def test_pieces_of_words_stand_together_and_marks_are_small():
    assert readable_pieces(["[CLS]", "play", "##ing", "##", "a"]) == [" [CLS]", " play", "ing", " ##", " a"]
    assert readable_pieces(["The", " cat", "s", " <b>"]) == ["The", " cat", "s", " <b>"]
    pieces = readable_pieces(["[CLS]", "play", "##ing"])
    html = text_relevance.words(pieces, np.array([0.0, 2.0, -2.0]), 2.0, glue="", marks={"[CLS]"})
    assert re.sub("<sub.*?</sub>|<[^>]*>", "", html) == " [CLS] playing"
    assert "<small>[CLS]</small>" in html


@pytest.mark.parametrize(("layers", "angle"), [(("logits", "fc2", "input"), 0), (("encoder.layers.1",) * 12, -45)])
def test_names_of_layers_slant_where_they_would_overlap(layers, angle):
    values = [1.0] * len(layers)
    figure = layer_sums(layers, values, values, 1.0, "score", "A finding")
    assert figure.layout.xaxis.tickangle == angle
