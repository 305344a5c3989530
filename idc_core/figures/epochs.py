"""Figures of training: scores by epoch, a line a hypothesis, a few of them told apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from idc_core.figures.palette import Palette, palette
from idc_core.figures.style import finish, spread

_MOST_TOLD = 6
"""Lines that are told apart at most."""

_HEIGHT = 440
_LABELS = 236
"""Pixels to the right of the last epoch, for the names of lines."""

_APART = 0.058
"""Least distance of two names, in parts of the height."""

_FAINT = 0.32
"""Opacity of the lines that are not told apart."""

_WIDEST = 26
"""Characters of a name at most."""


@dataclass(frozen=True)
class _Line:
    """How a line is drawn and named: by colour, dash and mark, so that none has to be told by its colour alone."""

    colour: str
    dash: str
    mark: str
    sign: str


def _lines(colours: Palette) -> tuple[_Line, ...]:
    """Return how lines that are told apart are drawn; the first one is the chosen one's."""
    return (
        _Line(colours.error, "solid", "diamond", "◆"),
        _Line(colours.accent, "solid", "circle", "●"),
        _Line(colours.ink, "dash", "square", "■"),
        _Line(colours.accent, "dot", "triangle-up", "▲"),
        _Line(colours.ink, "dashdot", "triangle-down", "▼"),
        _Line(colours.accent, "longdash", "cross", "✚"),
    )


def by_epoch(
    epochs: Sequence[str],
    values: NDArray[np.float64],
    names: Sequence[str],
    told: Sequence[int],
    title: str,
    axis: str,
    *,
    keys: NDArray[np.int64],
    chosen: int | None = None,
    dark: bool = False,
) -> go.Figure:
    """Draw one line per hypothesis over the epochs; at most `_MOST_TOLD` of them, `told`, bear names, others are grey.

    `values` are (n, hypotheses); `keys` (n, hypotheses, k) are what a click tells of each mark, in `customdata`; the
    `chosen` hypothesis is drawn thicker.
    """
    colours = palette(dark)
    first = [] if chosen is None else [chosen]
    told = [*first, *(line for line in told if line != chosen)][:_MOST_TOLD]
    styles = _lines(colours) if first else _lines(colours)[1:]
    figure = go.Figure(_others(values, names, np.setdiff1d(np.arange(values.shape[1]), told), keys, epochs, colours))
    places = list(range(len(epochs)))
    for line, style in reversed(list(zip(told, styles, strict=False))):
        figure.add_scatter(
            x=places,
            y=values[:, line].tolist(),
            mode="lines+markers",
            showlegend=False,
            name=names[line],
            customdata=keys[:, line].tolist(),
            line={"color": style.colour, "dash": style.dash, "width": 4 if line == chosen else 2},
            marker={"color": style.colour, "symbol": style.mark, "size": 11 if line == chosen else 9},
            text=[_hover(names[line], epoch, value) for epoch, value in zip(epochs, values[:, line], strict=True)],
            hovertemplate="%{text}<extra></extra>",
        )
    low, high = _range(values)
    ends = spread(np.nan_to_num(values[-1, told]).tolist(), low, high, _APART)
    for line, style, height in zip(told, styles, ends, strict=False):
        name = f"{_short(names[line])} {_number(float(values[-1, line]))}"
        figure.add_annotation(
            x=places[-1],
            y=height,
            xanchor="left",
            xshift=16,
            showarrow=False,
            align="left",
            text=f'<span style="color:{style.colour}">{style.sign}</span> '
            + (f"<b>{name}</b>" if line == chosen else name),
            font={"size": 12, "color": colours.ink},
        )
    figure.update_xaxes(
        title="finished epochs of training",
        tickvals=places,
        ticktext=list(epochs),
        zeroline=False,
        showgrid=False,
        range=[-0.15, len(epochs) - 0.85],
    )
    figure.update_yaxes(title=axis, range=[low, high], zeroline=low < 0)
    return finish(figure, title, colours, height=_HEIGHT).update_layout(margin={"r": _LABELS, "b": 76})


def _others(
    values: NDArray[np.float64],
    names: Sequence[str],
    which: NDArray[np.int64],
    keys: NDArray[np.int64],
    epochs: Sequence[str],
    colours: Palette,
) -> go.Scatter:
    """Return all other lines as one trace, each broken off from the next."""
    x: list[int | None] = []
    y: list[float | None] = []
    data: list[list[int] | None] = []
    text: list[str] = []
    for line in which.tolist():
        x += [*range(len(epochs)), None]
        y += [*values[:, line].tolist(), None]
        data += [*keys[:, line].tolist(), None]
        text += [_hover(names[line], epoch, value) for epoch, value in zip(epochs, values[:, line], strict=True)]
        text.append("")
    return go.Scatter(
        x=x,
        y=y,
        customdata=data,
        text=text,
        mode="lines+markers",
        showlegend=False,
        connectgaps=False,
        line={"color": colours.muted, "width": 1},
        marker={"color": colours.muted, "size": 5},
        opacity=_FAINT,
        hovertemplate="%{text}<extra></extra>",
    )


def _hover(name: str, epoch: str, value: float) -> str:
    return f"{name}<br>after {epoch.replace('<br>', ' epochs, ')}: {value:.3f}"


def _number(value: float) -> str:
    """Write the value at a line's end, with a minus that is as wide as a plus."""
    return f"{value:.2f}".replace("-", "\u2212") if np.isfinite(value) else "(no score)"


def _range(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the ends of the axis: from 0, unless there are values below."""
    low, high = min(0.0, float(np.nanmin(values))), max(0.0, float(np.nanmax(values)))
    room = 0.06 * ((high - low) or 1.0)
    return (low - room if low < 0 else low), high + room


def _short(name: str) -> str:
    return name if len(name) <= _WIDEST else f"{name[: _WIDEST - 1]}…"
