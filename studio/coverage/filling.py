"""Inputs for all empty cells at once: the button, the job, and what came of it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from zlib import crc32

import pandas as pd
import streamlit as st

from idc_core.base.spreadsheets import csv
from idc_core.errors import CancelledError, IdcError
from idc_core.filling.settings import FillSettings
from idc_core.models.registry import companions, shipped_card
from idc_core.runs import Planned, PlannedAnalysis, planned_filling, unfinished_filling
from studio.jobs import jobs
from studio.jobs.jobs import JobKind, Waiting, shelf
from studio.jobs.results import View, idc_settings
from studio.state import address
from studio.text import count, literal, plural
from studio.widgets import exports, layout

if TYPE_CHECKING:
    from idc_core.coverage.cells import Codes
    from idc_core.evidence.validity import Validity
    from idc_core.filling import Filling

_FILLINGS = JobKind("fillings", kept=4, is_long=True)

_ASKED = "fill-all"
"""The grid whose empty cells were to be filled: another setup does not begin by itself; in the address."""


def draw(view: View) -> Filling | None:
    """Offer to make inputs for all empty cells, or make or find them, say how far they reach, and return them."""
    plan = _planned(view)
    known = shelf().finished(_FILLINGS, plan.key) is not None
    name = f"{crc32(repr(plan.key).encode()):08x}"
    if not known and address.read(_ASKED) != name:
        st.button(
            "Fill all empty cells",
            key="fill-all-start",
            on_click=address.keep,
            args=(_ASKED, name),
            help="Makes inputs for all empty cells: mild changes of tests first, then a directed search. Takes seconds "
            "to minutes. Can be stopped and resumed.",
        )
        return None
    filling = _open(plan)
    if filling is not None:
        _tell(view, filling)
    return filling


def generated(view: View) -> Codes | None:
    """Return the codes of the cells that valid generated inputs reach; None where none were made."""
    made = shelf().finished(_FILLINGS, _planned(view).key) if view.has_pictures else None
    return None if made is None else made.result().valid_codes


def _planned(view: View) -> Planned[Filling]:
    """Plan to fill the grid of the chosen tests with the usual budget."""
    setup = view.setup
    analysis = PlannedAnalysis(view.card, view.train, view.test, setup.layer, view.analysis.m, idc_settings(setup))
    alike = view.is_classifier and view.is_comparable
    # A person's own networks are not open in every process that works.
    voters = [name for name in companions(setup.model)[1:] if alike and shipped_card(name)]
    return planned_filling(
        analysis, lambda: view.model, lambda _: view.analysis, FillSettings(), voters, chosen=view.chosen
    )


def _open(plan: Planned[Filling]) -> Filling | None:
    """Fill the grid or find the result; after a stop, what had been found, None where that is nothing."""
    try:
        if st.session_state.get(jobs.PAUSED) != plan.key:
            return Waiting(1).get(_FILLINGS, plan.key, "filling the grid", plan.make)
    except CancelledError:
        st.session_state[jobs.PAUSED] = plan.key
    except IdcError as error:
        st.error(literal(error))
        return None
    found = unfinished_filling(plan)
    tried = "nothing was tried to its end" if found is None else f"{found.done} of {len(found.ways)} ways were tried"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.warning(f"Stopped: {tried}.", width="stretch")
        st.button("Resume", on_click=jobs.go_on, key="fill-all-resume", help="Goes on behind the last way.")
    return found


def _tell(view: View, filling: Filling) -> None:
    """Say what was reached, and fold away how the inputs are judged."""
    valid, reached = int(filling.reached_validly.sum()), int(filling.reached.sum())
    missing = count(len(filling.cells) - reached)
    rest = f"nothing so far reaches {missing}" if filling.stopped else f"nothing within the budget reaches {missing}"
    out = f" {plural(filling.left_out, 'more empty cell')} were not tried." if filling.left_out else ""
    st.markdown(
        layout.lead(
            layout.counted("Reached by valid generated inputs", valid, len(filling.cells), "empty cell"),
            f"Inputs that are not valid reach {count(reached - valid)} more; {rest}.{out}",
            literal(filling.validity.finding(int(filling.valid.sum()), len(filling)).sentence),
        )
    )
    with st.expander("How inputs are judged"):
        for words in filling.common_words():
            st.markdown(f"In common: {words}.")
        _explain(view, filling)
        with st.container(horizontal=True):
            for label, kind, mime, make in (
                ("All inputs (npz)", "npz", "application/octet-stream", _packed),
                ("Judgements (CSV)", "csv", "text/csv", _table),
            ):
                st.download_button(
                    label,
                    partial(make, filling),
                    file_name=exports.named(f"filled-inputs.{kind}"),
                    mime=mime,
                    on_click="ignore",
                    key=f"filled-{kind}",
                )


def _explain(view: View, filling: Filling) -> None:
    """Say what every detector accepts, who votes, and the budget."""
    st.markdown(
        "A detector is fitted to training inputs and calibrated on tests. An input is valid if at least 5 % of natural "
        "inputs are as strange. The detector that accepts the smallest share of known-bad inputs is used; it is the "
        "first row."
    )
    st.dataframe(pd.DataFrame([_shares(one) for one in (filling.validity, *filling.other_detectors)]), hide_index=True)
    voters = layout.names([literal(name) for name in filling.voters])
    vote = f"Labels are the vote of {voters}. " if filling.voters else "No other network votes on labels. "
    st.caption(f"{vote}Budget: {filling.settings.words}; {count(filling.passes)} passes in {filling.seconds:.0f} s.")


def _shares(one: Validity) -> dict[str, str]:
    accepted = {kind.what: f"{100 * kind.share:.1f} %" for kind in (one.natural, *one.known_bad)}
    return {"accepted by": one.detector, **accepted}


def _packed(filling: Filling) -> bytes:
    from idc_core.filling.result import packed

    return packed(filling)


def _table(filling: Filling) -> str:
    from idc_core.filling.result import records

    return csv(pd.DataFrame(records(filling)))
