"""What the chapters of the Learn page are made of: choices, sliders, formulas, questions, and where they stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from studio.shell import presenting
from studio.state.choices import choose_one
from studio.widgets.layout import label

if TYPE_CHECKING:
    import plotly.graph_objects as go

_Number = TypeVar("_Number", int, float)


def choose(label: str, options: Mapping[str, str], key: str, help: str) -> str:
    """Let the reader choose one option; the first is the default."""
    first = next(iter(options))
    text = f"{help} Default {options[first]}."
    return choose_one(st.segmented_control, label, options, first, key, required=True, help=text)


def slide(label: str, most: _Number, default: _Number, key: str, help: str) -> _Number:
    """Let the reader choose a whole number from 0 on, or a part of 1.0."""
    step: Any = 0.05 if isinstance(most, float) else 1
    text = f"{help} From 0 to {most:g}; default {default:g}."
    value: _Number = st.slider(label, type(most)(0), most, default, step, key=key, bind="query-params", help=text)
    return value


def halves() -> tuple[DeltaGenerator, DeltaGenerator]:
    """Return where a chapter's text and its picture go: below each other, side by side where they are presented."""
    if presenting.is_on():
        text, picture = st.columns(2, gap="medium")
        return text, picture
    both = st.container()
    return both, both


def fitted(figure: go.Figure, height: int) -> go.Figure:
    """Return a figure as high as the screen has room for where it is presented; else as it is."""
    return figure.update_layout(height=height) if presenting.is_on() else figure


def number(value: float, digits: int = 2) -> str:
    """Write a number for a formula, without a negative zero."""
    return f"{value if abs(value) >= 0.5 * 10**-digits else 0.0:.{digits}f}"


def product(value: float, weight: float, digits: int = 2) -> str:
    """Write what a line carries."""
    factor = number(weight, digits)
    return rf"{number(value, digits)} \times {f'({factor})' if factor.startswith('-') else factor}"


def question(text: str, answer: str) -> None:
    """Ask; a click on the question opens the answer."""
    with st.expander(f"{label('Question')}: {text}"):
        st.markdown(answer)
