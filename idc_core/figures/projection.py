"""The figure of a projection: inputs as points on a plane, coloured and marked by groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from idc_core.figures.palette import CLASSES, Palette, palette
from idc_core.figures.style import finish, rings

MOST_GROUPS: Final = len(CLASSES)
"""Groups that are told apart; smaller ones are drawn as one."""

SYMBOLS: Final = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "cross",
    "x",
    "triangle-down",
    "star",
    "pentagon",
    "hourglass",
)
"""A mark a group, so that colour is never the only sign."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Which group each point belongs to."""

    member: NDArray[np.int64]  # (n,), index of each point's group
    names: Sequence[str]  # names of the groups
    ordered: bool = False  # whether the groups go from low to high, so that they take one hue from pale to strong


def gather(member: NDArray[np.int64], names: Sequence[str], rest: str) -> Groups:
    """Keep the largest groups apart, in the order of the names, and put the others into one, if there are too many."""
    if len(names) <= MOST_GROUPS:
        return Groups(member, names)
    size = np.bincount(member, minlength=len(names))
    kept = np.sort(np.argsort(-size, kind="stable")[: MOST_GROUPS - 1])
    place = np.full(len(names), MOST_GROUPS - 1, dtype=np.int64)
    place[kept] = np.arange(MOST_GROUPS - 1)
    return Groups(place[member], [*(names[index] for index in kept), rest])


def plane(
    points: NDArray[np.floating],
    groups: Groups,
    ids: NDArray[np.int64],
    axes: tuple[str, str],
    title: str,
    *,
    selected: int | None = None,
    together: Sequence[int] | NDArray[np.int64] = (),
    lasso: bool = False,
    dark: bool = False,
) -> go.Figure:
    """Draw inputs (n, 2) on a plane, a colour and a mark a group; marks carry their `ids` as `customdata`.

    `selected` is one point to name, `together` are points to ring.
    """
    colours = palette(dark)
    figure = go.Figure()
    for index, name in enumerate(groups.names):
        inside = groups.member == index
        if not inside.any():
            continue
        # SVG marks: those drawn on a canvas of WebGL cannot be clicked everywhere.
        figure.add_scatter(
            x=points[inside, 0],
            y=points[inside, 1],
            mode="markers",
            name=f"{name} ({int(inside.sum())})",
            customdata=ids[inside],
            marker={
                "symbol": SYMBOLS[index % len(SYMBOLS)],
                "size": 8,
                "opacity": 0.85,
                "color": _colour(index, groups, colours),
                "line": {"color": colours.ink, "width": 0.6},
            },
            hovertemplate=f"test %{{customdata}}<br>{name}<extra></extra>",
        )
    if len(together):
        figure.add_scatter(x=points[together, 0], y=points[together, 1], **rings(len(together), colours))
    if selected is not None:
        figure.add_scatter(
            x=points[selected : selected + 1, 0],
            y=points[selected : selected + 1, 1],
            mode="markers+text",
            name=f"selected test {ids[selected]}",
            customdata=ids[selected : selected + 1],
            marker={"symbol": "circle-open", "size": 20, "color": colours.ink, "line": {"width": 3}},
            text=[f"test {ids[selected]}"],
            textposition="top center",
            hoverinfo="skip",
        )
    figure.update_xaxes(title=axes[0], zeroline=False)
    figure.update_yaxes(title=axes[1], zeroline=False)
    finish(figure, title, colours, height=560)
    figure.update_layout(dragmode="lasso" if lasso else "zoom", margin={"b": 110})
    return figure


def _colour(index: int, groups: Groups, colours: Palette) -> str:
    """Pale to strong where groups go from low to high, else the fixed colours."""
    if not groups.ordered:
        return CLASSES[index % len(CLASSES)]
    steps = colours.counts
    return steps[round(index * (len(steps) - 1) / max(1, len(groups.names) - 1))]
