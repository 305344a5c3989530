"""Figures of retraining: accuracy after every epoch on each test, and differences of additions at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from idc_core.experiments.retraining_results import Difference, Retraining
from idc_core.figures.palette import Palette, palette
from idc_core.figures.style import band, finish, finish_panels, named_rows, panels

_BAND = 0.16
"""Opacity of a band: three of them lie on top of each other."""

_APART = 0.24
"""Distance of the marks of one test, in parts of the distance of two tests."""


@dataclass(frozen=True)
class _Mark:
    """Colour, dash and symbol of an addition: colour is never the only sign."""

    colour: str
    dash: str
    symbol: str


def _marks(names: Sequence[str], colours: Palette) -> dict[str, _Mark]:
    """Return the marks of additions: the baseline quiet, then as random and chosen neurons are drawn elsewhere."""
    styles = (
        _Mark(colours.muted, "dot", "circle-open"),
        _Mark(colours.accent, "dash", "square"),
        _Mark(colours.error, "solid", "diamond"),
        _Mark(colours.ink, "dashdot", "triangle-up"),
    )
    return {name: styles[place % len(styles)] for place, name in enumerate(names)}


def curves(
    found: Retraining, additions: Mapping[str, str], tests: Mapping[str, str], title: str, *, dark: bool = False
) -> go.Figure:
    """Draw a panel per test: for every addition the mean over the seeds, and a band of one standard deviation."""
    colours = palette(dark)
    factor, ending = (100.0, " %") if found.task == "classification" else (1.0, "")
    mean, deviation = factor * found.mean(), factor * found.deviation()
    most = factor if found.task == "classification" else np.inf
    epochs = np.arange(found.epochs + 1)
    figure, places = panels([tests[name] for name in found.tests])
    for row, (name, mark) in enumerate(_marks(found.additions, colours).items()):
        if not found.finished(name):
            continue
        for column, place in enumerate(places):
            middle, spread = mean[row, :, column], deviation[row, :, column]
            if np.isfinite(spread).all():
                # There is no accuracy above 100 %, and no error below 0: an axis must not show any.
                above, below = np.minimum(middle + spread, most), np.maximum(middle - spread, 0.0)
                band(figure, epochs, below, above, _clear(mark.colour), mode="lines", showlegend=False, **place)
            figure.add_scatter(
                x=epochs,
                y=middle,
                mode="lines+markers",
                name=additions[name],
                legendgroup=name,
                showlegend=column == 0,
                line={"color": mark.colour, "dash": mark.dash, "width": 2},
                marker={"symbol": mark.symbol, "size": 7, "color": mark.colour},
                hovertemplate=f"{additions[name]}<br>after %{{x}} epochs: %{{y:.4g}}{ending}<extra></extra>",
                **place,
            )
    figure.update_xaxes(dtick=max(1, found.epochs // 5), range=[-0.2, found.epochs + 0.2])
    figure.update_yaxes(ticksuffix=ending, nticks=6)
    finish_panels(figure, places, "epochs", found.unit, title, colours)
    return figure.update_layout(margin_b=92, margin_l=64)


def _clear(colour: str) -> str:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {_BAND})"


def differences(
    found: Retraining,
    pairs: Sequence[Difference],
    additions: Mapping[str, str],
    tests: Mapping[str, str],
    title: str,
    *,
    dark: bool = False,
) -> go.Figure:
    """Draw the differences after the last epoch: a mark per pair and test, with its confidence interval."""
    colours = palette(dark)
    share = found.task == "classification"
    factor, unit = (100.0, "points of accuracy") if share else (1.0, found.unit)
    drawn = _marks([*found.additions, ""], colours)
    rows = np.arange(len(found.tests))
    figure = go.Figure()
    for place, (pair, mark) in enumerate(zip(pairs, reversed(list(drawn.values())[1:]), strict=False)):
        label = f"{additions[pair.addition]} \u2212 {additions[pair.against]}"
        half = factor * (pair.high - pair.mean)
        figure.add_scatter(
            x=factor * pair.mean,
            y=rows + _APART * (place - (len(pairs) - 1) / 2),
            mode="markers",
            name=label,
            marker={"symbol": mark.symbol, "size": 9, "color": mark.colour},
            error_x={"array": np.nan_to_num(half), "color": mark.colour, "thickness": 2, "width": 5},
            customdata=np.stack([factor * pair.low, factor * pair.high], axis=1),
            hovertemplate=f"{label}<br>%{{x:+.3g}} (%{{customdata[0]:+.3g}} to %{{customdata[1]:+.3g}})<extra></extra>",
        )
    figure.add_vline(0, line={"color": colours.ink, "width": 1})
    figure.update_yaxes(**named_rows([tests[name] for name in found.tests]), showgrid=False)
    figure.update_xaxes(title=f"difference in {unit} after {found.epochs} epochs", title_standoff=8)
    return finish(figure, title, colours, height=190 + 56 * len(rows))
