"""Layers: coverage of every layer, for several numbers of important neurons and several test sets."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from idc_core.analysis.layer_sweep import Cell, Sweep
from idc_core.datasets import DATASETS
from idc_core.errors import IdcError
from idc_core.figures.layers import sweep_grid
from idc_core.models import MODELS
from studio.engine.results import View, of_classes
from studio.layers import layer_sweep
from studio.shell import address, pins
from studio.shell.bench import MOST_NEURONS, fitting_data
from studio.shell.frame import current_view
from studio.shell.pages import go_to
from studio.shell.selection import Selection, picked_row, select
from studio.widgets import layout
from studio.widgets.text import count, percent, plural

USUAL = (2, 4, 6, 8, 10, 12)  # the numbers of neurons that the page opens on
MS, SUITES = "ms", "suites"  # names of the controls, also in the address

view = current_view()
finding = st.empty()


def look_into(suite: str, layer: str, m: int) -> None:
    """Open a cell's bench on the Coverage page."""
    changes: dict[str, str | int] = {"layer": layer, "m": m}
    if suite != view.bench.data:
        changes["data"] = suite
    select(**changes)
    go_to("coverage")


def clicked(points: list[dict[str, Any]]) -> None:
    """Open the clicked square."""
    suite, layer, m = points[0]["customdata"]
    look_into(str(suite), str(layer), int(m))


def choose() -> tuple[list[str], list[int]]:
    """Choose the test sets and the numbers of neurons; the bench's own are always among them."""
    others = [name for name in fitting_data(MODELS[view.bench.model]) if name != view.bench.data]
    said = address.read(MS).split(",")
    st.session_state[MS] = [m for m in range(1, MOST_NEURONS + 1) if str(m) in said] or list(USUAL)
    st.session_state[SUITES] = [name for name in others if name in address.read(SUITES).split(",")]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        ms = st.pills(
            "Numbers of important neurons m",
            list(range(1, MOST_NEURONS + 1)),
            selection_mode="multi",
            key=MS,
            on_change=lambda: address.keep(MS, ",".join(map(str, st.session_state[MS]))),
            help=f"Columns of the figure: from 1 to {MOST_NEURONS}, the m of the sidebar always among them. Default "
            "2, 4, 6, 8, 10 and 12.",
        )
        beside = []
        if others:
            beside = st.multiselect(
                "Other test sets beside these tests",
                others,
                format_func=lambda name: DATASETS[name].label,
                key=SUITES,
                on_change=lambda: address.keep(SUITES, ",".join(st.session_state[SUITES])),
                placeholder="None",
                width=360,
                help="Any test sets that the network can take, each in a panel of its own. Default none.",
            )
    return [view.bench.data, *beside], sorted({*ms, view.bench.m})


def at_bench(sweep: Sweep, suite: str, m: int) -> list[Cell]:
    """Return the cells of one test set and m, weakest first."""
    cells = [cell for cell in sweep.cells if (cell.suite, cell.m) == (suite, m)]
    return sorted(cells, key=lambda cell: cell.score)


def sentence(sweep: Sweep, suite: str, m: int) -> str:
    """Put the finding into words."""
    ranked = at_bench(sweep, suite, m)
    if not ranked:
        return "No layer is finished yet."
    # A layer with few neurons has few cells, so that its share says little beside the others'.
    weakest, best = ranked[0], max(ranked, key=lambda cell: (cell.used, cell.score))
    among = "" if len(ranked) == len(sweep.layers) else f"Of the {len(ranked)} layers finished so far: "
    neurons = f"all {weakest.used} neurons" if weakest.used < m else f"m = {m}"
    parts = [
        f"{among}**With {neurons}, these tests are weakest in layer {weakest.layer}: {count(weakest.covered)} of "
        f"{plural(weakest.total, 'cell')} are covered (IDC {percent(weakest.score)}).**"
    ]
    if best.score > weakest.score:
        parts.append(f"Layer {best.layer} is covered best, with {percent(best.score)}.")
    row = [cell for cell in sweep.cells if (cell.suite, cell.layer) == (suite, weakest.layer)]
    if row[0].used < row[-1].used:
        parts.append(
            f"From m = {row[0].used} to {row[-1].used}, the IDC of layer {weakest.layer} falls from "
            f"{percent(row[0].score)} to {percent(row[-1].score)}."
        )
    return " ".join(parts)


def compare_suites(sweep: Sweep, m: int) -> str:
    """Say in how many layers each test set reaches more cells than the others."""
    if len(sweep.suites) < 2:
        return ""
    wins = dict.fromkeys(sweep.suites, 0)
    for layer in sweep.layers:
        ranked = sorted((c for c in sweep.cells if (c.layer, c.m) == (layer, m)), key=lambda cell: -cell.covered)
        if len(ranked) == len(wins) and ranked[0].covered > ranked[1].covered:
            wins[ranked[0].suite] += 1
    told = layout.names([f"by {DATASETS[suite].label} in {number}" for suite, number in wins.items()])
    return f"Of the {len(sweep.layers)} layers at m = {m}, most cells are reached {told}."


def draw(sweep: Sweep, one: View, key: str) -> None:
    """Draw the figure of a sweep."""
    m = one.bench.m
    ranked = at_bench(sweep, one.bench.data, m)
    title = f"At m = {m} layer {ranked[0].layer} is covered least: IDC {percent(ranked[0].score)}" if ranked else ""
    small = min((cell.used for cell in sweep.cells if cell.used < cell.m), default=0)
    layout.chart(
        one,
        key,
        lambda dark: sweep_grid(
            sweep,
            title,
            labels={suite: panel_title(sweep, suite) for suite in sweep.suites},
            selected=(one.bench.data, one.bench.layer, m),
            dark=dark,
        ),
        alt=title,
        read="a square is a layer and a number of neurons; its number is IDC in per cent, the share of combinations "
        "of clusters that at least one test reaches. The colour scale is logarithmic; the bench is framed. "
        + (f"\u201call {small}\u201d: the layer has only {plural(small, 'neuron')}; all are taken. " if small else "")
        + ("Click a square to open it on the Coverage page." if key == "sweep" else ""),
        depends=(sweep.suites, sweep.ms, len(sweep.cells)),
        clicked=clicked if key == "sweep" else None,
    )


def panel_title(sweep: Sweep, suite: str) -> str:
    """Name a test set, and say how often the network is right on it."""
    accuracy, rmse = sweep.accuracy.get(suite), sweep.rmse.get(suite)
    label = DATASETS[suite].label
    if accuracy is not None:
        return f"{label}: {percent(accuracy)} classified correctly"
    return label if rmse is None else f"{label}: root mean square error {rmse:.3f}"


def tabulate(sweep: Sweep, tests: dict[str, int]) -> pd.DataFrame:
    """Return one row a square."""
    table = pd.DataFrame(sweep.table())
    most = [min(1.0, tests[cell.suite] / cell.total) for cell in sweep.cells]
    return table.assign(most_possible=most, accuracy=[sweep.accuracy.get(cell.suite) for cell in sweep.cells])


def draw_table(sweep: Sweep, table: pd.DataFrame) -> None:
    """Show the numbers; choosing a row opens it."""
    shown = pd.DataFrame(
        {
            "tests": table["tests"],
            "layer": table["layer"],
            "m": table["m"],
            "neurons used": table["used"],
            "covered": table["covered"],
            "cells": [count(total) for total in table["total"]],
            "IDC (%)": 100 * table["idc"],
            "most possible (%)": 100 * table["most_possible"],
        }
    )
    key = "sweep-table"

    def picked() -> None:
        row = picked_row(key, len(sweep.cells))
        if row is not None:
            cell = sweep.cells[row]
            look_into(cell.suite, cell.layer, cell.m)

    st.dataframe(
        shown if len(sweep.suites) > 1 else shown.drop(columns="tests"),
        hide_index=True,
        key=key,
        on_select=picked,
        selection_mode="single-row",
        height=320,
        column_config={
            "cells": st.column_config.TextColumn(alignment="right"),
            "IDC (%)": st.column_config.NumberColumn(format="%.3g"),
            "most possible (%)": st.column_config.NumberColumn(format="%.3g"),
        },
        alt="Coverage of every layer and m; choose a row to open it on the Coverage page",
    )
    st.caption(
        "Choose a row to open it on the Coverage page (by keyboard: arrows, then Shift and Space). A test reaches one "
        "cell, so where there are more cells than tests not all can be covered: the last column is the most that so "
        "many tests could reach."
    )


def sweep_of(shown: View) -> Sweep:
    """Return the sweep of one of two benches."""
    if shown is view:
        return sweep
    return layer_sweep.open_sweep(shown, {shown.bench.data: shown.test}, sorted({*ms, shown.bench.m}))


def draw_side(shown: View, chosen: Selection, key: str) -> None:
    """Draw the sweep of one of two benches."""
    draw(sweep_of(shown), shown, f"sweep-{key}")


def compare(here: View, there: View) -> str:
    """Say how the weakest layers of two benches differ."""
    mine, theirs = (at_bench(sweep_of(one), one.bench.data, one.bench.m) for one in (here, there))
    if not mine or not theirs:
        return "One of the two is not finished."
    return (
        f"The weakest layer here is {mine[0].layer} with {percent(mine[0].score)} at m = {here.bench.m}; on the pinned "
        f"bench it is {theirs[0].layer} with {percent(theirs[0].score)} at m = {there.bench.m}."
    )


suites, ms = choose()
opened, problems = layer_sweep.open_suites(view, suites)
for problem in problems:
    st.warning(problem)
try:
    sweep = layer_sweep.open_sweep(view, opened, ms)
except IdcError as error:
    st.error(str(error))
    st.stop()
table = tabulate(sweep, {name: len(of_classes(test, view.bench.classes)) for name, test in opened.items()})
finding.markdown(sentence(sweep, view.bench.data, view.bench.m) + " " + compare_suites(sweep, view.bench.m))
if len(sweep.cells) < len(sweep.suites) * len(sweep.layers) * len(sweep.ms):
    done = plural(len({cell.layer for cell in sweep.cells}), "layer")
    st.caption(f"Finished before the stop: {done} of {len(sweep.layers)}.")
if sweep.cells:
    draw(sweep, view, "sweep")
    draw_table(sweep, table)

if sweep.cells:
    pins.beside(view, draw_side, compare)

layout.computed(
    view,
    f"One pass over the {len(view.train):,} training inputs gives the relevance and the activations of all layers, one "
    "over each test set their activations there. The important neurons of a small m are the first ones of a larger "
    "m; each neuron's clusters are found once. Every number equals what the Coverage page shows for that layer and m.",
    "As in the paper's Table 5, IDC falls as m grows: every further neuron multiplies the number of combinations, and "
    "a test reaches only one of them. A neuron whose activation never changes has a single cluster and adds none.",
)
layout.take_away({"coverage-by-layer": table})
