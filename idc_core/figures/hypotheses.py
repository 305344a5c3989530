"""Figures of the Hypotheses page: scores of hypotheses and units, one pair on a text, important units among all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from idc_core.figures.palette import SCHEMES, Palette, palette
from idc_core.figures.style import finish, named_rows, numbered

_ROW_PIXELS = 20
"""Height of a hypothesis in the map."""

_WIDEST = 44
"""Characters of a hypothesis's name at most."""

_MINUS_FROM = 0.15
"""Strength from which a negative score carries its sign."""

MOST_MARKS = 5000
"""Squares up to which each can be clicked; more are too many for a browser."""


def score_map(
    scores: NDArray[np.float64],
    hypotheses: Sequence[str],
    units: Sequence[int],
    title: str,
    measure: str,
    *,
    keys: tuple[Sequence[int], Sequence[int]],
    signed: bool,
    passes: NDArray[np.bool_],
    selected: tuple[int | None, int | None] = (None, None),
    dark: bool = False,
) -> go.Figure:
    """Draw one square per hypothesis and unit; empty where the association is not significant (`passes`).

    Up to `MOST_MARKS` squares a second trace holds a mark per square that a page can make clickable; its `customdata`
    is (key of the hypothesis, key of the unit), from `keys`. `selected` is a row and a column to frame.
    """
    colours = palette(dark)
    shown = np.where(passes, scores, np.nan).astype(np.float32)
    limit = float(np.nanmax(np.abs(shown))) if np.isfinite(shown).any() else 1.0
    scale = SCHEMES["red-blue"].scale(dark) if signed else colours.scale
    step = max(1, len(units) // 80)
    side = f"{measure} %{{z:.3f}}"
    figure = go.Figure(
        go.Heatmap(
            z=shown,
            x=list(range(len(units))),
            y=list(range(len(hypotheses))),
            zmin=-limit if signed else 0,
            zmax=limit,
            xgap=1,
            ygap=1,
            colorscale=scale,
            hoverongaps=False,
            hovertemplate=side + "<extra></extra>",
            colorbar={"title": {"text": measure, "side": "right"}, "thickness": 12},
        )
    )
    if scores.size <= MOST_MARKS:
        figure.add_trace(_marks(scores, hypotheses, units, measure, keys, passes))
    minus = [["\u2212" if value < -_MINUS_FROM else "" for value in row] for row in shown]
    numbered(figure, minus, (shown / limit + 1) / 2, scale)
    for index, along in enumerate(selected):
        if along is not None:
            low, high = along - 0.5, along + 0.5
            ends = (
                {"y0": low, "y1": high, "x0": -0.5, "x1": len(units) - 0.5}
                if index == 0
                else {"x0": low, "x1": high, "y0": -0.5, "y1": len(hypotheses) - 0.5}
            )
            figure.add_shape(type="rect", line={"color": colours.error, "width": 2}, **ends)
    figure.update_xaxes(
        title="neuron, strongest scores first",
        tickvals=list(range(0, len(units), step)),
        ticktext=[str(units[at]) for at in range(0, len(units), step)],
        tickangle=-90,
        showgrid=False,
        zeroline=False,
        range=[-0.5, len(units) - 0.5],
    )
    rows = list(map(_short, hypotheses))
    figure.update_yaxes(**named_rows(rows), showgrid=False)
    finish(figure, title, colours, height=150 + _ROW_PIXELS * max(6, len(rows)))
    longest = max(map(len, rows), default=0)
    return figure.update_layout(margin={"l": 30 + 6 * longest, "r": 92, "b": 64}, showlegend=False)


def _marks(
    scores: NDArray[np.float64],
    hypotheses: Sequence[str],
    units: Sequence[int],
    measure: str,
    keys: tuple[Sequence[int], Sequence[int]],
    passes: NDArray[np.bool_],
) -> go.Scatter:
    """Return one invisible mark per square: heatmaps tell of no clicks."""
    rows, columns = (axis.ravel() for axis in np.mgrid[0 : len(hypotheses), 0 : len(units)])
    return go.Scatter(
        x=columns.tolist(),
        y=rows.tolist(),
        mode="markers",
        showlegend=False,
        customdata=np.stack([np.take(keys[0], rows), np.take(keys[1], columns)], 1).tolist(),
        marker={"symbol": "square", "size": 12, "opacity": 0},
        text=[
            f"{hypotheses[row]}<br>neuron {units[column]}<br>{measure} {scores[row, column]:.3f}"
            + ("" if passes[row, column] else ", not significant")
            for row, column in zip(rows, columns, strict=True)
        ],
        hovertemplate="%{text}<extra></extra>",
    )


def _hatched(shape: str, colours: Palette) -> dict[str, object]:
    """Return a pattern that lies over a bar's colour; without saying so plotly draws the pattern alone."""
    return {"shape": shape, "fillmode": "overlay", "fgcolor": colours.ground, "size": 6, "solidity": 0.2}


def _short(name: str) -> str:
    return name if len(name) <= _WIDEST else f"{name[: _WIDEST - 1]}…"


def ranked_scores(
    names: Sequence[str],
    keys: Sequence[int],
    scores: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    passes: NDArray[np.bool_],
    title: str,
    measure: str,
    *,
    chosen: int | None = None,
    dark: bool = False,
) -> go.Figure:
    """Draw the strongest scores (n,) as marks with their confidence intervals, strongest on top, `chosen` framed.

    `customdata` of a mark is its key; filled marks are significant (`passes`).
    """
    colours = palette(dark)
    around = [np.nan_to_num(high - scores), np.nan_to_num(scores - low)]
    figure = go.Figure(
        go.Scatter(
            x=scores.tolist(),
            y=list(range(len(names))),
            mode="markers",
            customdata=list(keys),
            error_x={
                "array": around[0].tolist(),
                "arrayminus": around[1].tolist(),
                "color": colours.muted,
                "thickness": 1.5,
                "width": 4,
            },
            marker={
                "size": [15 if key == chosen else 10 for key in keys],
                "color": colours.accent,
                "symbol": ["circle" if passed else "circle-open" for passed in passes],
                "line": {
                    "color": [colours.error if key == chosen else colours.accent for key in keys],
                    "width": [3 if key == chosen else 1.5 for key in keys],
                },
            },
            text=[
                f"{name}<br>{score:.3f} ({a:.3f} to {b:.3f})"
                for name, score, a, b in zip(names, scores, low, high, strict=True)
            ],
            hovertemplate="%{text}<extra></extra>",
            showlegend=False,
        )
    )
    figure.add_vline(x=0, line={"color": colours.line, "width": 1})
    figure.update_xaxes(title=measure, zeroline=False)
    rows = list(map(_short, names))
    figure.update_yaxes(**named_rows(rows))
    finish(figure, title, colours, height=150 + 26 * max(4, len(rows)), wrap=52)
    longest = max(map(len, rows), default=0)
    return figure.update_layout(margin={"l": 24 + 7 * longest, "b": 56})


def string_trace(
    symbols: Sequence[str],
    activations: NDArray[np.floating],
    behaviour: NDArray[np.floating],
    title: str,
    unit: str,
    hypothesis: str,
    *,
    dark: bool = False,
) -> go.Figure:
    """Draw a unit's activation at each of n symbols of a text, and the hypothesis's behaviour under it."""
    colours = palette(dark)
    places = list(range(len(symbols)))
    common: dict[str, object] = {"x": places, "text": list(symbols), "showlegend": False}
    figure = go.Figure(
        [
            go.Scatter(
                y=np.asarray(activations, float).tolist(),
                mode="lines+markers",
                yaxis="y",
                line={"color": colours.accent, "width": 2},
                marker={"size": 6},
                hovertemplate=f"“%{{text}}”<br>{unit} %{{y:.3f}}<extra></extra>",
                **common,
            ),
            go.Bar(
                y=np.asarray(behaviour, float).tolist(),
                yaxis="y2",
                width=1,
                marker={"color": colours.error, "line": {"width": 0}, "pattern": _hatched("/", colours)},
                textposition="none",
                hovertemplate=f"“%{{text}}”<br>{hypothesis}: %{{y:.3g}}<extra></extra>",
                **common,
            ),
        ]
    )
    wide = max((len(symbol) for symbol in symbols), default=1) > 2
    shown = ["␣" if symbol == " " else symbol for symbol in symbols]
    figure.update_xaxes(
        tickvals=places,
        ticktext=shown,
        tickangle=-60 if wide else 0,
        showgrid=False,
        zeroline=False,
        anchor="y2",
        range=[-0.6, len(symbols) - 0.4],
    )
    high = max(1.0, float(np.max(behaviour, initial=0)))
    finish(figure, title, colours, height=330 if wide else 290)
    line = {
        "gridcolor": colours.line,
        "linecolor": colours.line,
        "zerolinecolor": colours.line,
        "tickfont": {"size": 11, "color": colours.muted},
    }
    words = {"size": 12, "color": colours.muted}
    figure.update_layout(
        yaxis={"domain": [0.36, 1], "title": {"text": unit, "font": words}, **line},
        yaxis2={
            "domain": [0, 0.24],
            "range": [min(0.0, float(np.min(behaviour, initial=0))), high],
            "title": {"text": "hypothesis", "font": words},
            "nticks": 2,
            **line,
        },
        margin={"l": 64, "b": 76 if wide else 40},
        bargap=0,
    )
    return figure


def by_truth(
    true: NDArray[np.floating],
    false: NDArray[np.floating],
    title: str,
    unit: str,
    hypothesis: str,
    *,
    dark: bool = False,
) -> go.Figure:
    """Draw histograms of a unit's mean per record where a hypothesis is true and where it is false, as shares."""
    colours = palette(dark)
    values = np.concatenate([true, false]).astype(np.float64)
    edges = np.linspace(values.min(), max(values.max(), values.min() + 1e-9), 25)
    figure = go.Figure()
    looks = (
        (f"{hypothesis} (n = {len(true):,})", true, colours.error, "/"),
        (f"others (n = {len(false):,})", false, colours.accent, ""),
    )
    for name, part, colour, pattern in looks:
        counts, _ = np.histogram(part, edges)
        share = 100 * counts / max(1, len(part))
        figure.add_bar(
            x=((edges[1:] + edges[:-1]) / 2).tolist(),
            y=share.tolist(),
            name=name,
            width=float(edges[1] - edges[0]),
            opacity=0.75,
            marker={"color": colour, "pattern": _hatched(pattern, colours)},
            hovertemplate="%{x:.3g}: %{y:.1f} %<extra></extra>",
        )
    figure.update_layout(barmode="overlay", bargap=0)
    figure.update_xaxes(title=f"mean activation of {unit}")
    figure.update_yaxes(title="share of tests (%)")
    return finish(figure, title, colours, height=330)


def by_class(
    values: Sequence[NDArray[np.floating]], names: Sequence[str], title: str, unit: str, *, dark: bool = False
) -> go.Figure:
    """Draw a unit's values per class, the highest mean on top: a mark at each mean, a line over the middle half."""
    colours = palette(dark)
    there = [at for at, own in enumerate(values) if len(own)]
    there.sort(key=lambda at: -float(values[at].mean()))
    means = [float(values[at].mean()) for at in there]
    low, high = ([float(np.quantile(values[at], share)) for at in there] for share in (0.25, 0.75))
    figure = go.Figure()
    for place, (start, end) in enumerate(zip(low, high, strict=True)):
        figure.add_shape(type="line", x0=start, x1=end, y0=place, y1=place, line={"color": colours.muted, "width": 4})
    figure.add_scatter(
        x=means,
        y=list(range(len(there))),
        mode="markers",
        showlegend=False,
        marker={"size": 11, "symbol": "diamond", "color": colours.accent},
        text=[f"{names[at]}: {len(values[at]):,} values" for at in there],
        customdata=np.stack([low, high], 1).tolist(),
        hovertemplate="%{text}<br>mean %{x:.3f}, middle half %{customdata[0]:.3f} to %{customdata[1]:.3f}"
        "<extra></extra>",
    )
    figure.update_xaxes(title=f"activation of {unit}")
    rows = [_short(names[at]) for at in there]
    figure.update_yaxes(**named_rows(rows))
    finish(figure, title, colours, height=150 + 22 * max(4, len(rows)))
    longest = max(map(len, rows), default=0)
    return figure.update_layout(margin={"l": 24 + 7 * longest, "b": 56})


def importance_against(
    importance: NDArray[np.float64],
    best: NDArray[np.float64],
    important: NDArray[np.int64],
    names: Sequence[str],
    title: str,
    measure: str,
    *,
    dark: bool = False,
) -> go.Figure:
    """Draw every unit by its importance and strongest association, important ones marked; `customdata` is the unit."""
    colours = palette(dark)
    figure = go.Figure()
    rest = np.setdiff1d(np.arange(len(best)), important)
    for label, units, colour, symbol, size in (
        ("other neurons", rest, colours.muted, "circle-open", 7),
        ("important neurons", important, colours.error, "diamond", 12),
    ):
        figure.add_scatter(
            x=importance[units].tolist(),
            y=best[units].tolist(),
            mode="markers",
            name=label,
            customdata=units.tolist(),
            marker={"color": colour, "symbol": symbol, "size": size},
            text=[f"neuron {unit}: {names[unit]}<br>{best[unit]:.3f}" for unit in units],
            hovertemplate="%{text}<extra></extra>",
        )
    figure.update_xaxes(title="importance (relevance summed over the training inputs)")
    figure.update_yaxes(title=f"strongest score ({measure})", rangemode="tozero")
    return finish(figure, title, colours, height=420)
