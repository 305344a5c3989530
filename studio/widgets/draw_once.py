"""What makes a browser draw a figure once, not twice."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import plotly.graph_objects as go


def drawn_once(figure: go.Figure, *, clickable: bool = False) -> go.Figure:
    """Return a copy that the page's second rendering of a chart leaves as it is.

    Streamlit hands every figure to plotly twice, as two copies. Plotly compares them part by part and draws everything
    again where they differ. So a revision says that the data are the same, numbers are sent as lists, as the compact
    arrays of plotly's own are decoded anew each time and never the same, and what Streamlit would change for clicks
    is set already.

    Parameters
    ----------
    figure : plotly.graph_objects.Figure
    clickable : bool
        Whether marks can be clicked.

    Returns
    -------
    plotly.graph_objects.Figure
    """
    import plotly.graph_objects as go

    traces = [_lists(trace.to_plotly_json()) for trace in figure.data]
    copy = go.Figure(traces, _lists(figure.layout.to_plotly_json()))
    # Plotly takes every template for a new one; the figures have none of their own.
    copy.layout.template = None
    if clickable:
        drag = copy.layout.dragmode or "pan"
        click = "event" if drag in ("lasso", "select") else "event+select"
        copy.update_layout(dragmode=drag, clickmode=click, hovermode=copy.layout.hovermode or "closest")
    return copy.update_layout(datarevision=zlib.crc32(copy.to_json().encode()))


def _lists(part: Any) -> Any:
    """Write arrays of one dimension as lists; pictures stay compact, and plotly reads their rows as a list."""
    if isinstance(part, dict):
        return {name: _lists(value) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return [_lists(value) for value in part]
    return part.tolist() if isinstance(part, np.ndarray) and part.ndim == 1 else part
