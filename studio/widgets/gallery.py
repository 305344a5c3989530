"""Galleries of tests, in which a click selects a test on all pages."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idc_core.figures import input_images
from studio.engine.results import View
from studio.engine.wording import amount, features, input_parts, quantity
from studio.state.selection import select, selected
from studio.text import plural
from studio.widgets.charts import component

WRONG = "\u00d7"
"""Marks a misclassified test."""

MOST_WORDS = 60
"""Words of a text shown in a gallery."""

MOST_BYTES = 90_000
"""Bytes of a gallery's pictures up to which they are sent exactly."""

_COLUMNS = 10

_tiles = component("idc_gallery", "gallery", "tiles")


def answer(view: View, position: int) -> str:
    """Write a test's true and predicted class, or number."""
    said = view.analysis.predictions[position]
    if not view.is_classifier:
        true, predicted = float(view.test.targets[position]), float(view.analysis.confidence[position])
        return f"{amount(view.test, true, unit=False)} → {amount(view.test, predicted)}"
    true = view.test.class_names[view.test.targets[position]]
    wrong = view.correct is not None and not view.correct[position]
    return f"{true} → {view.train.class_names[said]}{f' {WRONG}' if wrong else ''}"


def caption(view: View, position: int) -> str:
    """Write a test's number and answers."""
    return f"{view.test.ids[position]}: {answer(view, position)}"


def gallery(
    view: View,
    positions: NDArray[np.int64],
    most: int,
    relevance: NDArray[np.floating] | None = None,
    key: str | None = None,
) -> None:
    """Show tests to choose from: pictures, pictures beside their relevance, or words."""
    shown = positions[:most]
    if not len(shown):
        st.caption("No test to show.")
        return
    key = key or f"gallery-{digest(view, shown)}"
    numbers = [int(number) for number in view.test.ids[shown]]
    tiles: list[dict[str, Any]] = [
        {"test": number, "caption": caption(view, place), "spoken": _spoken(view, place)}
        for number, place in zip(numbers, shown, strict=True)
    ]
    sheet = None
    if view.test.inputs.ndim == 4:
        parts = [input_images.pictures(view.test.inputs[shown], 1)]
        if relevance is not None:
            parts.append(input_images.heatmaps(relevance, 1))
        sheet = make_sheet(np.concatenate(parts))
        for index, tile in enumerate(tiles):
            tile["places"] = [index] if relevance is None else [index, len(shown) + index]
    else:
        for row, (tile, place) in enumerate(zip(tiles, shown, strict=True)):
            tile["words"] = marked_words(view, place, None if relevance is None else relevance[row])
            tile["glue"] = _glue(view)
    draw_tiles(tiles, sheet, key)
    st.caption(f"{legend(view)}. Click one to select it on all pages.{_left_out(len(shown), len(positions))}")


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
    shown: list[dict[str, Any]] = [
        {"test": tile.number, "caption": tile.caption, "spoken": _said(tile.caption)} for tile in tiles
    ]
    sheet = make_sheet(input_images.pictures(inputs, 1)) if inputs.ndim == 4 else None
    for place, tile in enumerate(shown):
        if sheet:
            tile["places"] = [place]
        else:
            tile["words"] = [(word, "") for word in words_of(view, inputs[place])[:MOST_WORDS]] or [("(none)", "")]
            tile["glue"] = _glue(view)
    numbers = [tile.number for tile in tiles]

    def tell() -> None:
        if (number := st.session_state[key].chosen) in numbers:
            choose(int(number))

    _tiles(key=key, data={"tiles": shown, "sheet": sheet, "label": label, "selected": chosen}, on_chosen_change=tell)


def digest(view: View, positions: NDArray[np.int64]) -> str:
    """Name some tests of a setup in a key, so that several galleries of a page differ."""
    return f"{crc32(repr((view.setup, np.asarray(positions).tolist())).encode()):08x}"


def legend(view: View) -> str:
    """Say how captions of tests are to be read."""
    if not view.is_classifier:
        what = quantity(view.test)
        return f"Number of the test: true → predicted {what.name}{f', positive {what.positive}' if what.signed else ''}"
    text = "Number of the test: true → predicted class"
    return text if view.correct is None else f"{text}; {WRONG}: misclassified"


def _left_out(shown: int, all_of_them: int) -> str:
    return f" {shown} of {plural(all_of_them, 'test')} are shown." if shown < all_of_them else ""


def _choose(key: str, numbers: list[int]) -> None:
    """Select the test that was clicked; a second click takes that back."""
    number = st.session_state[key].chosen
    if number in numbers:
        select(input=None if number == selected().input else number)


def draw_tiles(tiles: Sequence[dict[str, Any]], sheet: dict[str, Any] | None, key: str) -> None:
    """Show tiles that select their tests."""
    numbers = [tile["test"] for tile in tiles]
    _tiles(
        key=key,
        data={"tiles": list(tiles), "sheet": sheet, "label": "Tests to select", "selected": selected().input},
        on_chosen_change=lambda: _choose(key, numbers),
    )


def make_sheet(tiles: NDArray[np.uint8]) -> dict[str, Any]:
    """Put pictures (n, H, W, 3) on one sheet, in their own size: the browser enlarges them."""
    content = input_images.webp(input_images.side_by_side(tiles, _COLUMNS), MOST_BYTES)
    times = input_images.factor(tiles.shape[2])
    return {
        "address": f"data:image/webp;base64,{base64.b64encode(content).decode()}",
        "columns": _COLUMNS,
        "rows": -(-len(tiles) // _COLUMNS),
        "width": times * tiles.shape[2],
        "height": times * tiles.shape[1],
    }


def _spoken(view: View, position: int) -> str:
    return _said(caption(view, position))


def _said(text: str) -> str:
    return text.replace("→", "predicted as").replace(WRONG, "(misclassified)")


def marked_words(view: View, position: int, relevance: NDArray[np.floating] | None) -> list[tuple[str, str]]:
    """Return the first words of a text, each marked where it has much relevance, for or against."""
    words = text_words(view, position)[:MOST_WORDS]
    if not words:
        return [("(no known words)", "")]
    marks = [""] * len(words)
    if relevance is not None:
        strong = np.abs(relevance[: len(words)]).max() / 4
        for index, (word, value) in enumerate(zip(words, relevance, strict=False)):
            if abs(value) > strong and word != "…":
                marks[index] = "for" if value > 0 else "against"
    return list(zip(words, marks, strict=True))


def text_words(view: View, position: int) -> list[str]:
    """Return the words or characters of a text; three dots for each that the network does not know."""
    return words_of(view, view.test.inputs[position])


def words_of(view: View, tokens: NDArray[Any]) -> list[str]:
    """Return the words of token ids, as `text_words` does, or the features of a vector."""
    if tokens.dtype.kind == "f":
        return features(view.test, tokens)
    return [view.test.vocabulary[token] if token > 1 else "…" for token in tokens[tokens > 0]]


def written(view: View, tokens: NDArray[Any]) -> str:
    """Write a text as the network reads it."""
    return _glue(view).join(words_of(view, tokens))


def _glue(view: View) -> str:
    """Return what stands between two words, or between two characters where a text is read by them."""
    return {"characters": "", "words": " ", "features": ", "}[input_parts(view.test)]
