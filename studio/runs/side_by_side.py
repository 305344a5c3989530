"""Runs of one kind side by side: settings that differ, figures, and cells gained and lost."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from idc_core.errors import IdcError
from idc_core.figures import runs as drawn
from idc_core.runs import RUN_KINDS, Run, cell_change, differing_settings, figure_text, figures, main_text, score_of
from studio.jobs.runs import ADDRESS
from studio.runs.one_run import title, words, written
from studio.state import address
from studio.state.choices import choose_one, choose_several
from studio.text import cell_name, count, literal, plural
from studio.widgets import layout

COMPARED = "compared-runs"
"""Name in the address: the runs that are compared."""

_ALIKE = ("network", "layer")
"""Settings that two runs share whose cells can be compared."""

MOST = 5
_DRAWN = 4
"""Figures that are drawn at most; the table holds all."""
_SHOWN = 200
"""Cells that are listed at most."""


def draw(runs: Sequence[Run]) -> None:
    """Show runs of one kind side by side."""
    chosen = _choose(runs)
    if len(chosen) < 2:
        st.caption("Two runs of one kind are needed: choose them above, or make a second one with other settings.")
        return
    _draw_compared(chosen)


def _choose(runs: Sequence[Run]) -> list[Run]:
    """Choose runs of one kind; the newest two unless others are named."""
    kinds = {name: kind.label for name, kind in RUN_KINDS.items() if sum(run.facts.kind == name for run in runs) > 1}
    if not kinds:
        return []
    named = address.read(COMPARED).split(",")
    first = next((run.facts.kind for run in runs if run.id in named), next(iter(kinds)))
    usual = first if first in kinds else next(iter(kinds))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind = choose_one(
            st.selectbox,
            "Kind of run",
            kinds,
            usual,
            "compared-kind",
            width=200,
            help=f"Runs of one kind are compared. Default {kinds[usual]}.",
        )
        some = {run.id: run for run in runs if run.facts.kind == kind}
        newest = _usual(list(some.values()))
        chosen = choose_several(
            st.multiselect,
            "Runs",
            {id: title(run) for id, run in some.items()},
            newest,
            COMPARED,
            max_selections=MOST,
            help=f"Two to {MOST} runs; the others are compared with the first. Default "
            f"{literal(', '.join(title(some[id]) for id in newest))}.",
        )
    return [some[id] for id in chosen]


def _usual(runs: Sequence[Run]) -> list[str]:
    """Return the ids of the newest run and of the newest one before that can be compared with it, this one first.

    Of another network, or another layer, figures and cells mean something else.
    """
    like = [run for run in runs[1:] if all(run.said(name) == runs[0].said(name) for name in _ALIKE)]
    like += [run for run in runs[1:] if run.said("network") == runs[0].said("network")]
    return [(like or runs[1:])[0].id, runs[0].id]


def _draw_compared(runs: Sequence[Run]) -> None:
    """Draw what differs: settings first, then figures, then cells."""
    letters = dict(zip(ascii_uppercase, runs, strict=False))
    settings = differing_settings(runs, [ADDRESS])
    st.markdown(_sentence(letters, settings))
    st.caption("  \n".join(f"{layout.label(letter)}: {literal(title(run))}" for letter, run in letters.items()))
    st.header("Settings that differ", anchor=False)
    if settings:
        rows = {words(name): [written(value) for value in values] for name, values in settings.items()}
        st.dataframe(_frame(rows, letters, "setting"), hide_index=True, key="differing-settings")
    else:
        st.caption("None: the runs differ only in when they were made, or in the version of their figures.")
    st.header("Results", anchor=False)
    _draw_results(letters)
    st.dataframe(_results(letters), hide_index=True, key="compared-figures")
    if runs[0].facts.kind == "analysis":
        st.header("Cells gained and lost", anchor=False)
        for letter, run in list(letters.items())[1:]:
            _draw_cells(letter, runs[0], run)


def _sentence(letters: dict[str, Run], settings: dict[str, list[object]]) -> str:
    names = [words(name) for name in settings if not name.endswith(("_label", "_inputs"))]
    some = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    named = "; ".join(f"{letter}: {main_text(run)}" for letter, run in letters.items())
    return f"{literal(named)}. " + (f"They differ in {literal(some)}." if names else "Their settings are the same.")


def _frame(rows: dict[str, list[str]], letters: dict[str, Run], first: str) -> pd.DataFrame:
    columns = {letter: [values[place] for values in rows.values()] for place, letter in enumerate(letters)}
    return pd.DataFrame({first: list(rows), **columns})


def _results(letters: dict[str, Run]) -> pd.DataFrame:
    runs = list(letters.values())
    kind, scores = runs[0].facts.kind, figures(runs)
    rows = {
        score_of(kind, name).label: [
            "" if value is None else figure_text(score_of(kind, name), value) for value in values
        ]
        for name, values in scores.items()
    }
    return _frame(rows, letters, "figure")


def _draw_results(letters: dict[str, Run]) -> None:
    """Draw the first figures that all of the runs have, a panel each."""
    runs = list(letters.values())
    kind = runs[0].facts.kind
    whole = {name: row for name, row in figures(runs).items() if None not in row}
    if not whole:
        return
    names = list(whole)[:_DRAWN]
    scores = [score_of(kind, name) for name in names]
    texts = [[figure_text(score, value) for value in whole[score.name] if value is not None] for score in scores]
    title = layout.topic("Figures of runs {}", " and ".join(letters))
    values, labels = [whole[name] for name in names], [score.label for score in scores]
    layout.plot(
        "compared-bars", lambda dark: drawn.side_by_side(values, texts, labels, list(letters), title, dark=dark), title
    )


def _draw_cells(letter: str, first: Run, other: Run) -> None:
    """Say which cells one analysis reaches and the first does not, and the other way round."""
    try:
        change = cell_change(first, other)
    except IdcError as error:
        st.caption(f"{layout.label(f'{letter} against A')}: {literal(error)}")
        return
    neurons = ", ".join(map(str, change.neurons))
    either = change.both + len(change.gained) + len(change.lost)
    st.markdown(
        layout.lead(
            layout.counted(f"Reached by A and {letter}", change.both, either, "cell"),
            f"{letter} alone reaches {count(len(change.gained))}, A alone {count(len(change.lost))}. Compared over "
            f"neurons {neurons}.",
        )
    )
    gained, lost = (change.gained, change.gained_tests), (change.lost, change.lost_tests)
    table = pd.concat([_cells("gained", *gained), _cells("lost", *lost)])
    if len(table):
        st.dataframe(
            table[:_SHOWN], hide_index=True, key=f"cells-{letter}", height=240 if len(table) > 6 else "content"
        )
    if len(table) > _SHOWN:
        st.caption(f"The first {_SHOWN} of {plural(len(table), 'cell')}.")


def _cells(how: str, cells: NDArray[np.uint8], tests: NDArray[np.int64]) -> pd.DataFrame:
    return pd.DataFrame({"cell": [cell_name(cell.tolist()) for cell in cells], "change": how, "tests": tests})
