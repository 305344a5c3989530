"""Figures of searches: seed, disagreement and magnified difference; seeds with a disagreement by steps."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from idc_core.errors import SettingError
from idc_core.figures.adversarial import magnification, magnified
from idc_core.figures.input_images import GAP, SMALLEST_SIDE, pictures
from idc_core.figures.palette import palette
from idc_core.figures.style import finish, logarithmic_x


def triplet(
    seed: NDArray[np.floating], disagreement: NDArray[np.floating], smallest: int = SMALLEST_SIDE
) -> tuple[NDArray[np.uint8], int]:
    """Draw two pictures (C, H, W) in 0..1 and their magnified difference side by side; return it and the magnification.

    RGBA, uint8 (h, 3 w + gaps, 4), transparent between the pictures, each at least `smallest` pixels wide.
    """
    change = np.asarray(disagreement, np.float64)[None] - seed
    factor = magnification(change)
    drawn = np.concatenate([pictures(np.stack([seed, disagreement]), smallest), magnified(change, factor, smallest)])
    covered = np.concatenate([drawn, np.full((*drawn.shape[:3], 1), 255, np.uint8)], axis=3)
    gap = np.zeros((covered.shape[1], GAP, 4), np.uint8)
    return np.concatenate([covered[0], gap, covered[1], gap, covered[2]], axis=1), factor


def disagreements_by_step(
    iterations: NDArray[np.int64], seeds: int, most: int, title: str, *, logarithmic: bool = False, dark: bool = False
) -> go.Figure:
    """Draw the share of the seeds with a disagreement after 0 to `most` steps; `iterations` (n,) are those it took.

    `logarithmic` is of the steps.
    """
    if not 1 <= seeds >= len(iterations):
        raise SettingError(f"Expected at most one disagreement per seed, got {len(iterations)} from {seeds} seeds.")
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
        hovertemplate="after %{x} steps: %{customdata:,} disagreements, %{y:.3g} % of the seeds<extra></extra>",
    )
    figure.update_xaxes(title="steps", range=[0, most], tickformat=",d", rangemode="tozero")
    figure.update_yaxes(title="seeds with a disagreement (%)", range=[0, 102])
    if logarithmic:
        logarithmic_x(figure)
    finish(figure, title, colours, height=300)
    return figure.update_layout(margin_b=52)
