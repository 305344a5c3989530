"""Show a sweep over layers: controls, finding, figure, table, and two setups side by side."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from idc_core.analysis.layer_sweep import LayerCoverage, Sweep, highest_chance
from idc_core.base.progress import Progress
from idc_core.datasets import DATASETS, Dataset
from idc_core.figures.layers import chances, sweep_grid
from idc_core.figures.network_drawing import network_drawing
from idc_core.models import MODELS
from studio.jobs.explanations import EXPLANATIONS
from studio.jobs.jobs import Waiting
from studio.jobs.results import View
from studio.layers.layer_sweep import counted, open_suites, open_sweep
from studio.shell import pins
from studio.shell.pages import go_to
from studio.state.choices import choose_or_usual
from studio.state.selection import Point, Selection, carried, change_setup, select
from studio.state.setup import fitting_data, most_neurons
from studio.text import count, literal, percent, plural
from studio.widgets import layout

_USUAL = (2, 4, 6, 8, 10, 12)  # the numbers of neurons that the page opens on
_MS, _SUITES = "ms", "suites"  # names of the controls, also in the address
_TABLE = "sweep-table"


def _look_into(view: View, suite: str, layer: str, m: int) -> None:
    """Open a cell of the sweep on the Coverage page."""
    parts: dict[str, str | int] = {"layer": layer, "m": m, "data": suite}
    change_setup(**{name: value for name, value in parts.items() if value != getattr(view.setup, name)})
    go_to("coverage")


def _clicked(view: View, points: Sequence[Point]) -> None:
    suite, layer, m = carried(points[0])
    _look_into(view, str(suite), str(layer), int(m))


def choose(view: View) -> tuple[dict[str, Dataset], list[int]]:
    """Choose test sets and numbers of neurons; return the test sets that can be read, and say which cannot."""
    names, ms = _choose(view)
    opened, problems = open_suites(view, names)
    for problem in problems:
        st.warning(problem)
    return opened, ms


def _choose(view: View) -> tuple[list[str], list[int]]:
    """Choose the test sets and the numbers of neurons; the setup's own are always among them."""
    others = [name for name in fitting_data(MODELS[view.setup.model]) if name != view.setup.data]
    offered = range(1, most_neurons() + 1)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        ms = choose_or_usual(
            partial(st.pills, selection_mode="multi"),
            "Numbers of important neurons (m)",
            {m: str(m) for m in offered},
            [m for m in _USUAL if m in offered],
            _MS,
            help=f"Columns of the chart, from 1 to {offered[-1]}; the m of the sidebar is always included. Default 2, "
            "4, 6, 8, 10 and 12.",
        )
        more = []
        if others:
            more = choose_or_usual(
                st.multiselect,
                "Compare these tests with",
                {name: DATASETS[name].label for name in others},
                [],
                _SUITES,
                placeholder="None",
                width=360,
                help="Other test sets that fit the network, one panel each. Default none.",
            )
    return [view.setup.data, *more], sorted({*ms, view.setup.m})


def _at(sweep: Sweep, suite: str, m: int) -> list[LayerCoverage]:
    """Return the layers of a sweep at one m on one test set."""
    return [cell for cell in sweep.cells if (cell.suite, cell.m) == (suite, m)]


def sentence(view: View, sweep: Sweep) -> str:
    """Put the finding into words."""
    suite, m = view.setup.data, view.setup.m
    cells = _at(sweep, suite, m)
    if not sweep.cells:
        return "No layer is finished yet."
    found, dead = highest_chance(cells), _not_coverable(sweep, suite, m)
    if found is None:
        return dead
    return layout.lead(layout.claim(found), dead)


def _not_coverable(sweep: Sweep, suite: str, m: int) -> str:
    """Say in which layers nothing can be covered."""
    dead = [cell.layer for cell in sweep.cells if (cell.suite, cell.m) == (suite, m) and not cell.coverable]
    if not dead:
        return ""
    where = f"layer{'s' if len(dead) > 1 else ''} {literal(layout.names(dead))}"
    return f"Nothing can be covered in {where}: no important neuron varies over the training inputs."


def draw_coverage(view: View, sweep: Sweep, opened: dict[str, Dataset]) -> None:
    """Show IDC of every layer and m."""
    table = _tabulate(sweep, {name: len(counted(view, test)) for name, test in opened.items()})
    _draw_chances(view, sweep)
    _draw_sweep(sweep, view, "sweep", clickable=True, table=table)
    _draw_table(view, sweep, table)
    _draw_pinned(view, sweep)
    _say_computed(view)


def _draw_chances(view: View, sweep: Sweep) -> None:
    """Draw the chance of a new cell in every layer at the setup's m."""
    cells = _at(sweep, view.setup.data, view.setup.m)
    found = highest_chance(cells)
    if found is None:
        return
    title = layout.claim(found)
    layout.chart(
        view,
        "chances",
        lambda dark: chances(cells, title, selected=view.setup.layer, dark=dark),
        alt=title,
        read="Each point is one layer; the line is its 95 % interval. x: chance that the next test like these reaches "
        "a cell that no test reaches. It can be compared between layers, as IDC cannot: their grids differ in size. "
        "Click a point to open it in Coverage.",
        depends=tuple(cells),
        clicked=partial(_clicked, view),
        table=pd.DataFrame(row for row in sweep.table() if (row["tests"], row["m"]) == (view.setup.data, view.setup.m)),
    )


def draw_network(view: View, sweep: Sweep) -> None:
    """Draw every layer with its shape and its IDC at the setup's m; a click makes it the setup's layer."""
    m, layers = view.setup.m, list(sweep.layers)
    scores = {cell.layer: cell.score for cell in _at(sweep, view.setup.data, m) if cell.coverable}
    shapes = _shapes(view, layers)
    title = layout.topic("Layers of {}, with their IDC at m = {}", view.card.label.partition(" on ")[0], m)
    table = pd.DataFrame(
        [{"layer": layer, "output": "x".join(map(str, shapes[layer])), "idc": scores.get(layer)} for layer in layers]
    )
    layout.chart(
        view,
        "network",
        lambda dark: network_drawing(layers, shapes, scores, title, selected=view.setup.layer, dark=dark),
        alt=title,
        read="Each box is one layer, from input to output: its name, the shape of its output, and its IDC in per cent. "
        "The setup's layer is framed. Click a box to examine that layer on all pages.",
        depends=(m, tuple(scores.items())),
        clicked=_take,
        table=table,
    )
    _say_computed(view)


def _say_computed(view: View) -> None:
    layout.computed(
        view,
        f"One pass over the {len(view.train):,} training inputs gives relevance and activations of all layers, one "
        "pass over each test set its activations. The important neurons of a small m are the first ones of a larger "
        "m; the clusters of each neuron are computed once. Every number equals that of the Coverage page for the layer "
        "and m.",
        "As in the paper's Table 5, IDC falls as m grows: every further neuron multiplies the number of combinations, "
        "and each test reaches only one of them. A neuron with a constant activation has one cluster and adds none.",
    )


def _draw_sweep(sweep: Sweep, one: View, key: str, *, clickable: bool, table: pd.DataFrame | None = None) -> None:
    """Draw the figure of a sweep."""
    m = one.setup.m
    title = layout.topic("IDC of every layer and m, of grids that differ in size")
    small = min((cell.used for cell in sweep.cells if cell.used < cell.m), default=0)
    layout.chart(
        one,
        key,
        lambda dark: sweep_grid(
            sweep,
            title,
            labels={suite: _panel_title(sweep, suite) for suite in sweep.suites},
            selected=(one.setup.data, one.setup.layer, m),
            dark=dark,
        ),
        alt=title,
        read="Each square is one layer (row) and one m (column); its number is IDC in per cent. The colour scale is "
        "logarithmic; the setup is framed. "
        + ("\u201c\u2013\u201d: nothing can be covered. " if not all(cell.coverable for cell in sweep.cells) else "")
        + (f"\u201call {small}\u201d: the layer has only {plural(small, 'neuron')}. " if small else "")
        + ("Click a square to open it in Coverage." if clickable else ""),
        depends=(sweep.suites, sweep.ms, len(sweep.cells)),
        clicked=partial(_clicked, one) if clickable else None,
        table=table,
    )


def draw_partly(place: DeltaGenerator, view: View, sweep: Sweep) -> None:
    """Draw the layers that are finished, while the others are on their way."""
    labels = {suite: _panel_title(sweep, suite) for suite in sweep.suites}
    done = len({cell.layer for cell in sweep.cells})
    title = layout.counted("Finished", done, len(sweep.layers), "layer")
    with place.container():
        framed = (view.setup.data, view.setup.layer, view.setup.m)
        figure = sweep_grid(sweep, title, labels=labels, selected=framed, dark=layout.is_dark())
        # The setup's own layer is drawn before it is swept too: a key of its own for each.
        st.plotly_chart(figure, key=f"sweep-{len(sweep.neurons)}-{len(sweep.cells)}", theme=None)


def _panel_title(sweep: Sweep, suite: str) -> str:
    """Name a test set, and say how often the network is right on it."""
    accuracy, rmse = sweep.accuracy.get(suite), sweep.rmse.get(suite)
    label = DATASETS[suite].label
    if accuracy is not None:
        return f"{label}: {percent(accuracy)} classified correctly"
    return label if rmse is None else f"{label}: root mean square error {rmse:.3f}"


def _tabulate(sweep: Sweep, tests: dict[str, int]) -> pd.DataFrame:
    """Return one row per square."""
    table = pd.DataFrame(sweep.table())
    most = [min(1.0, tests[cell.suite] / cell.total) for cell in sweep.cells]
    return table.assign(most_possible=most, accuracy=[sweep.accuracy.get(cell.suite) for cell in sweep.cells])


def _draw_table(view: View, sweep: Sweep, table: pd.DataFrame) -> None:
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
            "new cell (%)": 100 * table["new_cell"],
            "from (%)": 100 * table["new_cell_low"],
            "to (%)": 100 * table["new_cell_high"],
        }
    )

    def pick(row: int) -> None:
        cell = sweep.cells[row]
        _look_into(view, cell.suite, cell.layer, cell.m)

    layout.pick_table(
        shown if len(sweep.suites) > 1 else shown.drop(columns="tests"),
        _TABLE,
        pick,
        "Coverage of every layer and m; choose a row to open it on the Coverage page",
        250,
        {
            "cells": st.column_config.TextColumn(alignment="right"),
            "IDC (%)": st.column_config.NumberColumn(format="%.1f"),
            "most possible (%)": st.column_config.NumberColumn(
                format="%.1f", help="The most that this many tests can reach, one cell each."
            ),
            "new cell (%)": st.column_config.NumberColumn(
                format="%.1f", help="Chance that the next test like these reaches a new cell."
            ),
            "from (%)": st.column_config.NumberColumn(format="%.1f", help="Lower end of its 95 % interval."),
            "to (%)": st.column_config.NumberColumn(format="%.1f", help="Upper end of its 95 % interval."),
        },
    )
    st.caption("Choose a row to open it in Coverage (by keyboard: arrows, then Shift and Space).")


def _draw_pinned(view: View, sweep: Sweep) -> None:
    """Show the sweep of this setup beside that of the pinned one."""

    def of(shown: View) -> Sweep:
        if shown is view:
            return sweep
        return open_sweep(shown, {shown.setup.data: shown.test}, sorted({*sweep.ms, shown.setup.m}))

    def side(shown: View, chosen: Selection, key: str) -> None:
        _draw_sweep(of(shown), shown, f"sweep-{key}", clickable=False)

    def compare(here: View, there: View) -> str:
        mine, theirs = (highest_chance(_at(of(one), one.setup.data, one.setup.m)) for one in (here, there))
        if mine is None or theirs is None:
            return "One of the two is not finished."
        return f"Here, m = {here.setup.m}: {mine.sentence} On the pinned setup, m = {there.setup.m}: {theirs.sentence}"

    pins.beside(view, side, compare)


def _take(points: Sequence[Point]) -> None:
    select(layer=str(carried(points[0])[0]))


def _shapes(view: View, layers: list[str]) -> dict[str, tuple[int, ...]]:
    """Return the shape of every layer's output for one input."""

    def work(report: Progress) -> dict[str, tuple[int, ...]]:
        from idc_core.tracing.trace import collect

        return dict(collect(view.model, view.test.inputs[:1], layers, on_progress=report).shapes)

    key = (*view.key, "shapes")
    return Waiting(1).get(EXPLANATIONS, key, "running one test", work)
