"""Figures of searches: seed, find and magnified difference; how many seeds have a find after so many steps."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from idc_core.errors import SettingError
from idc_core.figures.adversarial import magnification, magnified
from idc_core.figures.input_images import GAP, SMALLEST_SIDE, pictures
from idc_core.figures.palette import palette
from idc_core.figures.style import finish


def triplet(
    seed: NDArray[np.floating], find: NDArray[np.floating], smallest: int = SMALLEST_SIDE
) -> tuple[NDArray[np.uint8], int]:
    """Draw seed, find and magnified difference side by side.

    Parameters
    ----------
    seed, find : ndarray of float (C, H, W)
        In 0..1.
    smallest : int
        Width in pixels that each picture reaches at least.

    Returns
    -------
    tile : ndarray of uint8 (h, 3 w + gaps, 4)
        RGBA, transparent between the pictures.
    factor : int
        By how much the difference is magnified.
    """
    change = np.asarray(find, np.float64)[None] - seed
    factor = magnification(change)
    drawn = np.concatenate([pictures(np.stack([seed, find]), smallest), magnified(change, factor, smallest)])
    covered = np.concatenate([drawn, np.full((*drawn.shape[:3], 1), 255, np.uint8)], axis=3)
    gap = np.zeros((covered.shape[1], GAP, 4), np.uint8)
    return np.concatenate([covered[0], gap, covered[1], gap, covered[2]], axis=1), factor


def found_by_step(iterations: NDArray[np.int64], seeds: int, most: int, title: str, *, dark: bool = False) -> go.Figure:
    """Draw how many of the seeds have a find after so many steps.

    Parameters
    ----------
    iterations : ndarray of int64 (n,)
        Steps that each find took.
    seeds : int
        Seeds that were searched from, at least 1.
    most : int
        Steps at most.
    title : str
        The finding.
    dark : bool
        Whether the ground is dark.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    SettingError
        If there are more finds than seeds.
    """
    if not 1 <= seeds >= len(iterations):
        raise SettingError(f"Expected at most one find a seed, got {len(iterations)} from {seeds} seeds.")
    colours = palette(dark)
    steps = np.arange(most + 1)
    counts = (iterations[None] <= steps[:, None]).sum(1)
    figure = go.Figure()
    figure.add_scatter(
        x=steps,
        y=100 * counts / seeds,
        mode="lines",
        line={"color": colours.accent, "width": 2.5, "shape": "hv"},
        fill="tozeroy",
        fillcolor=colours.counts[0],
        customdata=counts,
        showlegend=False,
        hovertemplate="after %{x} steps: %{customdata:,} finds, %{y:.3g} % of the seeds<extra></extra>",
    )
    figure.update_xaxes(title="steps", range=[0, most], tickformat=",d", rangemode="tozero")
    figure.update_yaxes(title="seeds with a find (%)", range=[0, 102])
    finish(figure, title, colours, height=300)
    return figure.update_layout(margin_b=52)
