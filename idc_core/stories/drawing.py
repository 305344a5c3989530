"""Drawings: figures as a room reads them, written as plain values that are kept, sent on, and checked when they return.

A figure is kept with larger writing and without the title that a slide's sentence takes the place of. What plotly could
fetch from elsewhere, or run, has no place in a drawing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from idc_core.errors import DataError

if TYPE_CHECKING:
    import plotly.graph_objects as go

Drawing: TypeAlias = dict[str, Any]
"""A figure as plotly takes it: its parts `data` and `layout`."""

SMALLEST = 16
"""Pixels that writing has at least."""

_LARGER, _SMALLER = 1.25, 0.7
"""How much larger writing is than in a chart on its page, and how much smaller again beside a list of slides."""

_DIGITS = 6
"""Significant digits of numbers."""

MOST_PARTS = 5_000
"""Objects that a drawing consists of, at most: its traces, axes, notes, shapes, pictures, and what these hold."""

_MOST_PIXELS, _MOST_NUMBER = 1_000, 1e300
"""The largest size of writing or of a mark, and the largest number of any kind."""

_FONTS = ("font", "tickfont", "textfont", "insidetextfont", "outsidetextfont")

_TRACES = ("bar", "box", "heatmap", "scatter")
"""Kinds of traces that the figures of this project are made of."""

_AXIS = re.compile(r"[xy]axis\d*")
_PART = re.compile(
    r"annotations|autosize|(bar|box)(gap|groupgap|mode)|coloraxis|colorway|font|hover(distance|label|mode)|images|legend|"
    r"margin|(paper|plot)_bgcolor|shapes|showlegend|spikedistance|uniformtext"
)
"""Parts of a layout, beside its axes, that draw and do nothing else."""

_PICTURE = re.compile(r"data:image/(png|webp);base64,[A-Za-z0-9+/=]+")
_LEADS_ELSEWHERE = re.compile(r"<\s*a\b|url\s*\(|javascript:", re.IGNORECASE)


def large(figure: go.Figure) -> Drawing:
    """Return a figure as it is drawn on a slide: without title and height, its writing at least `SMALLEST` pixels."""
    from idc_core.figures.colourings import MARK, WRONG

    # As a whole, plotly would pack the arrays.
    layout = {name: part for name, part in _plain(figure.layout.to_plotly_json()).items() if _is_part(name)}
    # As large as a room reads them, the marks of tiles would hide their pictures: frames say the same by their colour.
    marked = layout.pop("annotations", [])
    if kept := [one for one in marked if one.get("name") != MARK or one["text"] == WRONG]:
        layout["annotations"] = kept
    data = [_written(_plain(trace.to_plotly_json()), _LARGER, SMALLEST) for trace in figure.data]
    layout = _written(
        {"font": {"size": SMALLEST}, "hoverlabel": {"font": {"size": SMALLEST}}, **layout}, _LARGER, SMALLEST
    )
    margin = layout.get("margin", {})
    layout |= {
        "margin": margin | {"t": 44 if layout.get("annotations") else 20, "b": round(_LARGER * margin.get("b", 60))},
        "autosize": True,
    }
    for axis in filter(_AXIS.fullmatch, layout):
        # Else plotly lays the title on larger labels.
        layout[axis] |= {"automargin": True, "title": layout[axis].get("title", {}) | {"standoff": 12}}
    return {"data": data, "layout": layout}


def small(drawing: Drawing) -> Drawing:
    """Return a drawing as it is shown beside a list of slides: its writing at least 11 pixels."""
    smaller: Drawing = _written(drawing, _SMALLER, 11)
    return smaller


def check(drawing: Drawing, where: str) -> None:
    """Raise `DataError` where a drawing from outside holds more than a drawing.

    Parameters
    ----------
    drawing : dict
        Plain values, of any form.
    where : str
        What holds it, for messages: the beginning of a sentence.
    """
    data, layout = drawing.get("data"), drawing.get("layout")
    if drawing.keys() != {"data", "layout"} or not isinstance(data, list) or not isinstance(layout, dict):
        raise DataError(f"{where} has a chart that is none: expected its parts data and layout.")
    if (parts := count_parts(drawing)) > MOST_PARTS:
        raise DataError(f"{where} has a chart of {parts:,} parts; expected at most {MOST_PARTS:,}.")
    for trace in data:
        if not isinstance(trace, dict) or trace.get("type") not in _TRACES:
            raise DataError(f"{where} has a chart with a trace of another kind than {', '.join(_TRACES)}.")
    for name in layout:
        if not _is_part(name):
            raise DataError(f"{where} has a chart whose layout has the part {name[:60]!r}, which no slide has.")
    for name, value in _leaves(drawing):
        if isinstance(value, str):
            if (name == "source" and not _PICTURE.fullmatch(value)) or _LEADS_ELSEWHERE.search(value):
                raise DataError(f"{where} has a chart that leads elsewhere: {value[:60]!r}.")
        elif not abs(value) <= (most := _MOST_PIXELS if name == "size" else _MOST_NUMBER):
            raise DataError(f"{where} has a chart with a {name[:60] or 'number'} above {most:g}.")


def count_parts(part: object) -> int:
    """Count the objects that a drawing, or a part of it, consists of."""
    if isinstance(part, Mapping):
        return 1 + sum(map(count_parts, part.values()))
    return sum(map(count_parts, part)) if isinstance(part, list) else 0


def check_drawable(drawing: Drawing, where: str) -> None:
    """Raise `DataError` where plotly cannot draw a drawing that passes `check`."""
    import plotly.graph_objects as go

    try:
        go.Figure(drawing)
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        raise DataError(f"{where} has a chart that cannot be drawn ({str(error).strip()[:120]}).") from error


def _is_part(name: str) -> bool:
    return bool(_PART.fullmatch(name) or _AXIS.fullmatch(name))


def _leaves(part: object, name: str = "") -> Iterator[tuple[str, str | float]]:
    """Yield all texts and numbers, each with the name of what it is in."""
    if isinstance(part, str | int | float):
        yield name, part
    elif isinstance(part, Mapping):
        for key, value in part.items():
            yield from _leaves(value, key)
    elif isinstance(part, list):
        for value in part:
            yield from _leaves(value, name)


def _written(part: Any, times: float, least: int) -> Any:
    """Return a part of a figure with its writing so many times as large."""
    if isinstance(part, list):
        return [_written(one, times, least) for one in part] if any(isinstance(one, dict) for one in part) else part
    if not isinstance(part, dict):
        return part
    written = {name: _written(one, times, least) for name, one in part.items()}
    for name in _FONTS:
        size = written[name].get("size") if isinstance(written.get(name), dict) else None
        if isinstance(size, int | float):
            written[name]["size"] = max(least, round(times * size))
        elif isinstance(size, list):
            written[name]["size"] = [max(least, round(times * one)) for one in size]
    return written


def _plain(part: Any) -> Any:
    """Write a part of a figure as JSON has it; numbers as exactly as anybody sees."""
    if isinstance(part, np.ndarray | np.generic):
        return _plain(part.tolist())
    if isinstance(part, Mapping):
        return {name: _plain(one) for name, one in part.items()}
    if isinstance(part, list | tuple):
        return [_plain(one) for one in part]
    if isinstance(part, float):
        return float(f"{part:.{_DIGITS}g}") if math.isfinite(part) else None
    return part if part is None or isinstance(part, str | bool | int) else str(part)
