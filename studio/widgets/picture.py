"""One picture with its caption, written once: that takes longer than drawing the rest around it."""

from __future__ import annotations

import hashlib

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idc_core.figures import input_images
from studio.text import literal


def draw_picture(tile: NDArray[np.uint8], caption: str, alt: str = "") -> None:
    """Show a picture (H, W, 3 or 4) in its own size; `alt` is for who cannot see it, by default the caption."""
    tile = np.ascontiguousarray(tile)
    content = _png(hashlib.sha256(tile.data).digest(), tile.shape, tile)
    st.image(content, caption=literal(caption), width=tile.shape[1], alt=alt or caption)


@st.cache_resource(max_entries=256, show_spinner=False)
def _png(digest: bytes, shape: tuple[int, ...], _tile: NDArray[np.uint8]) -> bytes:
    return input_images.png(_tile)
