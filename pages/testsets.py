"""Test sets: suites side by side, by the cells that each adds to the original tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.figures import suites as figures
from studio.engine import suite_catalog
from studio.engine.results import View
from studio.shell import address, pins
from studio.shell.frame import current_view
from studio.testsets import added_inputs, suite_controls
from studio.testsets.suite_comparison import Weighed, weigh
from studio.widgets import layout
from studio.widgets.text import count, lower, percent, plural

view = current_view()
finding = st.empty()


def what(found: Weighed, number: int) -> str:
    """Name a suite's inputs inside a sentence, with their number."""
    return f"{plural(found.results[number].extra, 'input')} {of(found, number)}"


def of(found: Weighed, number: int) -> str:
    """Say of what suite inputs are: with what they were made, or where they are from."""
    offered = found.offered[number]
    return f"{'with' if offered.made else 'of'} {lower(offered.label)}"


def verdict(found: Weighed) -> str:
    """Say which suite is worth having: how many cells each adds, with how many inputs."""
    if len(found.results) < 2:
        return "**Only the original tests are shown.** Choose suites below to see what they would add."
    if not found.rivals:
        return f"**{parts(found)}** A part of the tests adds nothing to them: choose other suites below."
    m = found.first_m()
    gains, base = found.added(m), found.results[0].cells[m]
    if not any(gains):
        who = layout.names([lower(found.offered[number].label) for number in found.rivals])
        most = max(found.comparison.ms)
        text = f"**Nothing is added by {who}: at no m up to {most} a cell that the tests do not reach.**"
        return f"{text} {parts(found)}"
    ranked = sorted(found.rivals, key=lambda number: -gains[number])
    first = ranked[0]
    verb = "adds" if found.results[first].extra == 1 else "add"
    text = f"**{what(found, first)} {verb} {plural(gains[first], 'cell')} to the {count(base.covered)} that the tests "
    text += f"reach (m = {m})"
    others: dict[str, list[str]] = {}
    for number in ranked[1:]:
        same = found.results[number].extra == found.results[first].extra
        who = "as many" if same else count(found.results[number].extra)
        word, _, label = of(found, number).partition(" ")
        verb = "adds" if found.results[number].extra == 1 else "add"
        others.setdefault(f"{who} {word}", []).append(f"{label} {verb} {gains[number] or 'none'}")
    told = [f"{who} {layout.names(several)}" for who, several in others.items()]
    text += f"; {'; '.join(told)}.**" if told else ".**"
    return " ".join(one for one in (text, together(found, m), elsewhere(found, m), parts(found)) if one)


def together(found: Weighed, m: int) -> str:
    """Say what the suites add together."""
    if sum(1 for one in found.added(m) if one) < 2:
        return ""
    gains = found.comparison.marginal(m, found.comparison.best_order(m))
    return f"Together they add {count(int(gains[1:].sum()))}."


def elsewhere(found: Weighed, m: int) -> str:
    """Say which suite adds most with the most neurons, where it is another one."""
    most = max(found.comparison.ms)
    gains, here = found.added(most), found.added(m)
    best = int(np.argmax(gains))
    if most == m or not gains[best] or best == int(np.argmax(here)):
        return ""
    return f"At m = {most} {lower(found.offered[best].label)} adds most, {plural(gains[best], 'cell')}."


def parts(found: Weighed) -> str:
    """Say what the suites that are parts of the tests reach."""
    base = found.results[0].cells[found.m].covered
    told = [
        f"{lower(offered.label)} ({count(one.inputs)}) reach {count(one.cells[found.m].covered)}"
        for one, offered in zip(found.results, found.offered, strict=True)
        if offered.within
    ]
    if not told:
        return ""
    return f"Of the {plural(base, 'cell')} that all tests reach at m = {found.m}, {layout.names(told)}."


def drawn(found: Weighed) -> list[figures.Drawn]:
    """Return how the suites appear in figures."""
    return [figures.Drawn(one.label, one.kind, one.within) for one in found.offered]


def gains_title(found: Weighed) -> str:
    """State who adds most, for the bench's number of neurons and the largest one."""
    if len(found.results) > 1 and not found.rivals:
        return parts(found).removesuffix(".")
    low, high = found.m, max(found.comparison.ms)
    best = {m: int(np.argmax(found.added(m))) for m in (low, high)}
    cells = {m: plural(found.added(m)[best[m]], "cell") for m in (low, high)}
    if not best[low] and not best[high]:
        return f"No suite adds a cell at m = {low}" + (f" or m = {high}" if high != low else "")
    if best[low] == best[high]:
        more = f", {cells[high]} at m = {high}" if high != low else ""
        text = f"{lower(found.offered[best[low]].label)} adds most: {cells[low]} at m = {low}{more}"
    else:
        told = [
            f"at m = {m} {lower(found.offered[best[m]].label)} adds most, {cells[m]}"
            if best[m]
            else f"at m = {m} no suite adds a cell"
            for m in (low, high)
        ]
        text = "; ".join(told)
    return text[0].upper() + text[1:]


def draw_gains(found: Weighed, one: View, key: str) -> None:
    """Draw the IDC of every suite with the cells that it adds."""
    ms = found.comparison.ms
    scores = np.array([[suite.cells[m].score for suite in found.results] for m in ms])
    more = np.array([found.added(m) for m in ms])
    title = gains_title(found)
    layout.chart(
        one,
        key,
        lambda dark: figures.gains(drawn(found), ms, scores, more, title, dark=dark),
        alt=title,
        read="a panel is a number m of important neurons, a row a suite. The mark is the suite's IDC, the share of "
        "combinations that it reaches; the line leads there from the original tests, and its end says how many "
        "cells the suite adds to theirs. Panels have scales of their own, which do not begin at zero. Click a mark for "
        "the inputs that add its cells, below.",
        depends=found.key,
        clicked=clicked if key == "gains" else None,
    )


def clicked(points: list[dict[str, Any]]) -> None:
    """Show the inputs of the suite whose mark was clicked, for the m of its panel."""
    number, m = points[0]["customdata"]
    if number:
        address.keep(added_inputs.SHOWN, found.offered[int(number)].name)
        address.keep(added_inputs.CELLS, str(int(m)))


def share(value: float | None) -> str:
    """Write a share, or nothing where there is none."""
    return "" if value is None else percent(value)


def tabulate_coverage(found: Weighed) -> pd.DataFrame:
    """Return how many inputs a suite has and what they cover, a row a suite."""
    rows = []
    for number, (one, offered) in enumerate(zip(found.results, found.offered, strict=True)):
        more = not offered.within
        row = {"suite": offered.label, "inputs": count(one.inputs), "beyond the tests": count(more * one.extra)}
        for m in found.comparison.ms:
            cells = one.cells[m]
            row[f"IDC, m = {m}"] = percent(cells.score) + (f" ({len(cells.added):+,})" if number and more else "")
        rows.append(row)
    return pd.DataFrame(rows)


def tabulate_answers(found: Weighed) -> pd.DataFrame:
    """Return how well the network answers a suite's inputs, a row a suite."""
    rows = []
    for number, (one, offered) in enumerate(zip(found.results, found.offered, strict=True)):
        more = not offered.within
        row = {"suite": offered.label}
        if found.view.is_classifier:
            judged = found.judged(number)
            row["accuracy"] = share(one.accuracy) if judged else ""
            row["beyond: accuracy"] = share(one.extra_accuracy) if judged and more else ""
            row["confidence"] = share(one.confidence)
            row["beyond: confidence"] = share(one.extra_confidence) if more else ""
        else:
            for name, value in (("RMSE (rad)", one.rmse), ("beyond: RMSE (rad)", one.extra_rmse)):
                row[name] = "" if value is None else f"{value:.4f}"
        rows.append(row)
    return pd.DataFrame(rows)


def draw_table(found: Weighed) -> None:
    """Show coverage, accuracy and confidence of every suite, in two tables: one would be wider than a narrow window."""
    right = st.column_config.TextColumn(alignment="right")
    for table, alt in (
        (tabulate_coverage(found), "Size and coverage of every suite"),
        (tabulate_answers(found), "Accuracy and confidence of every suite"),
    ):
        st.dataframe(
            table, hide_index=True, height="content", column_config=dict.fromkeys(table.columns[1:], right), alt=alt
        )
    several = [f"{count(found.results[0].cells[m].total)} at m = {m}" for m in found.comparison.ms]
    measure = "" if found.view.is_classifier else " RMSE is the root mean square error."
    st.caption(
        "A suite that is made of the tests holds the tests as well; “beyond” are the inputs that it has more. "
        f"In brackets, the cells that it adds.{measure} Cells there are: {layout.names(several)}."
    )


def draw_shared(found: Weighed) -> None:
    """Draw how many cells every two suites share."""
    counts = found.comparison.shared[found.m]
    common = len(set.intersection(*(set(one.cells[found.m].codes.tolist()) for one in found.results)))
    title = f"All {len(found.results)} suites reach {plural(common, 'cell')} of m = {found.m} in common"
    layout.chart(
        view,
        "shared",
        lambda dark: figures.shared(drawn(found), counts, title, dark=dark),
        alt=title,
        read="a square is the number of cells that two suites both reach; on the diagonal, how many one suite does. "
        "Two suites with the same numbers in their row reach the same cells.",
        depends=(found.key, found.m),
    )


def draw_in_turn(found: Weighed) -> None:
    """Draw what each suite adds to those before it, in the given order and best first."""
    m, comparison = found.m, found.comparison
    orders = []
    given = list(range(len(found.results)))
    for name, numbers in (("As they are listed", given), ("Always the one that adds most", comparison.best_order(m))):
        # Parts of the tests add nothing, wherever they stand.
        kept = [place for place, number in enumerate(numbers) if number == 0 or number in found.rivals]
        orders.append((name, [numbers[place] for place in kept], comparison.marginal(m, numbers)[kept]))
    best, gains = orders[1][1], orders[1][2]
    late = sum(1 for gain in gains[1:] if not gain)
    title = f"At m = {m}, {lower(found.offered[best[1]].label)} first adds {plural(int(gains[1]), 'cell')}"
    title += f"; all together add {count(int(gains[1:].sum()))}"
    title += f", and {plural(late, 'suite')} {'adds' if late == 1 else 'add'} nothing more" if late else ""
    if not gains[1:].any():
        title = f"At m = {m} no suite adds a cell to the original tests"
    layout.chart(
        view,
        "in-turn",
        lambda dark: figures.in_turn(drawn(found), orders, title, dark=dark),
        alt=title,
        read="from top to bottom, a bar is what a suite adds to the original tests and all suites above it. A suite "
        "that adds much alone and nothing in turn only repeats what another one reaches.",
        depends=(found.key, m),
    )


def draw_side(shown: View, chosen: Any, key: str) -> None:
    """Draw the gains of one of two benches."""
    draw_gains(beside(shown), shown, f"gains-{key}")


def beside(shown: View) -> Weighed:
    """Return the same suites on one of two benches; what it does not have is left out."""
    if shown is view:
        return found
    known = suite_catalog.offers(shown)
    return weigh(shown, [name for name in names if name in known])


def compare(here: View, there: View) -> str:
    """Say how many cells the suites add on either bench."""
    told = []
    for one, where in ((beside(here), "here"), (beside(there), "on the pinned bench")):
        gains = one.added(one.m)
        best = int(np.argmax(gains))
        who = f"{lower(one.offered[best].label)} adds most, {plural(gains[best], 'cell')}"
        told.append(f"{where} (m = {one.m}) {who if gains[best] else 'no suite adds a cell'}")
    text = "; ".join(told)
    return f"{text[0].upper()}{text[1:]}."


names = suite_controls.choose(view)
suite_controls.bring(view, names)
found = weigh(view, names)
for problem in found.problems:
    st.warning(problem)
finding.markdown(verdict(found))
perturbed = suite_catalog.perturbed_count(view)
if perturbed < len(view.chosen) and any(one.extra == perturbed for one in found.results):
    st.caption(
        f"What is made is made of {count(perturbed)} of the {plural(len(view.chosen), 'test')}, drawn at "
        "random: raise \u201cTests that are changed\u201d for more."
    )
draw_gains(found, view, "gains")
draw_table(found)

files: dict[str, Any] = {}
number, m = 0, found.m
if len(found.results) > 1:
    st.header("What they share", anchor=False)
    draw_shared(found)
if found.rivals:
    st.header("One after the other", anchor=False)
    draw_in_turn(found)
    st.header("Which inputs add them", anchor=False)
    number, m = added_inputs.choose(found)
    added_inputs.draw(found, number, m)
    added_inputs.draw_keep(found, number, m)
if len(found.results) > 1:
    files = added_inputs.take_away(found, number or 1, m)

pins.beside(view, draw_side, compare)

layout.computed(
    view,
    f"Neurons and clusters are learnt once from the training inputs, for {max(found.comparison.ms)} neurons of layer "
    f"{view.bench.layer}; the cells of a smaller m are those of the first neurons. The original tests pass through the "
    "network once, and every suite's own inputs once. Inputs are made block by block when they are needed; what is "
    "random follows from the seed and the test's number alone.",
    "Noise on random pixels (U_O+S) and on the most relevant ones (U_O+DI) is that of the paper's RQ2: the same values "
    "on 2 % of the pixels. A cell is added by a suite where none of the original tests reaches it.",
    "\n".join(
        f"* {offered.label}: "
        + "; ".join(step.label + (f", seed {step.seed}" if step.seed is not None else "") for step in suite.provenance)
        + f"; fingerprint `{suite.fingerprint}`"
        for offered, suite in zip(found.offered, found.suites, strict=True)
    ),
)
# Without what has no meaning here: accuracy of a regression, or errors of a classification.
layout.take_away({"test-sets": pd.DataFrame(found.comparison.rows()).dropna(axis=1, how="all")}, files)
