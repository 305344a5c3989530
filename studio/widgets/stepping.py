"""Stepping through tests, by two buttons or the arrow keys."""

from __future__ import annotations

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from studio.state.selection import select


def draw_steps(numbers: NDArray[np.int64], shown: int) -> None:
    """Offer the test before and the one after the test that is shown, of those with these numbers (k,).

    Both ends are joined; where the test is none of them, both lead to the first.
    """
    place = np.flatnonzero(numbers == shown)
    for label, step, arrow in (("Previous", -1, "Left"), ("Next", 1, "Right")):
        start = int(place[0]) + step if len(place) else 0
        number = str(numbers[start % len(numbers)]) if len(numbers) else ""
        st.button(
            label, on_click=select, kwargs={"input": number}, disabled=not number, key=f"step-{label}", shortcut=arrow
        )
