"""Charts and tables of compared suites, and what they show in words: which suites add cells, and how many."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.figures import suites as figures
from studio.jobs import suite_catalog
from studio.jobs.results import View
from studio.jobs.wording import quantity
from studio.shell import pins, tabs
from studio.state import address
from studio.state.selection import Point, Selection, carried
from studio.testsets.suite_comparison import ComparedSuites, compare, compare_chosen
from studio.text import count, literal, lower, percent, plural
from studio.widgets import layout

SHOWN, CELLS = "shown", "cells-m"
"""Names in the address: the suite whose inputs that add cells are shown, and the number of neurons."""


def _drawn(found: ComparedSuites) -> list[figures.DrawnSuite]:
    return [figures.DrawnSuite(option.label, option.kind, option.within) for option in found.options]


def headline(found: ComparedSuites) -> str:
    """Say which suite adds most cells, with how many inputs."""
    if len(found.results) < 2:
        return "**Only the original tests are shown.** Choose suites above to see which cells they add."
    if not found.additions:
        return f"**{_covered_by_parts(found)}** A part of the tests adds no cells: choose other suites above."
    m = found.first_m()
    gains, base = found.added(m), found.results[0].cells[m].covered
    labels = [literal(lower(found.options[number].label)) for number in found.additions]
    if not any(gains):
        verb, most = "adds" if len(labels) == 1 else "add", max(found.comparison.ms)
        text = f"{layout.names(labels)} {verb} no new cells for any m up to {most}."
        return f"**{text[0].upper()}{text[1:]}** {_covered_by_parts(found)}"
    first, *others = sorted(found.additions, key=lambda number: -gains[number])
    text = (
        f"{_who(found, first)} adds {plural(gains[first], 'cell')} to the {count(base)} covered by the original tests "
    )
    text += f"(m = {m})"
    others_added = [f"{lower(_who(found, number))} adds {gains[number] or 'none'}" for number in others]
    sentences = [f"**{'; '.join([text, *others_added])}.**"]
    if sum(1 for gain in gains if gain) > 1:
        together = found.comparison.marginal(m, found.comparison.best_order(m))
        sentences.append(f"Together they add {count(int(together[1:].sum()))}.")
    most = max(found.comparison.ms)
    best = int(np.argmax(found.added(most)))
    if most != m and found.added(most)[best] and best != int(np.argmax(gains)):
        cells = plural(found.added(most)[best], "cell")
        sentences.append(f"At m = {most} {literal(lower(found.options[best].label))} adds most: {cells}.")
    return " ".join([*sentences, _covered_by_parts(found)]).strip()


def _who(found: ComparedSuites, number: int) -> str:
    return f"{literal(found.options[number].label)} ({plural(found.results[number].extra, 'input')})"


def _covered_by_parts(found: ComparedSuites) -> str:
    """Say how many cells the suites cover that are parts of the tests."""
    covering = [
        f"{lower(option.label)} ({count(result.inputs)}) cover {count(result.cells[found.m].covered)}"
        for result, option in zip(found.results, found.options, strict=True)
        if option.within
    ]
    covered = plural(found.results[0].cells[found.m].covered, "cell")
    return f"Of the {covered} covered at m = {found.m}, {layout.names(covering)}." if covering else ""


def draw_compared(view: View, names: list[str]) -> None:
    """Show which suite adds most cells, for several numbers of neurons."""
    finding = st.empty()
    found = compare(view, names)
    finding.markdown(headline(found))
    perturbed = suite_catalog.perturbed_count(view)
    if perturbed < len(view.chosen) and any(result.extra == perturbed for result in found.results):
        st.caption(f"Suites perturb {count(perturbed)} of the {plural(len(view.chosen), 'test')}, drawn at random.")
    _draw_gains(found)
    _draw_tables(found)
    pins.beside(view, partial(_draw_side, found, names), partial(_difference, found, names))
    noise = (
        "Noise on random pixels (U_O+S) and on the most relevant pixels (U_O+DI) follows RQ2 of the paper: the same "
        "values on 2 % of the pixels. "
    )
    layout.computed(
        view,
        f"Neurons and clusters are learnt once from the training inputs, for {max(found.comparison.ms)} neurons of "
        f"layer {view.setup.layer}. A smaller m uses the first of them.",
        f"{noise if view.has_pictures else ''}A suite adds a cell if it reaches it and no original test does. "
        "Suites made of the tests include the original tests; added inputs are the others.",
        found.provenance,
    )


def draw_overlap(view: View, names: list[str]) -> None:
    """Show which cells suites share, and what each adds to those before it."""
    found = compare(view, names)
    if len(found.results) < 2:
        st.markdown(headline(found))
        return
    _draw_shared(found)
    if found.additions:
        _draw_cumulative(found)
    layout.computed(
        view,
        f"Cells are those of the setup, m = {found.m}. A suite made of the tests includes them, so that it shares "
        "their cells. “Largest gain first” takes at every step the suite that adds most cells to those before it.",
    )


def _draw_gains(found: ComparedSuites, key: str = "gains") -> None:
    """Draw the IDC of every suite with the cells that it adds; a click leads to the inputs that add them."""
    ms = found.comparison.ms
    scores = np.array([[suite.cells[m].score for suite in found.results] for m in ms])
    added = np.array([found.added(m) for m in ms])
    title = _gains_title(found)

    def clicked(points: Sequence[Point]) -> None:
        number, m = carried(points[0])
        if number:
            address.keep(SHOWN, found.options[int(number)].name)
            address.keep(CELLS, str(int(m)))
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


def _draw_tables(found: ComparedSuites) -> None:
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


def _draw_shared(found: ComparedSuites) -> None:
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


def _draw_cumulative(found: ComparedSuites) -> None:
    """Draw what each suite adds to those before it, in the listed order and the largest gain first."""
    m, comparison = found.m, found.comparison
    orders = []
    given = list(range(len(found.results)))
    for name, numbers in (("Listed order", given), ("Largest gain first", comparison.best_order(m))):
        # Parts of the tests add nothing, wherever they stand.
        places = [place for place, number in enumerate(numbers) if number == 0 or number in found.additions]
        orders.append((name, [numbers[place] for place in places], comparison.marginal(m, numbers)[places]))
    title = _cumulative_title(found, orders[1][1], orders[1][2].tolist())
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


def _draw_side(found: ComparedSuites, names: list[str], shown: View, _: Selection, key: str) -> None:
    """Draw the gains of one of two setups."""
    _draw_gains(_same_suites(found, names, shown), f"gains-{key}")


def _difference(found: ComparedSuites, names: list[str], here: View, there: View) -> str:
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


def _gains_title(found: ComparedSuites) -> str:
    """State who adds most cells, for the setup's number of neurons and the largest one."""
    if len(found.results) > 1 and not found.additions:
        return _covered_by_parts(found).removesuffix(".")
    ms = sorted({found.m, max(found.comparison.ms)})
    best = {m: int(np.argmax(found.added(m))) for m in ms}
    cells = {m: plural(found.added(m)[best[m]], "cell") for m in ms}
    if not any(best.values()):
        return f"No suite adds cells at m = {' or m = '.join(map(str, ms))}"
    if len(set(best.values())) == 1:
        counts = ", ".join(f"{cells[m]} at m = {m}" for m in ms)
        return f"{found.options[best[ms[0]]].label} adds most: {counts}"
    several = [
        f"at m = {m} {lower(found.options[best[m]].label)} adds most: {cells[m]}"
        if best[m]
        else f"at m = {m} no suite adds cells"
        for m in ms
    ]
    text = "; ".join(several)
    return text[0].upper() + text[1:]


def _cumulative_title(found: ComparedSuites, best: list[int], gains: list[int]) -> str:
    """State what the suites add together, from the suites and their gains in the best order."""
    if not any(gains[1:]):
        return f"At m = {found.m} no suite adds cells to the original tests"
    title = f"At m = {found.m} all suites together add {plural(sum(gains[1:]), 'cell')}, "
    title += f"{lower(found.options[best[1]].label)} alone {count(gains[1])}"
    late = sum(1 for gain in gains[1:] if not gain)
    return title + (f"; {plural(late, 'suite')} {'adds' if late == 1 else 'add'} nothing more" if late else "")
