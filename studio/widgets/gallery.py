"""Galleries of tests, in which a click selects a test on all pages."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idc_core.errors import IdcError
from idc_core.figures import input_images
from idc_core.figures.adversarial import magnification, magnified
from idc_core.figures.input_texts import glue, words_of
from studio.jobs.results import View, heatmaps
from studio.jobs.wording import amount, is_series, quantity
from studio.state.selection import select, selected
from studio.text import literal, plural
from studio.widgets.charts import component, is_dark
from studio.widgets.storytelling import add_button

if TYPE_CHECKING:
    import plotly.graph_objects as go

WRONG = "\u00d7"
"""Marks a misclassified test."""

_MOST_WORDS = 60
"""Words of a text shown in a gallery."""

_MOST_BYTES = 90_000
"""Bytes of a gallery's pictures up to which they are sent exactly."""

_COLUMNS = 10

_EXPLAINED = "[class*='st-key-heatmaps'] img"
"""What shows an explained test on the Relevance page."""

_ON_A_SLIDE, _TEXTS_ON_A_SLIDE = 18, 3
"""Tests of a gallery that a slide of a story shows, and the same for texts."""

_tiles = component("idc_gallery", "gallery", "tiles", before=("../grid/growing",))


def answer(view: View, position: int) -> str:
    """Write a test's true and predicted class, or number."""
    prediction = view.analysis.predictions[position]
    if not view.is_classifier:
        true, predicted = float(view.test.targets[position]), float(view.analysis.confidence[position])
        return f"{amount(view.test, true, unit=False)} → {amount(view.test, predicted)}"
    true = view.test.class_names[view.test.targets[position]]
    wrong = view.correct is not None and not view.correct[position]
    return f"{true} → {view.train.class_names[prediction]}{f' {WRONG}' if wrong else ''}"


def caption(view: View, position: int) -> str:
    """Write a test's number and answers."""
    return f"{view.test.ids[position]}: {answer(view, position)}"


def gallery(
    view: View,
    positions: NDArray[np.int64],
    most: int,
    relevance: NDArray[np.floating] | None = None,
    key: str | None = None,
    explain: Callable[[int], None] | None = None,
) -> None:
    """Show tests to choose from: pictures, pictures beside their relevance, lines on a ground of it, or words.

    A click selects a test, or calls `explain`, which opens the Relevance page: there the picture grows.
    """
    shown = positions[:most]
    if not len(shown):
        st.caption("No test to show.")
        return
    key = key or f"gallery-{digest(view, shown)}"
    tiles, sheet = make_tiles(view, shown, relevance)
    if explain is None:
        draw_tiles(tiles, sheet, key)
    else:
        _draw(key, "Tests to explain", tiles, sheet, selected().input, explain, grows=_EXPLAINED)
    with st.container(horizontal=True, gap="xsmall"):
        click = "Click to select." if explain is None else "Click to see what decided."
        st.caption(note(view, len(shown), len(positions), click), width="stretch")
        title = f"{plural(len(positions), 'test')}. {_legend(view)}"
        add_button(key, title, lambda dark: _figure(view, shown, relevance, title, dark), view.line)


def _figure(
    view: View, shown: NDArray[np.int64], relevance: NDArray[np.floating] | None, title: str, dark: bool
) -> go.Figure:
    """Draw the tests of a gallery as a figure, as many as a slide has room for."""
    from idc_core.figures.picture_figure import picture_figure, text_figure

    some = shown[:_ON_A_SLIDE] if view.has_pictures or is_series(view.test) else shown[:_TEXTS_ON_A_SLIDE]
    own = None if relevance is None else relevance[: len(some)]
    captions = [caption(view, place) for place in some]
    if view.has_pictures:
        pictures = input_images.pictures(view.test.inputs[some], 1)
        if own is not None:
            pictures = np.concatenate([pictures, input_images.heatmaps(own, 1, dark=dark)], axis=2)
    elif is_series(view.test):
        pictures = input_images.lines(view.test.inputs[some], own, dark=dark)
    else:
        marked = [_marked_words(view, place, None if own is None else own[row]) for row, place in enumerate(some)]
        return text_figure(list(zip(captions, marked, strict=True)), title, dark=dark)
    return picture_figure(list(pictures), captions, title, dark=dark)


def neuron_heatmaps(view: View, tests: NDArray[np.int64], neuron: int) -> NDArray[np.float32] | None:
    """Return what activates a neuron in some tests; where that cannot be said, say why."""
    try:
        maps = heatmaps(view, tests, None, neuron)
    except IdcError as error:
        st.caption(literal(error))
        return None
    return maps


def note(view: View, shown: int, of: int, click: str = "Click to select.") -> str:
    """Say below a gallery how its captions are to be read, what a click does, and how many tests it leaves out."""
    return f"{_legend(view)}. {click}{_left_out(shown, of)}"


def make_tiles(
    view: View, shown: NDArray[np.int64], relevance: NDArray[np.floating] | None = None
) -> tuple[list[dict[str, object]], dict[str, object] | None]:
    """Return the tiles of some tests, and the sheet that their pictures are cut out of; None for texts."""
    tiles: list[dict[str, object]] = [
        {"test": int(view.test.ids[place]), "caption": caption(view, place), "spoken": _spoken(view, place)}
        for place in shown
    ]
    sheet = None
    if view.has_pictures:
        parts = [input_images.pictures(view.test.inputs[shown], 1)]
        if relevance is not None:
            parts.append(input_images.heatmaps(relevance, 1, dark=is_dark()))
        sheet = make_sheet(np.concatenate(parts))
        for index, tile in enumerate(tiles):
            tile["places"] = [index] if relevance is None else [index, len(shown) + index]
    elif is_series(view.test):
        sheet = make_sheet(input_images.lines(view.test.inputs[shown], relevance, dark=is_dark()))
        for index, tile in enumerate(tiles):
            tile["places"] = [index]
    else:
        for row, (tile, place) in enumerate(zip(tiles, shown, strict=True)):
            tile["words"] = _marked_words(view, place, None if relevance is None else relevance[row])
            tile["glue"] = glue(view.test)
    return tiles, sheet


@dataclass(frozen=True)
class Tile:
    """One input of a gallery that is no gallery of the setup's tests: its number when chosen, and its caption."""

    number: int
    caption: str


def choices(
    view: View,
    key: str,
    label: str,
    tiles: Sequence[Tile],
    inputs: NDArray[Any],
    chosen: int | None,
    choose: Callable[[int], None],
) -> None:
    """Show inputs of any origin to choose from."""
    shown: list[dict[str, object]] = [
        {"test": tile.number, "caption": tile.caption, "spoken": _said(tile.caption)} for tile in tiles
    ]
    sheet = None
    if inputs.ndim == 4:
        sheet = make_sheet(input_images.pictures(inputs, 1))
    elif is_series(view.test):
        sheet = make_sheet(input_images.lines(inputs, dark=is_dark()))
    for place, tile in enumerate(shown):
        if sheet:
            tile["places"] = [place]
        else:
            tile["words"] = [(word, "") for word in words_of(view.test, inputs[place])[:_MOST_WORDS]] or [
                ("(none)", "")
            ]
            tile["glue"] = glue(view.test)
    _draw(key, label, shown, sheet, chosen, choose)


def changed(
    key: str,
    tiles: Sequence[Tile],
    before: NDArray[np.floating],
    after: NDArray[np.floating],
    chosen: int | None,
    choose: Callable[[int], None],
) -> int:
    """Show pictures (n, C, H, W) before and after, with the change, to choose from; return its magnification."""
    change = after - before
    factor = magnification(change)
    parts = [input_images.pictures(before, 1), input_images.pictures(after, 1), magnified(change, factor, 1)]
    shown: list[dict[str, object]] = [
        {
            "test": tile.number,
            "caption": tile.caption,
            "spoken": _said(tile.caption),
            "places": [place + len(tiles) * part for part in range(len(parts))],
        }
        for place, tile in enumerate(tiles)
    ]
    _draw(key, "Changed inputs to select", shown, make_sheet(np.concatenate(parts)), chosen, choose)
    return factor


def digest(view: View, positions: NDArray[np.int64]) -> str:
    """Name some tests of a setup in a key, so that several galleries of a page differ."""
    return f"{crc32(repr((view.setup, np.asarray(positions).tolist())).encode()):08x}"


def _legend(view: View) -> str:
    """Say how captions of tests are to be read."""
    if not view.is_classifier:
        what = quantity(view.test)
        return f"True → predicted {what.name}{f', positive {what.positive}' if what.signed else ''}"
    text = "True → predicted class"
    return text if view.correct is None else f"{text} ({WRONG}: misclassified)"


def _left_out(shown: int, all_of_them: int) -> str:
    return f" {shown} of {plural(all_of_them, 'test')} are shown." if shown < all_of_them else ""


def draw_tiles(tiles: Sequence[dict[str, object]], sheet: dict[str, object] | None, key: str) -> None:
    """Show tiles that select their tests."""
    _draw(key, "Tests to select", tiles, sheet, selected().input, select_or_drop)


def select_or_drop(number: int) -> None:
    """Select the test that was clicked; a second click takes that back."""
    select(input=None if number == selected().input else number)


def _draw(
    key: str,
    label: str,
    tiles: Sequence[dict[str, object]],
    sheet: dict[str, object] | None,
    chosen: int | None,
    choose: Callable[[int], None],
    grows: str = "",
) -> None:
    """Show tiles of which one is chosen; a click chooses another one, whose picture grows into the one that `grows`."""
    numbers = [tile["test"] for tile in tiles]

    def tell() -> None:
        if (number := st.session_state[key].chosen) in numbers:
            choose(int(number))

    data = {"tiles": list(tiles), "sheet": sheet, "label": label, "selected": chosen, "grows": grows}
    _tiles(key=key, data=data, on_chosen_change=tell)


def make_sheet(tiles: NDArray[np.uint8]) -> dict[str, object]:
    """Put pictures (n, H, W, 3) on one sheet, in their own size: the browser enlarges them."""
    tiles = np.ascontiguousarray(tiles)
    times = input_images.factor(tiles.shape[2])
    return {
        "address": _written(hashlib.sha256(tiles.data).digest(), tiles.shape, tiles),
        "columns": _COLUMNS,
        "rows": -(-len(tiles) // _COLUMNS),
        "width": times * tiles.shape[2],
        "height": times * tiles.shape[1],
    }


@st.cache_resource(max_entries=128, show_spinner=False)
def _written(digest: bytes, shape: tuple[int, ...], _tiles: NDArray[np.uint8]) -> str:
    """Write a sheet of pictures as an address that holds it, once: that takes longer than all else of a gallery."""
    content = input_images.webp(input_images.side_by_side(_tiles, _COLUMNS), _MOST_BYTES)
    return f"data:image/webp;base64,{base64.b64encode(content).decode()}"


def _spoken(view: View, position: int) -> str:
    return _said(caption(view, position))


def _said(text: str) -> str:
    return text.replace("→", "predicted as").replace(WRONG, "(misclassified)")


def _marked_words(view: View, position: int, relevance: NDArray[np.floating] | None) -> list[tuple[str, str]]:
    """Return the first words of a text, each marked where it has much relevance, for or against."""
    words = words_of(view.test, view.test.inputs[position])[:_MOST_WORDS]
    if not words:
        return [("(no known words)", "")]
    marks = [""] * len(words)
    if relevance is not None:
        ids = view.test.inputs[position]
        relevance = relevance[ids != view.test.padding] if ids.dtype.kind in "iu" else relevance
        strong = np.abs(relevance[: len(words)]).max() / 4
        for index, (word, value) in enumerate(zip(words, relevance, strict=False)):
            if abs(value) > strong and word != "…":
                marks[index] = "for" if value > 0 else "against"
    return list(zip(words, marks, strict=True))


def written(view: View, tokens: NDArray[np.generic]) -> str:
    """Write a text as the network reads it."""
    return glue(view.test).join(words_of(view.test, tokens))
