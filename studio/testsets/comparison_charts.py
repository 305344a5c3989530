"""Charts and tables of compared suites, and what they show in words: which suites add cells, and how many."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.evidence.additions import addition
from idc_core.evidence.finding import Finding, Verdict
from idc_core.figures import suites as figures
from studio.jobs import suite_catalog
from studio.jobs.results import View
from studio.jobs.wording import quantity
from studio.shell import pins, tabs
from studio.state import address
from studio.state.selection import Point, Selection, carried
from studio.testsets import seeds
from studio.testsets.seeds import Gains
from studio.testsets.suite_comparison import ComparedSuites, compare, compare_chosen
from studio.text import count, literal, lower, percent, plural
from studio.widgets import layout

SHOWN, CELLS = "shown", "cells-m"
"""Names in the address: the suite whose inputs that add cells are shown, and the number of neurons."""


def _drawn(found: ComparedSuites) -> list[figures.DrawnSuite]:
    return [figures.DrawnSuite(option.label, option.kind, option.within) for option in found.options]


def headline(found: ComparedSuites, gains: Gains | None = None) -> str:
    """Say what each suite adds beside what as many natural inputs would, and how the added inputs are classified."""
    if len(found.results) < 2:
        return "**Only the original tests are shown.** Choose suites above to see which cells they add."
    if not found.additions:
        return f"{_covered_by_parts(found)} A part of the tests adds no cells: choose other suites above."
    first, *others = seeds.findings(found, gains or {}, found.m).values()
    more = [literal(finding.sentence) for finding in others]
    return layout.lead(layout.claim(first), *more, _accuracies(found, gains or {}), _covered_by_parts(found))


def _accuracies(found: ComparedSuites, gains: Gains) -> str:
    """Say how the added inputs are classified; nothing where accuracy is not defined."""
    shares = {place: seeds.accuracy(found, gains, place) for place in found.additions}
    said = [
        f"{literal(lower(found.options[place].label))} {percent(share)}"
        for place, share in shares.items()
        if share is not None
    ]
    return f"Accuracy on added inputs: {layout.names(said)}." if said else ""


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
    wait_for_seeds = seeds.begin(found)
    perturbed = suite_catalog.perturbed_count(view)
    if perturbed < len(view.chosen) and any(result.extra == perturbed for result in found.results):
        st.caption(f"Suites perturb {count(perturbed)} of the {plural(len(view.chosen), 'test')}, drawn at random.")
    _draw_gains(found)
    _draw_tables(found)
    gains = wait_for_seeds()
    finding.markdown(headline(found, gains))
    _draw_added(found, gains)
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
        "Suites made of the tests include the original tests; added inputs are the others. What as many natural inputs "
        "would add is predicted from the cells that one test reaches and those that two reach, with the range of 95 %, "
        "for at most as many inputs as there are tests. Training inputs are none: clusters were fitted to them.",
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
    title = layout.topic("Coverage (IDC) of the original tests, and with each suite")

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
        "IDC of the original tests. Labels count added cells; of the original tests and parts of them they are IDC. "
        "Click a mark to see the inputs that add cells.",
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


def _draw_added(found: ComparedSuites, gains: Gains) -> None:
    """List what each suite adds, for every number of neurons, beside natural inputs."""
    ms = found.comparison.ms
    by_m = {m: seeds.findings(found, gains, m, len(found.additions) * len(ms)) for m in ms}
    rows = [
        {"suite": found.options[place].label} | {f"m = {m}": _beside(found_at[place]) for m, found_at in by_m.items()}
        for place in found.additions
        if place in by_m[ms[0]]
    ]
    if rows:
        table = pd.DataFrame(rows)
        right = st.column_config.TextColumn(alignment="right")
        columns = dict.fromkeys(table.columns[1:], right)
        alt = "New cells of every suite beside those of as many natural inputs"
        st.dataframe(table, hide_index=True, height="content", column_config=columns, alt=alt)
        st.caption(
            f"New cells (mean of {seeds.SEEDS} seeds where a suite depends on one) / those of as many natural inputs. "
            "A star marks what stands out."
        )


def _beside(finding: Finding) -> str:
    """Write the number of a finding beside its control."""
    control, star = finding.control, " *" if finding.verdict is Verdict.STANDS_OUT else ""
    low, high = count(int(control.low)), count(int(control.high))
    return f"{finding.write(finding.number)} / {finding.write(control.value)} ({low} to {high}){star}"


def _draw_shared(found: ComparedSuites) -> None:
    """Draw how many cells every two suites share."""
    counts = found.comparison.shared[found.m]
    cells = [set(result.cells[found.m].codes.tolist()) for result in found.results]
    common, reached = len(set.intersection(*cells)), len(set.union(*cells))
    title = layout.counted(f"Reached by all {len(found.results)} suites (m = {found.m})", common, reached, "cell")
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
    title = _cumulative_title(found, int(orders[1][2][1:].sum()))
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
    """Say how many cells the suite that adds most adds on either setup, beside natural inputs."""
    sentences = []
    for view, where in ((here, "Here"), (there, "On the pinned setup")):
        suites = _same_suites(found, names, view)
        said = [literal(finding.sentence) for finding in seeds.findings(suites, {}, suites.m).values()]
        sentences.append(f"{where}: {said[0][0].lower()}{said[0][1:]}" if said else f"{where}: no suite adds inputs.")
    return " ".join(sentences)


def _cumulative_title(found: ComparedSuites, gain: int) -> layout.Headline:
    """State what the suites add together, beside what as many natural inputs would."""
    inputs = sum(found.results[place].extra for place in found.additions)
    if not inputs:
        return layout.topic("All suites together add no inputs")
    claim = f"New cells at m = {found.m} from all suites together"
    return layout.claim(addition(claim, [gain], *seeds.counts(found, found.m), inputs))
