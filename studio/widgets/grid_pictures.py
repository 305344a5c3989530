"""Pictures in the tiles of a grid: each shows the most typical test of its cell, a text by its strongest words."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from PIL import Image
from streamlit import runtime

from idc_core.analysis.overview import Overview
from idc_core.figures import input_images
from idc_core.figures.grid import MOST_CELLS, Axes, Grid, default_axes, lay_out
from idc_core.figures.grid_axes import MOST_PICTURED, has_room
from idc_core.figures.grid_tiles import filled, tile_layer
from idc_core.figures.tile_contents import TileContents, small_pictures, strongest_words
from studio.jobs.overview import Snapshot, compare, snapshot, summarise
from studio.jobs.results import View, heatmaps
from studio.state import address
from studio.widgets.charts import is_dark

PART = "tiles"
"""The part of a shipped Overview that holds what its tiles show."""

PICTURES = "pictures"
"""Name in the address: whether tiles show pictures."""

_OFF = "off"

_COLUMNS = 32

_MOST_BYTES = 250_000
"""Bytes of a sheet up to which its pictures are sent exactly."""


def wanted() -> bool:
    """Whether tiles show pictures."""
    return address.read(PICTURES) != _OFF


def switch() -> None:
    """Draw the switch of the pictures."""
    key = f"{PICTURES}-shown"
    st.session_state[key] = wanted()
    st.toggle(
        "Pictures",
        key=key,
        on_change=lambda: address.keep(PICTURES, "" if st.session_state[key] else _OFF),
        help="Show in each tile its most typical test, the one closest to the cell's centroids; in a tile of several "
        "cells, that of the cell with most tests. Without pictures more neurons fit on the axes. Default on.",
    )


def usual_axes(sizes: Sequence[int], fixed: Mapping[int, int] | None = None, most: int = MOST_CELLS) -> Axes:
    """Return the axes of a grid that nobody chose: where pictures are shown, those whose tiles have room for them."""
    return _roomy_axes(sizes, fixed) if wanted() else default_axes(sizes, fixed, most)


def _roomy_axes(sizes: Sequence[int], fixed: Mapping[int, int] | None = None) -> Axes:
    return default_axes(sizes, fixed, within=MOST_PICTURED)


def layer(shown: View | Snapshot, grid: Grid, option: dict[str, Any]) -> dict[str, object]:
    """Return what lies above the tiles of a grid: pictures, where they are wanted, and tests that fall one by one."""
    result = summarise(shown) if isinstance(shown, View) else shown.result
    described = tile_layer(grid, result.table, option, np.asarray(result.rows, dtype=np.int64), dark=is_dark())
    if not wanted() or not has_room(grid) or not runtime.exists():
        return described
    tests = _typical(result, grid)
    content = _shown(shown, tests, dark=is_dark())
    if content is None:
        return described
    return described | {"has_pictures": True, "tests": tests, **_addressed(content, len(tests))}


def contents(shown: View | Snapshot, grid: Grid, *, dark: bool) -> TileContents | None:
    """Return the same for files and slides: what the tiles show, where they are wanted to."""
    if not wanted() or not has_room(grid):
        return None
    result = summarise(shown) if isinstance(shown, View) else shown.result
    tests = _typical(result, grid)
    content = _shown(shown, tests, dark=dark)
    if content is None:
        return None
    tiles = filled(grid, result.table).tile
    return TileContents(tiles, content.pictures(len(tests)), content.words)


def _typical(result: Overview, grid: Grid) -> list[int]:
    """Return the number of the most typical test of each tile that holds tests."""
    return [result.typical[row] for row in filled(grid, result.table).row]


def _shown(shown: View | Snapshot, tests: list[int], *, dark: bool) -> _Content | None:
    """Return what these tests are shown by, as it was made beforehand or from the view; None where neither is there."""
    content = _kept(shown, tests)
    if content is None and isinstance(shown, View):
        content = _content(shown, np.searchsorted(shown.test.ids, tests), dark=dark)
    return content


def _kept(shown: View | Snapshot, tests: list[int]) -> _Content | None:
    """Return what tiles of a shipped setup show, as it was made beforehand; None where these are of other tests."""
    shipped = snapshot(shown.setup) if isinstance(shown, View) else shown
    if shipped is None or not shipped.has(PART):
        return None
    part = shipped.part(PART)
    if part["tests"] != tests:
        return None
    sheet = base64.b64decode(part["sheet"].partition(",")[2]) if part["sheet"] else b""
    return _Content(sheet, part["words"])


def part(view: View) -> dict[str, object]:
    """Return what the file of a view's pictures holds: those of the grid as it opens, with the tests' numbers."""
    result = compare(view)
    grid = lay_out(result.table, list(map(str, result.important)), _roomy_axes(result.table.sizes))
    tests = _typical(result, grid)
    content = _content(view, np.searchsorted(view.test.ids, tests), dark=is_dark())
    sheet = f"data:image/webp;base64,{base64.b64encode(content.sheet).decode()}" if content.sheet else ""
    return {"tests": tests, "sheet": sheet, "words": content.words}


@dataclass(frozen=True)
class _Content:
    """What some tests are shown by: their pictures side by side on a sheet (WebP), or the words of each."""

    sheet: bytes
    words: list[list[str]]

    def pictures(self, count: int) -> NDArray[np.uint8]:
        """Return the first pictures of the sheet, (count, H, W, 3); none of texts."""
        if not self.sheet:
            return np.zeros((0, 1, 1, 3), np.uint8)
        return input_images.apart(np.asarray(Image.open(io.BytesIO(self.sheet)).convert("RGB")), _COLUMNS, count)


def _addressed(content: _Content, count: int) -> dict[str, object]:
    """Make the pictures known to the browser."""
    if not content.sheet:
        return {"words": content.words}
    files = runtime.get_instance().media_file_mgr
    address = files.add(content.sheet, "image/webp", f"tiles-{crc32(content.sheet)}")
    return {"sheet": {"address": address, "columns": _COLUMNS, "rows": -(-count // _COLUMNS)}}


def _content(view: View, positions: NDArray[np.int64], *, dark: bool) -> _Content:
    """Return what tests are shown by: pictures, lines of time series, bars of features, or their strongest words."""
    test = view.test
    if test.inputs.dtype.kind == "f":
        return _Content(
            _sheet((view.train.fingerprint, test.fingerprint, positions.tobytes()), dark, view, positions), []
        )
    # Of texts by characters the first words.
    maps = None if test.is_spelt else heatmaps(view, positions, None)
    return _Content(b"", strongest_words(test, positions, maps))


@st.cache_resource(max_entries=32, show_spinner=False)
def _sheet(key: tuple[str, str, bytes], dark: bool, _view: View, _positions: NDArray[np.int64]) -> bytes:
    """Put the pictures of some tests on one sheet."""
    small = small_pictures(_view.test, _view.train, _positions, dark=dark)
    return input_images.webp(input_images.side_by_side(small, _COLUMNS), _MOST_BYTES)
