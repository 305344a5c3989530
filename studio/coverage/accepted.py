"""What accepted inputs change, and what can be done with them: kept, exported, trained with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from idc_core.store.decisions import Decisions
from studio.coverage import candidates, decisions
from studio.jobs.overview import summarise
from studio.jobs.results import View
from studio.shell.pages import PAGES
from studio.text import cell_name, literal, percent, plural
from studio.widgets import exports
from studio.widgets.keep_suite import keep_row

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from idc_core.base.arrays import Array
    from idc_core.filling import Change, Filling
    from idc_core.suites import Suite

_NAME = "Accepted inputs"


def draw(view: View, filling: Filling) -> None:
    """Say what the accepted inputs of a setup change, and offer them as a suite."""
    from idc_core.filling import accepted_inputs

    held = decisions.read(view)
    which, labels = accepted_inputs(filling, held.inputs)
    st.header("Accepted inputs", anchor=False)
    with st.container(horizontal=True, vertical_alignment="center"):
        _accept_all(view, filling, held)
        if not which.any():
            st.markdown("None yet.", width="content")
    if not which.any():
        return
    change = _change(view, filling, which, labels)
    _draw_numbers(change)
    st.markdown(" ".join(literal(one.sentence) for one in change.findings))
    _offer(view, filling, which, labels)


def _accept_all(view: View, filling: Filling, held: Decisions) -> None:
    """Offer to accept the best input of every cell that has a usable one, and on which nothing is decided."""
    from idc_core.filling import best_usable

    cells = filling.cells[filling.cell].tolist()
    best: dict[str, int | float | None] = {}
    for row in best_usable(filling).tolist():
        cell, digest = tuple(cells[row]), filling.digests[row]
        decided = decisions.verdict(held, cell_name(cell), candidates.digests_of(filling, cell))
        if not decided and digest not in held.inputs:
            best[digest] = filling.labels[row].item()
    if not best:
        return
    st.button(
        f"Accept the best input of {plural(len(best), 'undecided cell')}",
        key="accept-all",
        on_click=decisions.change,
        args=(view, lambda now: now.on_inputs(best)),
        help="Of each undecided cell, the valid input with the highest p-value, with the class of the vote.",
    )


def _change(view: View, filling: Filling, which: NDArray[np.bool_], labels: Array) -> Change:
    from idc_core.filling import change_by

    overview = summarise(view)
    return change_by(
        view.table,
        filling.cells[filling.cell[which]],
        None if view.correct is None else filling.predictions[which] == labels[which],
        overview.reach(filling.valid_codes),
        0 if overview.training is None else overview.training.inputs,
    )


def _draw_numbers(change: Change) -> None:
    """Show every number with the accepted inputs, and below it the number before."""
    covered, after = change.covered
    total, reachable = change.total, change.reachable
    text = "Share of all cells that tests and accepted inputs reach."
    numbers = [("IDC", after / total, f"before {percent(covered / total)}", text)]
    text = "The same share of the cells that tests, training inputs, valid generated or accepted inputs reach."
    numbers.append(("IDC within reach", after / reachable, f"before {percent(covered / reachable)}", text))
    if change.accuracy is not None:
        before, now = change.accuracy
        text = "Of the tests and the accepted inputs together."
        numbers.append(("Accuracy", now, f"before {percent(before)}", text))
    if change.chance is not None:
        first, left = change.chance
        said = f"{percent(left.low)} to {percent(left.high)}, before {percent(first.value)}"
        text = "That the next natural test reaches a cell that neither tests nor accepted inputs reach; 95 % interval."
        numbers.append(("Chance of a new cell", left.value, said, text))
    # Numbers of this width stand beside each other in a wide window, and wrap in a narrow one.
    with st.container(horizontal=True):
        for label, number, beside, text in numbers:
            st.metric(label, percent(number), beside, "off", delta_arrow="off", border=True, width=195, help=text)


def _offer(view: View, filling: Filling, which: NDArray[np.bool_], labels: Array) -> None:
    """Offer to keep the accepted inputs as a suite, to export them, and to train with them."""
    from idc_core.suites import pack_class_folders, pack_suite

    def suite() -> Suite:
        from idc_core.filling import suite_of

        return suite_of(filling, view.test, which, labels, _NAME)

    with st.container(horizontal=True, vertical_alignment="bottom"):
        kept = keep_row(_NAME, int(which.sum()), "keep-filled", suite)
        st.download_button(
            "Accepted inputs (npz)",
            lambda: pack_suite(_NAME, suite()),
            file_name=exports.named("accepted-inputs.npz"),
            mime="application/octet-stream",
            on_click="ignore",
            key="accepted-npz",
            help="Inputs, labels and how they were made; the Test sets page reads it again.",
        )
        if view.is_classifier:
            st.download_button(
                "Class folders (zip)",
                lambda: pack_class_folders(suite()),
                file_name=exports.named("accepted-inputs.zip"),
                mime="application/zip",
                on_click="ignore",
                key="accepted-folders",
                help="One PNG per input, in a folder named after its class.",
            )
    if kept and view.correct is not None:
        page = PAGES["robustness"]
        label = "Does training with this suite help?"
        st.page_link(page.file, label=label, icon=page.icon, help=page.help, query_params={"own-suite": kept})
