"""Pictures of tests that appear under the pointer, where the marks of a chart are tests.

Plotly's labels hold no pictures. One sheet holds those of all marks; the browser fetches it when the first mark is
pointed at, so that a page without a pointer on it pays nothing.
"""

from __future__ import annotations

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from streamlit import runtime

from idc_core.figures import input_images
from studio.jobs.results import View
from studio.widgets.charts import component

_MOST_PIXELS = 48
"""Sides of larger pictures are thinned out: they are looked at for a moment."""

_SHOWN_PIXELS = 84
"""About the side of a picture on the screen."""

_COLUMNS = 30

_hover = component("idc_hover", "hover", "pictures")


def hover_pictures(view: View, chart: str, positions: NDArray[np.int64]) -> None:
    """Show the picture of a test while its mark in a chart is pointed at; the marks' `customdata` are its numbers."""
    if not view.has_pictures or not runtime.exists():
        return
    content, height, width = _sheet(view.test.fingerprint, positions.tobytes(), view.test.inputs, positions)
    files = runtime.get_instance().media_file_mgr
    times = max(1, round(_SHOWN_PIXELS / width))
    sheet = {
        "address": files.add(content, "image/webp", f"hover-{chart}"),
        "columns": _COLUMNS,
        "rows": -(-len(positions) // _COLUMNS),
        "width": times * width,
        "height": times * height,
    }
    _hover(key=f"hover-{chart}", data={"plot": chart, "tests": view.test.ids[positions].tolist(), "sheet": sheet})


@st.cache_resource(max_entries=8, show_spinner=False)
def _sheet(
    tests: str, places: bytes, _inputs: NDArray[np.floating], _positions: NDArray[np.int64]
) -> tuple[bytes, int, int]:
    """Put the pictures of some tests on one sheet; return it with the height and width of one."""
    every = -(-max(_inputs.shape[2:]) // _MOST_PIXELS)
    small = input_images.pictures(_inputs[_positions][:, :, ::every, ::every], 1)
    return input_images.glance(input_images.side_by_side(small, _COLUMNS)), small.shape[1], small.shape[2]
