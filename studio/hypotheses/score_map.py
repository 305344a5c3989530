"""The map of scores on the Hypotheses page: hypotheses by units, the finding in words, and probes on whole layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.figures import hypotheses as figures
from idc_core.inspection.hypothesis import Hypothesis
from idc_core.inspection.measures import PAIR_MEASURES
from idc_core.inspection.result import Grid
from studio.hypotheses import hypothesis_pair, inspections
from studio.hypotheses.controls import Shown
from studio.hypotheses.inspections import InspectionSettings, Measured, quoted
from studio.jobs.results import View
from studio.jobs.wording import kind
from studio.shell import pins
from studio.state.choices import choose_one
from studio.state.selection import Point, Selection, carried
from studio.text import count, literal, plural
from studio.widgets import layout

_MOST_UNSCORED = 6
_PLACES = {
    "texts": " Layers with neurons at every symbol are compared place by place, without padding.",
    "pictures": " Layers with neurons at every pixel are compared place by place. For a coarser layer, a hypothesis "
    "about pixels is pooled over the pixels of each place.",
}
"""How layers with places are compared, by the kind of inputs."""

_PAGED = "units-part-of"
"""What the shown part of the units was chosen for."""
_ROWS, _COLUMNS = (15, 30, 60), ("20", "40", "80", "all")


@dataclass(frozen=True)
class _Size:
    """How many hypotheses and units the map shows at most; all units if `columns` is None."""

    rows: int = _ROWS[1]
    columns: int | None = int(_COLUMNS[1])


_USUAL, _SIDE = _Size(), _Size(15, 20)
"""Hypotheses and units of a map, and of one in a comparison."""


def sentence(measured: Measured, shown: Shown) -> str:
    """Put the finding into words."""
    grid, layer = shown.grid(measured), shown.layer
    hypothesis, unit = grid.strongest()
    some = "" if measured.whole else f"After {count(measured.records)} tests: "
    if not grid.strength.any():
        return f"{some}No neuron of {literal(layer)} correlates with any of these hypotheses."
    score = hypothesis_pair.score_text(grid, hypothesis, unit)
    name = quoted(literal(grid.names[hypothesis]))
    chance = "" if grid.passes[hypothesis, unit] or not grid.tested else ", not significant"
    text = f"Listed first: neuron {unit} with {name}, {shown.label} {score}{chance}."
    if not grid.tested:
        return f"{some}{text} These tests are too few for significance tests; all scores are shown."
    units = f"{count(int(grid.passes.any(0).sum()))} of {plural(grid.score.shape[1], 'neuron')} have at least one."
    return some + layout.lead(_significant(grid, shown), units, text)


def _significant(grid: Grid, shown: Shown) -> layout.Headline:
    """Say how many associations of units and hypotheses are significant."""
    what = f"Significant in {shown.layer} (FDR {100 * shown.rate:g}\u00a0%)"
    return layout.counted(what, int(grid.passes.sum()), grid.tested, "association")


def draw(
    measured: Measured,
    shown: Shown,
    settings: InspectionSettings,
    grid: Grid,
    pair: tuple[int, int],
    hypothesis: Hypothesis,
) -> None:
    """Show all scores, and the tests that activate the selected unit most."""
    view = measured.view
    with st.container(horizontal=True, vertical_alignment="bottom"):
        size = _choose_size()
        first = _choose_part(grid, size.columns, pair[1])
    draw_map(measured, shown, pair, size=size, first=first)
    _draw_records_read(measured, shown)
    hypothesis_pair.draw_behind(measured, grid, shown.layer, pair, hypothesis)
    _draw_probes(measured)
    pins.beside(view, partial(_draw_side, settings, shown), partial(_compare, settings, shown))
    chosen, named = len(inspections.chosen_hypotheses(view, settings)), len(grid.names)
    compared = f"{named} hypotheses" if named == chosen else f"{named} of {chosen} hypotheses"
    layout.computed(
        view,
        f"Every neuron of a layer is compared with {compared} by {shown.label}: "
        f"{PAIR_MEASURES[shown.measure].help}{_PLACES.get(kind(view.test), '')}",
        "Confidence intervals (95 %) come from the jackknife over groups of tests, because the symbols of one test "
        f"depend on one another. With {count(grid.tested)} comparisons some would seem significant by chance. "
        "Significant "
        f"are those that pass Benjamini and Yekutieli's procedure at {100 * shown.rate:g} %, which holds for any "
        "dependence of the comparisons. Hypotheses that hold, or fail, in fewer than 20 tests are left out. Mutual "
        "information is tested per bin, with Bonferroni's correction. A probe is tested by the correlation of its "
        "predictions with the truth on held-out tests.",
        inspections.SOURCE,
    )


def draw_map(
    measured: Measured,
    shown: Shown,
    pair: tuple[int, int] | None,
    key: str = "scores",
    size: _Size = _USUAL,
    first: int = 0,
) -> None:
    """Draw hypotheses by units, the strongest `first` ones left out; with a selected `pair`, squares can be clicked."""
    grid, label = shown.grid(measured), shown.label
    rows, columns = grid.part(size.rows, grid.score.shape[1])
    columns = columns[first:][: size.columns]
    visible = hypothesis_pair.significant(grid)
    rows = rows[visible[rows].any(1)] if visible.any() else rows
    title = _significant(grid, shown) if grid.tested else layout.topic("Scores of the neurons of {}", shown.layer)
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
        read="each square is one hypothesis and one neuron. Red: the neuron is high where the hypothesis is true; blue "
        "with \u2212: low; empty: not significant. Strongest rows and columns first. "
        f"{_how_to_choose(len(rows) * len(columns))}",
        depends=(measured.key, shown, size, first, selected),
        clicked=None if pair is None else lambda points: _clicked(measured, shown, points),
        table=None if pair is None else lambda: _table(measured),
    )


def _choose_size() -> _Size:
    """Choose how many hypotheses and units the map shows."""
    rows = choose_one(
        st.segmented_control,
        "Hypotheses shown",
        {number: str(number) for number in _ROWS},
        30,
        "rows-shown",
        required=True,
        help="Maximum number of rows, strongest scores first. Default 30.",
    )
    columns = choose_one(
        st.segmented_control,
        "Neurons shown",
        {name: name for name in _COLUMNS},
        "40",
        "units-shown",
        required=True,
        help="Maximum number of columns, strongest scores first. With all, drag over a part to zoom in. Default 40.",
    )
    return _Size(rows, None if columns == "all" else int(columns))


def _choose_part(grid: Grid, columns: int | None, unit: int) -> int:
    """Choose which units the map shows where there are more of them; return how many stronger ones are left out."""
    total = grid.score.shape[1]
    if columns is None or total <= columns:
        return 0
    order = grid.part(1, total)[1]
    own = int(np.flatnonzero(order == unit)[0]) // columns
    if st.session_state.get(_PAGED) != (unit, columns, total):
        # Where another unit was chosen the map shows it.
        st.session_state["units-part"] = own
        st.session_state[_PAGED] = (unit, columns, total)
    labels: dict[int, str] = {
        at: f"{at * columns + 1} to {min((at + 1) * columns, total)} of {total}" for at in range(-(-total // columns))
    }
    part: int = st.selectbox(
        "Neurons by strength",
        list(labels),
        key="units-part",
        width=240,
        format_func=labels.__getitem__,
        help=f"Neurons shown in the map, strongest first. Default the part with the selected neuron, {labels[own]}.",
    )
    return part * columns


def _table(measured: Measured) -> pd.DataFrame:
    """Return all scores, without columns that are empty, as groups of units where none were asked for."""
    return measured.found.frame().replace("", np.nan).dropna(axis=1, how="all")


def _how_to_choose(squares: int) -> str:
    if squares <= figures.MOST_MARKS:
        return "Click a square to select its pair."
    return "Too many squares to click: show 80 neurons or fewer, or choose a neuron by name in the tab One neuron."


def _place(keys: object, key: int) -> int | None:
    places = np.flatnonzero(keys == key)
    return int(places[0]) if len(places) else None


def _clicked(measured: Measured, shown: Shown, points: Sequence[Point]) -> None:
    """Select the pair that was clicked; other squares tell nothing."""
    for point in points:
        if numbers := carried(point):
            hypothesis, unit = (int(number) for number in numbers)
            hypothesis_pair.pick(measured, shown.grid(measured), shown.layer, hypothesis, unit)
            return


def _draw_records_read(measured: Measured, shown: Shown) -> None:
    """Say how many records were read, and name hypotheses without a score, with the reason."""
    grid = shown.grid(measured)
    read = f"{count(int(grid.records.min()))} to " if grid.records.min() < grid.records.max() else ""
    st.caption(
        f"Read: {read}{count(int(grid.records.max()))} of {plural(len(measured.view.chosen), 'test')}"
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


def _draw_probes(measured: Measured) -> None:
    """Show how well probes predict hypotheses from all units of a layer, where any were chosen."""
    column = measured.found.table
    whole = (column["unit"] == -1) & (column["group"] != "")
    if not whole.any():
        return
    table = measured.found.frame()[whole]
    st.subheader("Probes on whole layers", anchor=False)
    wide = table.pivot_table(index=["layer", "hypothesis"], columns="measure", values="score").round(3).reset_index()
    st.dataframe(wide, hide_index=True, height=320, alt="Scores of probes on whole layers, one row per hypothesis")
    st.caption(
        "F1 (binary, or mean over classes) or R2 on held-out tests. Compare with the majority-class and random "
        "baselines, where chosen."
    )


def _draw_side(settings: InspectionSettings, shown: Shown, one: View, chosen: Selection, key: str) -> None:
    """Draw the map of one of two setups."""
    measured = inspections.measure(one, inspections.fitting(one, settings))
    if measured is not None:
        draw_map(measured, replace(shown, layer=one.setup.layer), None, f"scores-{key}", _SIDE)


def _compare(settings: InspectionSettings, shown: Shown, here: View, there: View) -> str:
    """Compare how many units of two setups have an association."""
    counts = []
    for view in (here, there):
        measured = inspections.measure(view, inspections.fitting(view, settings))
        if measured is None:
            return "One of the two is not finished."
        grid = replace(shown, layer=view.setup.layer).grid(measured)
        visible = hypothesis_pair.significant(grid)
        counts.append(f"{int(visible.any(0).sum())} of {plural(visible.shape[1], 'neuron')}")
    return f"Neurons that correlate with at least one hypothesis: here {counts[0]}, in the pinned setup {counts[1]}."
