"""Cards of neurons: their parts, what can be clicked, and texts from outside."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from idc_core.figures import cards
from idc_core.figures.card_figure import card_figure
from idc_core.figures.card_parts import Activations, Card, Classes, Tiles
from idc_core.figures.cards import cropped, draw_card, draw_small
from idc_core.stories.drawing import check, check_drawable, large


def card(**parts):
    tiles = Tiles([4, 7], ["Test 4", "Test <7>"], np.full((2, 60, 60, 3), 128, np.uint8))
    given = {"neuron": 18, "share": 0.25, "tiles": tiles, "name": "loop <below>"}
    return Card(**given | parts)


@pytest.mark.parametrize("dark", [False, True])
def test_a_card_is_well_formed_whatever_texts_hold_and_tells_what_is_clicked(dark):
    activations = Activations(np.arange(40.0), np.array([10.0, 20.0]), 0.71, (3, 4, 5))
    change, low, high = np.array([-2.0, np.nan]), np.array([-1.0, np.nan]), np.array([1.0, np.nan])
    classes = Classes(["<a>", "b"], np.array([0.5, -0.25]), change, "accuracy", low, high, 39)
    text = draw_card(card(activations=activations, classes=classes, hypotheses=[("a & b", "0.71")]), dark=dark)
    picture = ElementTree.fromstring(text)
    told = {name: value for part in picture.iter() for name, value in part.attrib.items() if name.startswith("data-")}
    assert told == {"data-neuron": "18", "data-test": "7", "data-clusters": "18"}
    said = " ".join(picture.itertext())
    for part in (
        "Neuron 18",
        "loop <below>",
        "25.0 %",
        "silhouette 0.71",
        "3 \u00b7 4 \u00b7 5 cells",
        "\u22122",
        "Beyond 39 others: <a>",
        "<a>: \u22122.0 %; without another neuron \u22121.0 to +1.0 %",
        "a & b",
    ):
        assert part in said
    ends = re.findall(r'M([\d.]+) [\d.]+v38" stroke', text)
    assert [float(one) for one in ends] == pytest.approx([cards.WIDTH * 10 / 39, cards.WIDTH * 20 / 39], abs=0.1)
    height = float(picture.attrib["height"])
    assert all(float(part.attrib["y"]) < height for part in picture.iter() if "y" in part.attrib)


def test_bars_go_right_for_and_left_against_and_of_many_classes_the_largest_are_listed():
    values = np.array([0.4, -0.2, *np.linspace(0.01, 0.02, 20)])
    zeros = np.zeros(22)
    classes = Classes([f"class {number}" for number in range(22)], values, zeros, "accuracy", zeros, zeros, 5)
    text = draw_card(card(classes=classes))
    bars = re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"[^>]*><title>(class \d+)', text)
    assert len(bars) == 10
    (x, wide, first), (other, less, second) = bars[:2]
    assert (first, second) == ("class 0", "class 1")
    assert float(other) + float(less) == pytest.approx(float(x), abs=0.2)
    assert float(less) == pytest.approx(float(wide) / 2, abs=0.2)


def test_texts_show_the_words_that_are_looked_at_and_are_cut_around_them():
    long = "one two three four five six seven eight nine ten "
    tiles = Tiles([1, 2], ["a", "b"], texts=[(f"{long}here {long}", [(49, 53), (54, 57)]), ("x" * 99, [(0, 99)])])
    said = [
        "".join(part.itertext())
        for part in ElementTree.fromstring(draw_small(card(tiles=tiles))).iter()
        if part.tag.endswith("text")
    ]
    assert re.search("^\u2026.*here one.*\u2026$", said[2])
    marked = re.findall('underline">([^<]*)<', draw_small(card(tiles=tiles)))
    assert marked[:2] == ["here", "one"]
    assert len(said[3]) <= cards.SMALL_WIDTH / 6
    assert "No test" in draw_card(card(tiles=Tiles((), ())))


@pytest.mark.parametrize(
    ("side", "box", "shape"),
    [
        (28, (3, 8, 20, 25), (60, 60)),  # five pixels, twelve times as large
        (28, (0, 28, 0, 28), (56, 56)),
        (32, (5, 31, 4, 30), (56, 56)),  # 26 grow to 28
        (200, (0, 200, 0, 200), (64, 64)),
    ],
)
def test_crops_are_shown_by_whole_multiples_or_made_smaller(side, box, shape):
    inputs = np.random.default_rng(0).random((2, 1, side, side), np.float32)
    found = cropped(inputs, np.array([box, box]))
    assert found.shape == (2, *shape, 3)
    assert cropped(inputs, np.array([box, box]), whole=True).shape[1] in (56, 64)
    if box[1] - box[0] == 5:
        assert found[0, ::12, ::12, 0].tolist() == (inputs[0, 0, 3:8, 20:25] * 255).round().astype(int).tolist()


@pytest.mark.parametrize(
    ("change", "others", "said"),
    [
        ((-1.0, 2.0), 39, "Within what 39 others do"),
        ((-1.5, 2.5), 3, "Beyond 3 others: a, b"),
        ((-1.0, np.nan), 1, "Within what 1 other does"),
        ((0.0, 0.0), 0, "No other to compare with"),
        ((np.nan, np.nan), 0, ""),
    ],
)
def test_what_silencing_changes_is_said_beside_what_others_change(change, others, said):
    none = np.full(2, np.nan)
    low, high = (np.array([-1.0, -2.0]), np.array([1.0, 2.0 - 1e-12])) if others else (none, none)
    classes = Classes(["a", "b"], np.ones(2), np.array(change), "accuracy", low, high, others)
    assert classes.verdict == said
    assert said in draw_card(card(classes=classes))
    drawn = len(re.findall("<circle", draw_card(card(classes=classes))))
    assert drawn == (np.isfinite(change).sum() if others else 0)


@pytest.mark.parametrize("dark", [False, True])
def test_a_card_on_a_slide_shows_what_it_shows_and_is_a_drawing(dark):
    low, high, change = np.array([-1.0, -1.0]), np.array([1.0, 1.0]), np.array([-2.0, 0.0])
    given = card(
        activations=Activations(np.arange(40.0), np.array([10.0, 20.0]), 0.71, (3, 4, 5)),
        classes=Classes(["<a>", "b"], np.array([0.5, -0.25]), change, "accuracy", low, high, 39),
        hypotheses=[("loop", "0.8"), ("none", "")],
    )
    drawing = large(card_figure(given, "title", dark=dark))
    check(drawing, "The slide")
    check_drawable(drawing, "The slide")
    said = " ".join(note["text"] for note in drawing["layout"]["annotations"])
    for part in ("loop (0.8), none", "silhouette 0.71", "Beyond 39 others: &lt;a&gt;"):
        assert part in said
    assert len(drawing["layout"]["images"]) == 2
    assert [shape["x0"] for shape in drawing["layout"]["shapes"]] == [10.0, 20.0]
    ranges = [trace["x"] for trace in drawing["data"] if trace.get("mode") == "lines"]
    assert ranges == [[-1.0, 1.0]] * 2
    assert [trace["x"] for trace in drawing["data"] if trace.get("mode") == "markers"] == [[-2.0, 0.0]]
    texts = Tiles([1], ["a"], texts=[("one <two> three", [(4, 9)])])
    alone = large(card_figure(card(tiles=texts, name=""), "title", dark=dark))
    assert [note["text"] for note in alone["layout"]["annotations"]] == ["one <b>&lt;two&gt;</b> three"]
