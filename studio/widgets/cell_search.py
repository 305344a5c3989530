"""Inputs made for an uncovered cell: tests close to it are changed a little until they lie in it."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from idc_core.base.progress import Progress
from idc_core.base.spreadsheets import csv
from idc_core.errors import CancelledError, IdcError
from studio.jobs.jobs import JobKind, Waiting
from studio.jobs.results import View
from studio.state import address
from studio.state.selection import selected
from studio.text import cell_name, literal, plural, times
from studio.widgets import exports, gallery, headlines
from studio.widgets.keep_suite import keep_row, made_of_tests

if TYPE_CHECKING:
    from idc_core.generation import Reached

_MAKE = "make"
"""The cell that inputs are made for; in the address."""

_SHOWN = 12
_MOST_SEEDS, _USUAL_SEEDS = 100, 24
_EPSILON = 0.3


@dataclass(frozen=True, eq=False)
class _Made:
    """The result of a search for a cell."""

    reached: Reached
    positions: NDArray[np.int64]
    """Positions of the seeds among the tests, the closest to the cell first."""
    seeds: NDArray[np.float32]
    """(seeds, C, H, W)."""

    @property
    def origin(self) -> NDArray[np.int64]:
        """Position among the tests of each made input's seed."""
        return self.positions[self.reached.seed_index]


def offer(view: View, cell: tuple[int, ...]) -> None:
    """Offer to generate inputs for an uncovered cell."""
    name = cell_name(cell)
    made = address.read(_MAKE) == name
    st.button(
        "Hide inputs" if made else "Generate inputs for this cell",
        key="make-inputs",
        on_click=address.keep,
        args=(_MAKE, "" if made else name),
        help="Change the tests closest to the cell until they lie in it.",
    )


def draw(view: View, cell: tuple[int, ...]) -> None:
    """Show the inputs made for a cell, where that was asked for."""
    if address.read(_MAKE) == cell_name(cell):
        st.header(headlines.topic("Inputs generated for cell {}", cell_name(cell)), anchor=False)
        _draw_made(view, cell)


def _draw_made(view: View, cell: tuple[int, ...]) -> None:
    """Draw the controls of the search for a cell, and its result."""
    most = min(_MOST_SEEDS, len(view.chosen))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        epsilon = st.slider(
            "Epsilon (largest change of a value)",
            0.02,
            1.0,
            _EPSILON,
            0.02,
            key="make-epsilon",
            bind="query-params",
            width=320,
            help=f"Input values range from 0 to 1. From 0.02 to 1; default {_EPSILON:g}.",
        )
        count = st.number_input(
            "Tests to start from",
            1,
            max(2, most),
            min(_USUAL_SEEDS, most),
            10,
            key="make-seeds",
            bind="query-params",
            width=180,
            help=f"The tests closest to the cell. From 1 to {max(2, most)}; default {min(_USUAL_SEEDS, most)}.",
        )
    try:
        made = _make(view, cell, epsilon, count)
    except CancelledError:
        st.info("Stopped before the search was finished.")
        return
    except IdcError as error:
        st.error(literal(error))
        return
    st.markdown(_sentence(made, epsilon))
    if len(made.reached):
        _draw(view, cell, made, epsilon)


def _make(view: View, cell: tuple[int, ...], epsilon: float, count: int) -> _Made:
    """Change the tests closest to a cell until they lie in it, or find the result again; show progress."""
    from idc_core.generation import Pool, choose_seeds
    from idc_core.generation.constraints import as_seeds

    rows, analysis = view.chosen, view.analysis
    pool = Pool(view.test.targets[rows], view.test_traces.scores[rows], analysis, rows, cell)
    positions = rows[choose_seeds(pool, "cell", count)]

    def work(report: Progress) -> Reached:
        from idc_core.generation import reach_cell

        result = reach_cell(view.model, analysis, cell, view.test.inputs[positions], epsilon, on_progress=report)
        if result.stopped:
            raise CancelledError("Nobody waited for the search.")
        return result

    key = (*view.key, view.setup, cell, epsilon, tuple(positions.tolist()))
    doing = f"searching for cell {cell_name(cell)}, step"
    reached = Waiting(1).get(JobKind("cell-searches", is_long=True), key, doing, work)
    return _Made(reached, positions, as_seeds(view.test.inputs[positions]).numpy())


def _sentence(made: _Made, epsilon: float) -> str:
    """Say how many tests led to the cell, or that none did."""
    reached, name = made.reached, cell_name(made.reached.cell)
    what = f"Led to cell {name} by changes of at most {epsilon:g}"
    led = headlines.counted(what, len(reached), len(made.positions), "test")
    if not len(reached):
        return headlines.lead(
            led,
            f"The closest picture is {reached.closest.min():.2g} gaps between centroids away. Allow larger changes or "
            "start from more tests. It may be that no picture close to these tests lies there.",
        )
    same = int((reached.predictions == reached.seed_predictions[reached.seed_index]).sum())
    return headlines.lead(
        led,
        f"The first after {plural(int(reached.iterations.min()), 'step')}. For {same} of them the network predicts the "
        "same class as for the test.",
    )


def _draw(view: View, cell: tuple[int, ...], made: _Made, epsilon: float) -> None:
    """Show the inputs, and offer to download or to keep them."""
    reached, name = made.reached, cell_name(cell)
    order = np.argsort(reached.iterations, kind="stable")
    some = order[:_SHOWN]
    tiles = [gallery.Tile(int(view.test.ids[made.origin[row]]), _told(view, made, row)) for row in some]
    seeds = made.seeds[reached.seed_index[some]]
    factor = gallery.changed(
        "made-inputs", tiles, seeds, reached.inputs[some], selected().input, gallery.select_or_drop
    )
    left = len(order) - len(some)
    st.caption(
        f"Test, new input and difference{times(factor)} (grey: no change); fewest steps first. Click one to select its "
        "test on all pages." + (f" {left} more are in the downloads." if left > 0 else "")
    )
    from idc_core.suites import ProvenanceStep

    step = ProvenanceStep(
        "reach-cell",
        f"changed until they lie in cell {name}",
        {"cell": name, "epsilon": epsilon, "layer": view.setup.layer},
        None,
        view.card.fingerprint,
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        targets = view.test.targets[made.origin]
        keep_row(
            f"Made for cell {name}",
            len(reached),
            "keep-made",
            lambda: made_of_tests(view, reached.inputs, targets, made.origin, step),
        )
        st.download_button(
            "Inputs (npz)",
            lambda: _npz(view, made),
            file_name=exports.named("made-inputs.npz"),
            mime="application/octet-stream",
            on_click="ignore",
            key="made-npz",
        )
        st.download_button(
            "Measures (CSV)",
            lambda: csv(_numbers(view, made)),
            file_name=exports.named("made-inputs.csv"),
            mime="text/csv",
            on_click="ignore",
            key="made-csv",
        )


def _told(view: View, made: _Made, row: int) -> str:
    """Write the test of a new input, and the prediction."""
    reached, place = made.reached, int(made.origin[row])
    predicted = ""
    if view.is_classifier:
        predicted = f" → predicted {view.train.class_names[reached.predictions[row]]}"
    return (
        f"Test {view.test.ids[place]}, {truth(view, place)}{predicted}, {plural(int(reached.iterations[row]), 'step')}"
    )


def _npz(view: View, made: _Made) -> bytes:
    file, reached = io.BytesIO(), made.reached
    np.savez_compressed(
        file,
        inputs=reached.inputs,
        seeds=made.seeds[reached.seed_index],
        targets=view.test.targets[made.origin],
        seed_ids=view.test.ids[made.origin],
        predictions=reached.predictions,
        iterations=reached.iterations,
        cell=np.array(reached.cell),
    )
    return file.getvalue()


def _numbers(view: View, made: _Made) -> pd.DataFrame:
    from idc_core.generation import distances

    reached = made.reached
    away = distances(reached.inputs, made.seeds[reached.seed_index])
    return pd.DataFrame(
        {
            "seed": view.test.ids[made.origin],
            "target": [truth(view, int(place)) for place in made.origin],
            "prediction": reached.predictions,
            "steps": reached.iterations,
            "L1": away.l1,
            "L2": away.l2,
            "L\u221e": away.linf,
        }
    )


def truth(view: View, position: int) -> str:
    """Write a test's true class or value."""
    target = view.test.targets[position]
    return view.test.class_names[target] if view.is_classifier else f"{target:+.3f}"
