"""Figures of the Neurons page: which neurons decide, and whether relevance follows activation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from idc_core.figures.palette import SCHEMES, Palette, palette
from idc_core.figures.style import SHORT, finish, finish_panels, numbered, panels, rings
from idc_core.figures.wording import signed

_MOST_BARS = 60
"""Neurons drawn at most in a ranking; more bars cannot be told apart."""

_LAST_BARS = 15
"""How many of them are the last ones of a longer ranking: those that speak against the answers most."""

_GAP = "…"
"""Stands between the first and the last neurons."""

_MOST_MARKS, _FEWEST_POINTS, _MOST_POINTS = 600, 60, 200
"""Marks in all panels, and tests drawn for one neuron: a browser draws a mark for each, and a cloud needs no more."""


@dataclass(frozen=True, eq=False)
class Row:
    """One row of bars below another."""

    title: str
    unit: str  # title of its axis
    values: NDArray[np.floating]  # (neurons,)


def ranking(
    order: NDArray[np.int64],
    important: NDArray[np.int64],
    rows: Sequence[Row],
    title: str,
    *,
    selected: int | None = None,
    dark: bool = False,
) -> go.Figure:
    """Draw several numbers of each neuron below each other, the chosen neurons with a pattern as well as a colour.

    Others that are 0 in every row are left out. Of more than `_MOST_BARS` in `order` the first and the last ones are
    drawn, and the selected one. The axis says how many are not drawn. `customdata` of a bar is its neuron.
    """
    colours = palette(dark)
    silent = ~np.any([row.values[order] != 0 for row in rows], axis=0)
    silent &= ~np.isin(order, important) & (order != (-1 if selected is None else selected))
    shown, names = _columns(order[~silent], selected)
    chosen = np.isin(shown, important)
    figure = make_subplots(
        len(rows), 1, shared_xaxes=True, vertical_spacing=0.3 / len(rows), subplot_titles=[row.title for row in rows]
    )
    for place, row in enumerate(rows, start=1):
        for inside in (True, False):
            where = np.flatnonzero(chosen == inside)
            label = f"important, m = {len(important)}" if inside else "others"
            figure.add_bar(
                x=[str(neuron) for neuron in shown[where]],
                y=row.values[shown[where]],
                customdata=shown[where],
                name=label,
                marker=_fill(inside, colours),
                legendgroup=label,
                showlegend=place == 1,
                hovertemplate=f"neuron %{{x}}<br>{row.unit} %{{y:.4g}}<extra></extra>",
                row=place,
                col=1,
            )
        figure.update_yaxes(title=row.unit, row=place)
    figure.update_xaxes(
        type="category",
        categoryorder="array",
        categoryarray=names,
        showgrid=False,
        showticklabels=True,
        tickangle=-90 if len(names) > _MOST_BARS // 3 else 0,
    )
    missing = {"in the middle": int((~silent).sum()) - len(shown), "that are 0 in every row": int(silent.sum())}
    text = " and ".join(f"{number} {which}" for which, number in missing.items() if number)
    by = f"neuron, by {rows[0].title[0].lower()}{rows[0].title[1:]}"
    figure.update_xaxes(title=f"{by}<br>not drawn: {text}" if text else by, row=len(rows))
    framed = None if selected is None else names.index(str(selected))
    # The frame's name needs the room above its bar.
    side = "right" if framed is not None and 2 * framed < len(names) else "left"
    figure.update_annotations(font={"size": 13, "color": colours.ink}, x=1 if side == "right" else 0, xanchor=side)
    if framed is not None:
        _frame(figure, len(rows), framed, f"neuron {selected}", colours)
    figure.update_layout(bargap=0.25)
    return finish(figure, title, colours, height=130 + 150 * len(rows), wrap=68)


def _columns(order: NDArray[np.int64], selected: int | None) -> tuple[NDArray[np.int64], list[str]]:
    """Return the neurons that are drawn, and the names of all columns from left to right."""
    if len(order) <= _MOST_BARS:
        return order, [str(neuron) for neuron in order]
    first, last = order[: _MOST_BARS - _LAST_BARS], order[-_LAST_BARS:]
    shown = np.concatenate([first, last])
    middle = [_GAP]
    if selected is not None and selected not in shown:
        shown, middle = np.append(shown, selected), [_GAP, str(selected), _GAP + " "]
    return shown, [*map(str, first), *middle, *map(str, last)]


def _frame(figure: go.Figure, rows: int, place: int, label: str, colours: Palette) -> None:
    """Frame one bar in every row, and name it at the top of the first one."""
    for row in range(1, rows + 1):
        figure.add_vrect(
            x0=place - 0.5,
            x1=place + 0.5,
            row=row,
            col=1,
            line={"color": colours.error, "width": 1.5},
            fillcolor=colours.error,
            opacity=0.25,
            layer="below",
        )
    figure.add_annotation(
        x=place,
        y=1,
        yref="y domain",
        xref="x",
        text=label,
        showarrow=False,
        yanchor="bottom",
        font={"size": 12, "color": colours.ink},
        bgcolor=colours.ground,
    )


def _fill(chosen: bool, colours: Palette) -> dict[str, object]:
    """Fill a bar: the chosen ones are hatched and outlined as well as coloured."""
    if not chosen:
        return {"color": colours.muted}
    return {
        "color": colours.accent,
        "line": {"color": colours.ink, "width": 1.5},
        "pattern": {"shape": "/", "fillmode": "overlay", "fgcolor": colours.ground, "size": 6, "solidity": 0.25},
    }


def most_points(m: int) -> int:
    """Return how many tests are drawn at most for each of m neurons."""
    return min(_MOST_POINTS, max(_FEWEST_POINTS, _MOST_MARKS // m))


def activation_relevance(
    activations: NDArray[np.floating],
    relevance: NDArray[np.floating],
    correct: NDArray[np.bool_] | None,
    neurons: Sequence[str],
    title: str,
    *,
    ids: NDArray[np.int64] | None = None,
    selected: int | None = None,
    together: Sequence[int] | NDArray[np.int64] = (),
    seed: int = 0,
    dark: bool = False,
) -> go.Figure:
    """Draw relevance against activation, (n, m) each, in a small panel for each chosen neuron.

    Tests that are not `correct` (n,) get another colour and mark; `ids` (n,), by default their positions, become the
    `customdata` of the marks. `selected` is one test to mark, `together` are tests to ring.
    """
    colours = palette(dark)
    figure, places = panels(neurons)
    right = np.ones(len(activations), dtype=np.bool_) if correct is None else correct
    numbers = np.arange(len(activations)) if ids is None else ids
    shown = drawn_tests(right, seed, most_points(len(neurons)))
    groups = (
        (shown & right, "correct" if correct is not None else "test", colours.accent, "circle-open", 5),
        (shown & ~right, "misclassified", colours.error, "x", 7),
    )
    for index, where in enumerate(places):
        for kept, label, colour, symbol, size in groups:
            if kept.any():
                figure.add_scatter(
                    x=activations[kept, index],
                    y=relevance[kept, index],
                    mode="markers",
                    name=label,
                    legendgroup=label,
                    showlegend=index == 0,
                    marker={"color": colour, "symbol": symbol, "size": size, "opacity": 0.75},
                    customdata=numbers[kept],
                    hovertemplate="test %{customdata}<br>activation %{x:.3g}<br>relevance %{y:.3g}<extra></extra>",
                    **where,
                )
        if len(together):
            figure.add_scatter(
                x=activations[together, index],
                y=relevance[together, index],
                showlegend=index == 0,
                **rings(len(together), colours),
                **where,
            )
        if selected is not None:
            name = f"test {numbers[selected]}"
            figure.add_scatter(
                x=activations[selected : selected + 1, index],
                y=relevance[selected : selected + 1, index],
                mode="markers",
                name=name,
                legendgroup=name,
                showlegend=index == 0,
                customdata=numbers[selected : selected + 1],
                marker={"symbol": "star-diamond-open", "size": 16, "color": colours.ink, "line": {"width": 2}},
                hovertemplate=f"{name}<br>activation %{{x:.3g}}<br>relevance %{{y:.3g}}<extra></extra>",
                **where,
            )
    return finish_panels(figure, places, "activation", "relevance", title, colours)


def drawn_tests(right: NDArray[np.bool_], seed: int, most: int) -> NDArray[np.bool_]:
    """Choose which tests are drawn, bool (n,): a seeded sample, half of it misclassified where there are enough."""
    shown = np.zeros(len(right), dtype=np.bool_)
    rng = np.random.default_rng(seed)
    wrong, fine = rng.permutation(np.flatnonzero(~right)), rng.permutation(np.flatnonzero(right))
    few = max(most // 2, most - len(fine))
    shown[wrong[:few]] = True
    shown[fine[: most - min(few, len(wrong))]] = True
    return shown


def correlations(activations: NDArray[np.floating], relevance: NDArray[np.floating]) -> NDArray[np.float64]:
    """Pearson correlation of activation and relevance (n, m), one value per neuron; NaN where either never changes."""
    a = activations.astype(np.float64) - activations.mean(axis=0, dtype=np.float64)
    r = relevance.astype(np.float64) - relevance.mean(axis=0, dtype=np.float64)
    scale = np.sqrt((a * a).sum(axis=0) * (r * r).sum(axis=0))
    values = np.full(a.shape[1], np.nan)
    np.divide((a * r).sum(axis=0), scale, out=values, where=scale > 0)
    return values


_WIDE = 120
"""Characters of all labels up to which they fit beside each other."""

_MOST_NUMBERS = 16
"""Rankings up to which every correlation is written into its square."""


def agreement(
    correlations: NDArray[np.float64], labels: Sequence[str], title: str, axis: str = "ranking", *, dark: bool = False
) -> go.Figure:
    """Draw the rank correlation (k, k) of every two rankings as a square; NaN leaves it empty."""
    colours = palette(dark)
    scale, places = SCHEMES["orange-purple"].scale(dark), list(range(len(labels)))
    figure = go.Figure(
        go.Heatmap(
            z=np.asarray(correlations, np.float32),
            x=places,
            y=places,
            zmin=-1,
            zmax=1,
            xgap=1,
            ygap=1,
            colorscale=scale,
            hoverongaps=False,
            text=[[f"{row}<br>{column}" for column in labels] for row in labels],
            hovertemplate="%{text}<br>rank correlation %{z:.3f}<extra></extra>",
            colorbar={"title": {"text": "rank correlation", "side": "right"}, "thickness": 12, "tickvals": [-1, 0, 1]},
        )
    )
    if len(labels) <= _MOST_NUMBERS:
        texts = [["" if np.isnan(value) else signed(value, ".2f") for value in row] for row in correlations]
        numbered(figure, texts, (correlations + 1) / 2, scale)
    longest = max(map(len, labels), default=0)
    angle = -45 if longest > SHORT else 0
    ticks = {"tickvals": places, "ticktext": list(labels), "showgrid": False, "zeroline": False}
    ends = [-0.5, len(labels) - 0.5]
    figure.update_xaxes(title=axis, title_standoff=8, tickangle=angle, range=ends, **ticks)
    figure.update_yaxes(title=axis, title_standoff=8, range=ends[::-1], **ticks)
    finish(figure, title, colours, height=220 + 26 * max(6, len(labels)), wrap=68)
    # Room for the labels: plotly would make it by drawing everything again.
    return figure.update_layout(margin={"l": 40 + 5 * longest, "r": 96, "b": 48 + 4 * longest})
