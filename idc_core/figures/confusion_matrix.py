"""The confusion matrix: how many inputs of each true class are predicted as each class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from idc_core.figures.palette import Palette, at, ink_on, palette
from idc_core.figures.style import SHORT, finish
from idc_core.figures.wording import percent

MOST_DRAWN = 60
"""Classes drawn at most; of more, those with most misclassified inputs."""

_MOST_NUMBERS = 20
"""Classes up to which every number is written into its cell."""


def drawn_classes(counts: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the classes that are drawn, int64 (k,), in their order: all, or those in most misclassified inputs."""
    wrong = counts - np.diag(np.diag(counts))
    order = np.argsort(-(wrong.sum(0) + wrong.sum(1)), kind="stable")
    return np.sort(order[:MOST_DRAWN]).astype(np.int64)


def confusion_matrix(
    counts: NDArray[np.integer],
    names: Sequence[str],
    title: str,
    *,
    shares: bool = False,
    selected: tuple[int, int] | None = None,
    dark: bool = False,
) -> go.Figure:
    """Draw the confusion matrix, int (classes, classes), rows: true classes.

    Only misclassified inputs are coloured, by their share of the true class; correct ones are framed. Up to
    `_MOST_NUMBERS` classes each number is written into its cell: the count, or with `shares` the percentage of the true
    class. Cells with inputs can be clicked: the two classes, such as ``4-9``, are their `customdata`. The `selected`
    cell gets a frame.
    """
    colours = palette(dark)
    classes = drawn_classes(counts)
    inputs = counts.sum(1, keepdims=True)
    share = np.divide(counts, inputs, out=np.zeros(counts.shape), where=inputs > 0)[np.ix_(classes, classes)]
    shown = counts[np.ix_(classes, classes)]
    labels = [names[number] for number in classes]
    off = ~np.eye(len(classes), dtype=bool)
    most = float(share[off].max(initial=0)) or 1.0
    wrong = np.where((shown > 0) & off, 100 * share, np.nan).astype(np.float32)
    figure = go.Figure(
        go.Heatmap(
            z=wrong,
            zmin=0,
            zmax=100 * most,
            xgap=1,
            ygap=1,
            colorscale=colours.scale,
            hoverinfo="skip",
            hoverongaps=False,
            colorbar={"title": {"text": "misclassified (% of the true class)", "side": "right"}, "thickness": 12},
        )
    )
    places = np.argwhere(shown > 0)
    for correct in (False, True):
        some = places[(places[:, 0] == places[:, 1]) == correct]
        # Correct predictions have no colour: they are read on the ground.
        parts = share[some[:, 0], some[:, 1]]
        inks = [colours.ink if correct else ink_on(at(colours.scale, float(part) / most)) for part in parts]
        _cells(figure, some, shown, share, classes, names, inks, shares)
    _frames(figure, len(classes), colours)
    if selected is not None and all(number in classes for number in selected):
        row, column = np.searchsorted(classes, selected).tolist()
        box = {"x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5}
        figure.add_shape(type="rect", line={"color": colours.error, "width": 3}, **box)
    longest = max(map(len, labels), default=0)
    ends = [len(classes) - 0.5, -0.5]
    axes = {"tickvals": list(range(len(classes))), "ticktext": labels, "showgrid": False, "zeroline": False}
    figure.update_xaxes(title="predicted class", range=ends[::-1], tickangle=-45 if longest > SHORT else 0, **axes)
    figure.update_yaxes(title="true class", range=ends, **axes)
    finish(figure, title, colours, height=min(190 + 26 * max(8, len(classes)), 1000), wrap=74)
    return figure.update_layout(margin={"l": 60 + 6 * min(longest, 26), "r": 92, "b": 80 + 5 * min(longest, 22)})


def _cells(
    figure: go.Figure,
    places: NDArray[np.int64],
    counts: NDArray[np.integer],
    share: NDArray[np.float64],
    classes: NDArray[np.int64],
    names: Sequence[str],
    inks: list[str],
    shares: bool,
) -> None:
    """Lay invisible marks with the numbers over the cells: those of a heatmap cannot be clicked."""
    rows, columns = places.T
    number, part = counts[rows, columns], share[rows, columns]
    numbers = len(classes) <= _MOST_NUMBERS
    true, predicted = classes[rows], classes[columns]
    figure.add_scatter(
        x=columns,
        y=rows,
        mode="markers+text" if numbers else "markers",
        showlegend=False,
        marker={"symbol": "square", "size": 20, "opacity": 0},
        customdata=[f"{a}-{b}" for a, b in zip(true, predicted, strict=True)],
        text=([f"{100 * one:.1f}" for one in part] if shares else [f"{one:,}" for one in number]) if numbers else None,
        textposition="middle center",
        textfont={"size": 11, "color": inks},
        hovertext=[
            f"{names[a]} as {names[b]}<br>{n:,} ({percent(float(p))} of {names[a]})"
            for a, b, n, p in zip(true, predicted, number, part, strict=True)
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _frames(figure: go.Figure, classes: int, colours: Palette) -> None:
    """Frame the correct predictions."""
    corners = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5], [-0.5, -0.5], [np.nan, np.nan]])
    frames = np.concatenate([corners + place for place in range(classes)])
    figure.add_scatter(
        x=frames[:, 0],
        y=frames[:, 1],
        mode="lines",
        line={"color": colours.muted, "width": 1},
        hoverinfo="skip",
        showlegend=False,
    )
