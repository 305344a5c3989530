"""The map of scores on the Hypotheses page: hypotheses by units, the finding in words, and probes on whole layers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.figures import hypotheses as figures
from idc_core.inspection import MEASURES
from idc_core.inspection.measures import PAIR_MEASURES
from studio.hypotheses import hypothesis_pair, inspections
from studio.hypotheses.controls import Shown, Size
from studio.hypotheses.inspections import InspectionSettings, Measured, quoted
from studio.jobs.results import View
from studio.state.selection import Selection
from studio.text import count, literal, plural
from studio.widgets import layout

_MOST_UNSCORED = 6
_USUAL, _SIDE = Size(), Size(15, 20)
"""Hypotheses and units of a map, and of one in a comparison."""


def sentence(measured: Measured, shown: Shown) -> str:
    """Put the finding into words."""
    grid, layer = shown.grid(measured), shown.layer
    hypothesis, unit = grid.strongest()
    some = "" if measured.whole else f"After {count(measured.records)} records: "
    if not grid.strength.any():
        return f"{some}**No unit of {layer} correlates with any of these hypotheses.**"
    score = hypothesis_pair.score_text(grid, hypothesis, unit)
    name = quoted(literal(grid.names[hypothesis]))
    text = f"{some}**Unit {unit} of {layer} correlates most with {name}: {shown.label} {score}.**"
    if not grid.tested:
        return f"{text} These records are too few for significance tests; all scores are shown."
    units = int(grid.passes.any(0).sum())
    return (
        f"{text} {count(int(grid.passes.sum()))} of {count(grid.tested)} associations are significant "
        f"(FDR {100 * shown.rate:g}\u00a0%). {count(units)} of {plural(grid.score.shape[1], 'unit')} have at least one."
    )


def draw_map(
    measured: Measured,
    shown: Shown,
    pair: tuple[int, int] | None,
    key: str = "scores",
    size: Size = _USUAL,
    first: int = 0,
) -> None:
    """Draw hypotheses by units, the strongest `first` ones left out; with a selected `pair`, squares can be clicked."""
    grid, label = shown.grid(measured), shown.label
    rows, columns = grid.part(size.rows, grid.score.shape[1])
    columns = columns[first:][: size.columns]
    visible = hypothesis_pair.significant(grid)
    hypothesis, unit = grid.strongest()
    met = int(visible.any(1).sum())
    rows = rows[visible[rows].any(1)] if met else rows
    title = (
        f"{met} of {len(grid.names)} hypotheses correlate with a unit of {shown.layer}; the strongest is "
        f"{quoted(grid.names[hypothesis])} with unit {unit} ({grid.score[hypothesis, unit]:.2f})"
    )
    selected: tuple[int | None, int | None] = (None, None)
    if pair is not None:
        selected = _place(rows, pair[0]), _place(columns, pair[1])
    part = np.ix_(rows, columns)
    layout.chart(
        measured.view,
        key,
        lambda dark: figures.score_map(
            grid.score[part],
            [grid.names[at] for at in rows],
            columns.tolist(),
            title,
            label,
            keys=(rows.tolist(), columns.tolist()),
            signed=PAIR_MEASURES[shown.measure].signed,
            passes=visible[part],
            selected=selected,
            dark=dark,
        ),
        alt=title,
        read="each square is one hypothesis and one unit. Red: the unit is high where the hypothesis is true; blue "
        "with \u2212: low; empty: not significant. Strongest rows and columns first. "
        f"{_how_to_choose(len(rows) * len(columns))}",
        depends=(measured.key, shown, size, first, selected),
        clicked=None if pair is None else lambda points: _clicked(measured, shown, points),
        table=None if pair is None else lambda: _table(measured),
    )


def _table(measured: Measured) -> pd.DataFrame:
    """Return all scores, without columns that are empty, as groups of units where none were asked for."""
    return measured.found.frame().replace("", np.nan).dropna(axis=1, how="all")


def _how_to_choose(squares: int) -> str:
    if squares <= figures.MOST_MARKS:
        return "Click a square to select its pair."
    return "Too many squares to click: show 80 units or fewer, or choose a unit by name in the tab One unit."


def _place(keys: object, key: int) -> int | None:
    places = np.flatnonzero(keys == key)
    return int(places[0]) if len(places) else None


def _clicked(measured: Measured, shown: Shown, points: list[dict[str, Any]]) -> None:
    """Select the pair that was clicked; other squares tell nothing."""
    for point in points:
        if (carried := point.get("customdata")) is not None:
            hypothesis, unit = (int(number) for number in carried)
            hypothesis_pair.pick(measured, shown.grid(measured), shown.layer, hypothesis, unit)
            return


def draw_records_read(measured: Measured, shown: Shown) -> None:
    """Say how many records were read, and name hypotheses without a score, with the reason."""
    grid = shown.grid(measured)
    read = f"{count(int(grid.records.min()))} to " if grid.records.min() < grid.records.max() else ""
    st.caption(
        f"Read: {read}{plural(int(grid.records.max()), 'record')} of {plural(len(measured.view.chosen), 'test')}"
        f"{'' if measured.whole else ' (stopped; start again to continue)'}. Widest 95\u00a0% interval: "
        f"± {grid.widest:.2f}."
    )
    unscored = measured.found.table["remark"] != ""
    if not unscored.any():
        return
    table = measured.found.frame()[unscored].drop_duplicates("hypothesis")
    for remark, some in table.groupby("remark", sort=False)["hypothesis"]:
        first = [quoted(literal(name)) for name in some.head(_MOST_UNSCORED)]
        more = f" and {plural(len(some) - len(first), 'other')}" if len(some) > len(first) else ""
        st.caption(f"Without a score ({literal(remark)}): {', '.join(first)}{more}.")


def draw_probes(measured: Measured) -> None:
    """Show how well probes predict hypotheses from all units of a layer, where any were chosen."""
    column = measured.found.table
    whole = (column["unit"] == -1) & (column["group"] != "")
    if not whole.any():
        return
    table = measured.found.frame()[whole]
    st.subheader("Probes on whole layers", anchor=False)
    baseline = np.array([MEASURES[name].is_baseline for name in table["measure"]])
    best = table[~baseline].sort_values("score", ascending=False)
    if len(best):
        first = best.iloc[0]
        st.markdown(
            f"A {MEASURES[first['measure']].label.lower()} on all units of {first['layer']} predicts "
            f"{quoted(literal(first['hypothesis']))} best: {first['score']:.2f} on held-out records."
        )
    wide = table.pivot_table(index=["layer", "hypothesis"], columns="measure", values="score").round(3).reset_index()
    st.dataframe(wide, hide_index=True, height=320, alt="Scores of probes on whole layers, one row per hypothesis")
    st.caption(
        "F1 (binary, or mean over classes) or R2 on held-out records. Compare with the majority-class and random "
        "baselines, where chosen."
    )


def draw_side(settings: InspectionSettings, shown: Shown, one: View, chosen: Selection, key: str) -> None:
    """Draw the map of one of two setups."""
    measured = inspections.measure(one, inspections.fitting(one, settings))
    if measured is not None:
        draw_map(measured, replace(shown, layer=one.setup.layer), None, f"scores-{key}", _SIDE)


def compare(settings: InspectionSettings, shown: Shown, here: View, there: View) -> str:
    """Compare how many units of two setups have an association."""
    counts = []
    for view in (here, there):
        measured = inspections.measure(view, inspections.fitting(view, settings))
        if measured is None:
            return "One of the two is not finished."
        grid = replace(shown, layer=view.setup.layer).grid(measured)
        visible = hypothesis_pair.significant(grid)
        units = f"{int(visible.any(0).sum())} of {plural(visible.shape[1], 'unit')}"
        counts.append(f"{units} (strongest {grid.strength.max():.2f})")
    return f"Units that correlate with at least one hypothesis: here {counts[0]}, in the pinned setup {counts[1]}."
