"""Figures of the Important neurons page: who decides, and whether relevance follows activation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from idc_core.figures.palette import Palette, palette
from idc_core.figures.style import finish, finish_panels, panels

MOST_BARS = 60
"""Neurons drawn at most in a ranking; more bars cannot be told apart."""

MOST_POINTS = 200
"""Tests drawn at most for one neuron: a browser draws a mark for each, and a cloud needs no more."""


def ranking(
    importance: NDArray[np.float64],
    important: NDArray[np.int64],
    title: str,
    *,
    per_class: NDArray[np.float64] | None = None,
    class_label: str = "",
    dark: bool = False,
) -> go.Figure:
    """Draw neurons by summed relevance, the chosen ones with a pattern as well as a colour.

    Parameters
    ----------
    importance : ndarray of float64 (neurons,)
        Relevance summed over the training inputs.
    important : ndarray of int64 (m,)
        The chosen neurons.
    title : str
        The finding.
    per_class : ndarray of float64 (neurons,), optional
        The same sum over the training inputs of the chosen classes alone.
    class_label : str
        Name of those classes.
    dark : bool
        Whether the ground is dark.

    Returns
    -------
    plotly.graph_objects.Figure
    """
    colours = palette(dark)
    order = np.argsort(-importance, kind="stable")[:MOST_BARS]
    names = [str(neuron) for neuron in order]
    chosen = np.isin(order, important)
    figure = go.Figure()
    for inside in (True, False):
        if (chosen == inside).any():
            where = np.flatnonzero(chosen == inside)
            label = f"chosen, m = {len(important)}" if inside else "others"
            values = importance[order[where]]
            figure.add_bar(x=[names[i] for i in where], y=values, name=label, marker=_fill(inside, colours),
                           hovertemplate="neuron %{x}<br>summed relevance %{y:.4g}<extra></extra>")  # fmt: skip
    if per_class is not None:
        figure.add_scatter(
            x=names,
            y=per_class[order],
            mode="markers",
            name=f"only class {class_label}",
            marker={"symbol": "diamond", "size": 8, "color": colours.error},
            hovertemplate=f"neuron %{{x}}<br>class {class_label}: %{{y:.4g}}<extra></extra>",
        )
    figure.update_xaxes(
        title="neuron, by summed relevance", type="category", categoryorder="array", categoryarray=names,
        tickangle=-90 if len(names) > MOST_BARS // 2 else 0, showgrid=False,
    )  # fmt: skip
    figure.update_yaxes(title="summed relevance (score units)")
    return finish(figure, title, colours, height=380)


def _fill(chosen: bool, colours: Palette) -> dict[str, Any]:
    """Fill a bar: the chosen ones are hatched and outlined as well as coloured."""
    if not chosen:
        return {"color": colours.muted}
    return {
        "color": colours.accent,
        "line": {"color": colours.ink, "width": 1.5},
        "pattern": {"shape": "/", "fillmode": "overlay", "fgcolor": colours.ground, "size": 6, "solidity": 0.25},
    }


def activation_relevance(
    activations: NDArray[np.floating],
    relevance: NDArray[np.floating],
    correct: NDArray[np.bool_] | None,
    neurons: Sequence[str],
    title: str,
    *,
    seed: int = 0,
    dark: bool = False,
) -> go.Figure:
    """Draw relevance against activation for each chosen neuron, one small panel a neuron.

    Parameters
    ----------
    activations, relevance : ndarray of float (n, m)
        Of every test and chosen neuron.
    correct : ndarray of bool (n,) or None
        Whether a test is classified correctly; misclassified tests get another colour and mark.
    neurons : sequence of str
        Titles of the m panels.
    title : str
        The finding.
    seed : int
        Draws the tests that are shown where there are more than `MOST_POINTS`; up to half are misclassified.
    dark : bool
        Whether the ground is dark.

    Returns
    -------
    plotly.graph_objects.Figure
    """
    colours = palette(dark)
    figure, places = panels(neurons)
    right = np.ones(len(activations), dtype=np.bool_) if correct is None else correct
    shown = _sample(right, seed)
    groups = (
        (shown & right, "correct" if correct is not None else "test", colours.accent, "circle-open", 5),
        (shown & ~right, "misclassified", colours.error, "x", 7),
    )
    for index, where in enumerate(places):
        for kept, label, colour, symbol, size in groups:
            if kept.any():
                figure.add_scatter(
                    x=activations[kept, index], y=relevance[kept, index], mode="markers", name=label,
                    legendgroup=label, showlegend=index == 0,
                    marker={"color": colour, "symbol": symbol, "size": size, "opacity": 0.75},
                    hovertemplate="activation %{x:.3g}<br>relevance %{y:.3g}<extra></extra>", **where,
                )  # fmt: skip
    return finish_panels(figure, places, "activation", "relevance", title, colours)


def _sample(right: NDArray[np.bool_], seed: int) -> NDArray[np.bool_]:
    """Choose the tests to draw: a seeded sample in which half are misclassified, where there are enough."""
    shown = np.zeros(len(right), dtype=np.bool_)
    rng = np.random.default_rng(seed)
    wrong, fine = rng.permutation(np.flatnonzero(~right)), rng.permutation(np.flatnonzero(right))
    few = max(MOST_POINTS // 2, MOST_POINTS - len(fine))
    shown[wrong[:few]] = True
    shown[fine[: MOST_POINTS - min(few, len(wrong))]] = True
    return shown


def correlations(activations: NDArray[np.floating], relevance: NDArray[np.floating]) -> NDArray[np.float64]:
    """Pearson correlation of activation and relevance, one value a neuron.

    Parameters
    ----------
    activations, relevance : ndarray of float (n, m)

    Returns
    -------
    ndarray of float64 (m,)
        In -1..1; NaN where either one never changes.
    """
    a = activations.astype(np.float64) - activations.mean(axis=0, dtype=np.float64)
    r = relevance.astype(np.float64) - relevance.mean(axis=0, dtype=np.float64)
    scale = np.sqrt((a * a).sum(axis=0) * (r * r).sum(axis=0))
    values = np.full(a.shape[1], np.nan)
    np.divide((a * r).sum(axis=0), scale, out=values, where=scale > 0)
    return values
