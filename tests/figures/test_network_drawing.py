"""The drawing of a network: one box per layer in its place, with its name, shape and IDC."""

import pytest

from idc_core.figures.network_drawing import _A_ROW, network_drawing


@pytest.mark.parametrize("dark", [False, True])
def test_every_layer_is_a_box_that_says_what_it_is(dark):
    layers = [f"block{number}.conv" for number in range(_A_ROW + 2)]
    shapes = {layers[0]: (6, 24, 24), layers[1]: (84,)}
    figure = network_drawing(layers, shapes, {layers[0]: 0.432}, "A network", selected=layers[1], dark=dark)
    counted, others = figure.data
    assert list(counted.customdata) == layers[:1]
    assert list(others.customdata) == layers[1:]
    assert counted.text[0] == "block0.conv<br>6 \u00d7 24 \u00d7 24<br>43.2 %"
    assert list(others.text[:2]) == ["block1.conv<br>84", "block2.conv"]
    assert [*counted.x, *others.x] == [*range(_A_ROW), 0, 1]
    assert others.base[-1] == counted.base[0] - 1, "the second row is below the first"
    assert [list(trace.marker.line.width).count(3) for trace in figure.data] == [0, 1]
    assert counted.marker.color == (43.2,)
    assert len(figure.layout.annotations) == len(layers) - 1, "an arrow to each layer"
    assert len(figure.layout.shapes) == 1, "and a line back to the next row"


def test_long_names_are_cut_from_the_left():
    name = "vit.encoder.layer.11.intermediate.dense.first.of.all.parts"
    boxes = network_drawing([name], {}, {}, "A network").data[1]
    assert boxes.text[0].startswith("\u2026")
    assert name.endswith(boxes.text[0][1:])
    assert name in boxes.hovertext[0]


def test_names_that_fit_into_two_lines_are_whole():
    boxes = network_drawing(["blocks.layers.10.self_attention"], {}, {}, "A network").data[1]
    assert boxes.text[0] == "blocks.layers.10.<br>self_attention"
