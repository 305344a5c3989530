"""Charts and tables of compared suites."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.figures import suites as figures
from studio.jobs import suite_catalog
from studio.jobs.results import View
from studio.jobs.wording import quantity
from studio.shell import tabs
from studio.state import address
from studio.state.selection import Selection
from studio.testsets import added_inputs
from studio.testsets.findings import cumulative_title, gains_title
from studio.testsets.suite_comparison import ComparedSuites, compare_chosen
from studio.text import count, lower, percent, plural
from studio.widgets import layout


def _drawn(found: ComparedSuites) -> list[figures.DrawnSuite]:
    return [figures.DrawnSuite(option.label, option.kind, option.within) for option in found.options]


def draw_gains(found: ComparedSuites, key: str = "gains") -> None:
    """Draw the IDC of every suite with the cells that it adds; a click leads to the inputs that add them."""
    ms = found.comparison.ms
    scores = np.array([[suite.cells[m].score for suite in found.results] for m in ms])
    added = np.array([found.added(m) for m in ms])
    title = gains_title(found)

    def clicked(points: list[dict[str, Any]]) -> None:
        number, m = points[0]["customdata"]
        if number:
            address.keep(added_inputs.SHOWN, found.options[int(number)].name)
            address.keep(added_inputs.CELLS, str(int(m)))
            tabs.open_at("testsets", "adding")

    layout.chart(
        found.view,
        key,
        lambda dark: figures.gains(_drawn(found), ms, scores, added, title, dark=dark),
        alt=title,
        read="Each panel is one number of important neurons (m), each row one suite. Mark: its IDC; line: from the "
        "IDC of the original tests. The label is the number of added cells. Click a mark to see the inputs that add "
        "them.",
        depends=found.key,
        clicked=clicked if key == "gains" else None,
        # Without columns that are empty here: accuracy of a regression, or errors of a classification.
        table=pd.DataFrame(found.comparison.rows()).dropna(axis=1, how="all"),
    )


def _coverage_table(found: ComparedSuites) -> pd.DataFrame:
    """Return size and coverage, one row per suite."""
    rows = []
    for number, (result, option) in enumerate(zip(found.results, found.options, strict=True)):
        added = 0 if option.within else result.extra
        row = {"suite": option.label, "inputs": count(result.inputs), "added inputs": count(added)}
        for m in found.comparison.ms:
            cells = result.cells[m]
            gain = f" ({len(cells.added):+,})" if number and not option.within else ""
            row[f"IDC, m = {m}"] = percent(cells.score) + gain
        rows.append(row)
    return pd.DataFrame(rows)


def _predictions_table(found: ComparedSuites) -> pd.DataFrame:
    """Return accuracy and confidence, or the error of a regression, one row per suite."""
    rows = []
    for number, (result, option) in enumerate(zip(found.results, found.options, strict=True)):
        values = {"accuracy": result.accuracy, "accuracy on added inputs": result.extra_accuracy}
        if not found.judged(number):
            values = dict.fromkeys(values)
        values |= {"confidence": result.confidence, "confidence on added inputs": result.extra_confidence}
        write = percent
        if not found.view.is_classifier:
            of = f" ({quantity(found.view.test).unit})".replace(" ()", "")
            values, write = {f"RMSE{of}": result.rmse, f"RMSE on added inputs{of}": result.extra_rmse}, "{:.4f}".format
        shown = {
            name: "" if value is None or (option.within and "added" in name) else write(value)
            for name, value in values.items()
        }
        rows.append({"suite": option.label, **shown})
    return pd.DataFrame(rows)


def draw_tables(found: ComparedSuites) -> None:
    """Show coverage and predictions of every suite, in two tables: one would be wider than a narrow window."""
    right = st.column_config.TextColumn(alignment="right")
    for table, alt in (
        (_coverage_table(found), "Size and coverage of every suite"),
        (_predictions_table(found), "Accuracy and confidence of every suite"),
    ):
        st.dataframe(
            table, hide_index=True, height="content", column_config=dict.fromkeys(table.columns[1:], right), alt=alt
        )
    totals = [f"{count(found.results[0].cells[m].total)} at m = {m}" for m in found.comparison.ms]
    measure = "" if found.view.is_classifier else " RMSE: root mean squared error."
    st.caption(f"In brackets: added cells. Cells in total: {layout.names(totals)}.{measure}")


def draw_shared(found: ComparedSuites) -> None:
    """Draw how many cells every two suites share."""
    counts = found.comparison.shared[found.m]
    common = len(set.intersection(*(set(result.cells[found.m].codes.tolist()) for result in found.results)))
    title = f"All {len(found.results)} suites share {plural(common, 'cell')} (m = {found.m})"
    layout.chart(
        found.view,
        "shared",
        lambda dark: figures.shared_cells(_drawn(found), counts, title, dark=dark),
        alt=title,
        read="Each square is the number of cells that two suites both reach; on the diagonal, the cells of one suite.",
        depends=(found.key, found.m),
        table=_shared_table(found),
    )


def _shared_table(found: ComparedSuites) -> pd.DataFrame:
    """Return how many cells every two suites share, one row per suite."""
    labels = [option.label for option in found.options]
    table = pd.DataFrame(found.comparison.shared[found.m], columns=labels)
    table.insert(0, "suite", labels, allow_duplicates=True)
    return table


def draw_cumulative(found: ComparedSuites) -> None:
    """Draw what each suite adds to those before it, in the listed order and the largest gain first."""
    m, comparison = found.m, found.comparison
    orders = []
    given = list(range(len(found.results)))
    for name, numbers in (("Listed order", given), ("Largest gain first", comparison.best_order(m))):
        # Parts of the tests add nothing, wherever they stand.
        places = [place for place, number in enumerate(numbers) if number == 0 or number in found.additions]
        orders.append((name, [numbers[place] for place in places], comparison.marginal(m, numbers)[places]))
    title = cumulative_title(found, orders[1][1], orders[1][2].tolist())
    layout.chart(
        found.view,
        "in-turn",
        lambda dark: figures.cumulative_gains(_drawn(found), orders, title, dark=dark),
        alt=title,
        read="Each bar is the number of cells that a suite adds to the original tests and all suites above it.",
        depends=(found.key, m),
        table=pd.DataFrame(
            [
                {"order": order, "suite": found.options[place].label, "added cells": int(gain)}
                for order, places, gains in orders
                for place, gain in zip(places[1:], gains[1:], strict=True)
            ]
        ),
    )


def _same_suites(found: ComparedSuites, names: list[str], view: View) -> ComparedSuites:
    """Return the same suites on another setup; suites that it does not have are left out."""
    if view is found.view:
        return found
    known = suite_catalog.suite_options(view)
    return compare_chosen(view, [name for name in names if name in known])


def draw_side(found: ComparedSuites, names: list[str], shown: View, _: Selection, key: str) -> None:
    """Draw the gains of one of two setups."""
    draw_gains(_same_suites(found, names, shown), f"gains-{key}")


def difference(found: ComparedSuites, names: list[str], here: View, there: View) -> str:
    """Say how many cells the suites add on either setup."""
    sentences = []
    for view, where in ((here, "here"), (there, "on the pinned setup")):
        suites = _same_suites(found, names, view)
        gains = suites.added(suites.m)
        best = int(np.argmax(gains))
        most = f"{lower(suites.options[best].label)} adds most: {plural(gains[best], 'cell')}"
        sentences.append(f"{where} (m = {suites.m}) {most if gains[best] else 'no suite adds cells'}")
    text = "; ".join(sentences)
    return f"{text[0].upper()}{text[1:]}."
