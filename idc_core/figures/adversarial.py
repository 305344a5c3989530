"""Figures of the Adversarial page: sizes of changes, confusion before and after, attacks side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from idc_core.figures.input_images import pictures
from idc_core.figures.palette import ON_FILL, palette, suite_style
from idc_core.figures.style import bar_panels, finish, finish_panels, numbered, panels

_BINS = 15
"""Odd, so that sizes that are equal but for rounding lie in the middle one."""
FACTORS = (1, 2, 5, 10, 20, 50, 100)
"""By how much a change can be magnified."""


def size_panels(
    sizes: Mapping[str, NDArray[np.floating]], fooled: NDArray[np.bool_], title: str, *, dark: bool = False
) -> go.Figure:
    """Draw how far inputs were changed, a panel per measure.

    `sizes` holds one size per input by the measure's name with its unit; `fooled`, bool (n,), is drawn in two colours.
    """
    colours = palette(dark)
    figure, places = panels(list(sizes))
    for index, (values, where) in enumerate(zip(sizes.values(), places, strict=True)):
        edges = _edges(np.asarray(values, np.float64))
        for name, inside, colour, pattern in (
            ("fooled", fooled, colours.error, ""),
            ("not fooled", ~fooled, colours.counts[1], "/"),
        ):
            if not inside.any():
                continue
            figure.add_bar(
                x=(edges[1:] + edges[:-1]) / 2,
                y=np.histogram(values[inside], edges)[0],
                width=np.diff(edges),
                name=name,
                legendgroup=name,
                showlegend=index == 0,
                marker={
                    "color": colour,
                    "line": {"color": colours.ground, "width": 1},
                    "pattern": {"shape": pattern, "fillmode": "overlay", "fgcolor": ON_FILL, "size": 7},
                },
                hovertemplate=f"%{{x:.4g}}<br>%{{y}} inputs {name}<extra></extra>",
                **where,
            )
    figure.update_layout(barmode="stack", bargap=0)
    return finish_panels(figure, places, "size of the change", "inputs", title, colours)


def _edges(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return edges of bins from the smallest to the largest size, even where all are equal but for rounding."""
    low, high = float(values.min(initial=np.inf)), float(values.max(initial=0.0))
    if not high - low > 1e-4 * high:
        middle = high if np.isfinite(low) else 0.0
        low, high = 0.9 * middle, 1.1 * middle or 1.0
    return np.linspace(low, high, _BINS + 1)


def confusions(
    before: NDArray[np.int64], after: NDArray[np.int64], classes: Sequence[str], title: str, *, dark: bool = False
) -> go.Figure:
    """Draw confusion matrices, int64 (classes, classes), before and after an attack; rows: true classes."""
    colours = palette(dark)
    figure = make_subplots(1, 2, subplot_titles=["before", "after"], shared_yaxes=True, horizontal_spacing=0.04)
    most = int(max(before.max(initial=0), after.max(initial=0), 1))
    places = list(range(len(classes)))
    for column, counts in enumerate((before, after), start=1):
        shown = np.where(counts > 0, counts, np.nan).astype(np.float32)
        figure.add_heatmap(
            z=shown,
            x=places,
            y=places,
            zmin=0,
            zmax=most,
            colorscale=colours.scale,
            xgap=1,
            ygap=1,
            hoverongaps=False,
            showscale=column == 2,
            colorbar={"title": {"text": "inputs", "side": "right"}, "thickness": 12},
            customdata=np.array([[[row, predicted] for predicted in classes] for row in classes], dtype=object),
            hovertemplate="class %{customdata[0]} as %{customdata[1]}: %{z}<extra></extra>",
            row=1,
            col=column,
        )
        texts = [[f"{count:,}" if count else "" for count in row] for row in counts]
        numbered(figure, texts, counts / most, colours.scale, row=1, col=column)
        corners = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5], [-0.5, -0.5], [np.nan, np.nan]])
        frames = np.concatenate([corners + place for place in places])
        figure.add_scatter(
            x=frames[:, 0],
            y=frames[:, 1],
            mode="lines",
            line={"color": colours.muted, "width": 1},
            hoverinfo="skip",
            showlegend=False,
            row=1,
            col=column,
        )
    ends = [len(classes) - 0.5, -0.5]
    axes = {"tickvals": places, "ticktext": list(classes), "showgrid": False, "zeroline": False}
    figure.update_xaxes(title="predicted class", range=ends[::-1], tickangle=-45 if _long(classes) else 0, **axes)
    figure.update_yaxes(range=ends, **axes)
    figure.update_yaxes(title="true class", col=1)
    finish(figure, title, colours, height=170 + 26 * max(8, len(classes)))
    figure.update_layout(margin_b=56 + (40 if _long(classes) else 0), margin_r=90)
    return figure.update_annotations(font={"size": 13, "color": colours.ink})


def _long(classes: Sequence[str]) -> bool:
    return max(map(len, classes), default=0) > 3


def attack_bars(
    labels: Sequence[str],
    kinds: Sequence[str],
    panels_of: Mapping[str, tuple[Sequence[float], Sequence[str]]],
    title: str,
    *,
    dark: bool = False,
) -> go.Figure:
    """Draw attacks side by side, a panel per measure, a bar per attack.

    `kinds` are keys of `ATTACKS`; `panels_of` holds a value per attack and how it is written; NaN leaves a bar out.
    """
    colours = palette(dark)
    styles = [suite_style(kind) for kind in kinds]
    marker = {
        "color": [style.colour(dark) for style in styles],
        "line": {"color": colours.ink, "width": [1 if style.outline else 0 for style in styles]},
    }
    values = {name: np.asarray(numbers, np.float64) for name, (numbers, _) in panels_of.items()}
    return bar_panels(values, [texts for _, texts in panels_of.values()], labels, marker, title, colours)


def magnification(change: NDArray[np.floating]) -> int:
    """Return the largest of `FACTORS` with which no value of a change leaves the scale; 1 where nothing changed."""
    largest = float(np.abs(change).max(initial=0.0))
    return max(factor for factor in FACTORS if factor == 1 or 0 < factor * largest <= 1)


def magnified(change: NDArray[np.floating], factor: float, smallest: int) -> NDArray[np.uint8]:
    """Draw changes (n, C, H, W) on grey, uint8 (n, H * f, W * f, 3), at least `smallest` wide; raised: brighter.

    A change of 1 / factor is black or white.
    """
    return pictures(np.clip(0.5 + change * (factor / 2), 0.0, 1.0), smallest)
