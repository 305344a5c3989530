"""Figures as they are handed to the browser: written once, and drawn once."""

from __future__ import annotations

import zlib

import numpy as np
import plotly.graph_objects as go


class _Drawn(go.Figure):  # type: ignore[misc]
    """A figure that is finished: its parts are collected once, not at every run of a page."""

    def finish(self) -> _Drawn:
        """Keep the parts as they are now; later changes are not seen."""
        self._kept = self.to_dict()
        return self

    def to_dict(self) -> dict[str, dict[str, object]]:
        """Return the parts, the kept ones where the figure is finished."""
        kept: dict[str, dict[str, object]] | None = self.__dict__.get("_kept")
        if kept is None:
            kept = super().to_dict()
            # Plotly takes every template for a new one; the figures have none of their own.
            kept["layout"].pop("template", None)
        return kept


def drawn_once(figure: go.Figure, *, clickable: bool = False) -> _Drawn:
    """Return a copy that a page's second rendering of a chart leaves as it is; `clickable` where marks can be.

    Streamlit hands every figure to plotly twice, as two copies. Plotly compares them part by part and draws everything
    again where they differ. So a revision says that the data are the same, numbers are sent as lists, as the compact
    arrays of plotly's own are decoded anew each time and never the same, and what Streamlit would change for clicks
    is set already.
    """
    traces = [_lists(trace.to_plotly_json()) for trace in figure.data]
    # What the figure holds was checked when it was made, which takes ten times as long as all the rest.
    copy = _Drawn(traces, _lists(figure.layout.to_plotly_json()), _validate=False)
    copy.layout.template = None
    if clickable:
        drag = copy.layout.dragmode or "pan"
        click = "event" if drag in ("lasso", "select") else "event+select"
        copy.update_layout(dragmode=drag, clickmode=click, hovermode=copy.layout.hovermode or "closest")
    copy.update_layout(datarevision=zlib.crc32(copy.to_json().encode()))
    return copy.finish()


def _lists(part: object) -> object:
    """Write arrays of one dimension as lists; pictures stay compact, and plotly reads their rows as a list."""
    if isinstance(part, dict):
        return {name: _lists(value) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return [_lists(value) for value in part]
    return part.tolist() if isinstance(part, np.ndarray) and part.ndim == 1 else part
