"""Cause or correlation: swap symbols and compare how units change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.base.progress import Progress
from idc_core.errors import CancelledError, IdcError
from idc_core.figures import verification as figures
from studio.hypotheses import inspections
from studio.hypotheses.inspections import Measured, quoted
from studio.jobs.jobs import JobKind, Waiting
from studio.state.choices import choose_one
from studio.text import literal, plural
from studio.widgets import layout

if TYPE_CHECKING:
    from idc_core.inspection import Hypothesis
    from idc_core.inspection.result import Grid
    from idc_core.inspection.verification import Swaps, Verification

_SWAPS: dict[Swaps, str] = {"symbols": "random symbols", "grammar": "by the grammar"}
"""How symbols are swapped: what the engine calls it, and label."""

_UNITS = (5, 10, 20)
"""How many units of the highest scores are compared."""

_PAIRS, _SETS = 200, 99
"""Swaps of each kind, and random sets of units: with the network of SQL strings it takes a few seconds at most."""

_LITTLE = 0.1
"""Silhouette below which the two kinds of changes overlap almost wholly."""


def draw_verification(measured: Measured, grid: Grid, layer: str, hypothesis: Hypothesis) -> None:
    """Verify a hypothesis about texts by swapped symbols where that is asked for."""
    from idc_core.inspection.hypothesis import is_text

    if not is_text(measured.view.test):
        return
    st.subheader("Cause or correlation?", anchor=False)
    ways = _ways_of(measured, hypothesis)
    most = grid.score.shape[1] // 2
    if reason := _why_not(hypothesis, ways, most):
        st.caption(literal(reason))
        return
    st.caption(
        f"{quoted(literal(hypothesis.name))} may correlate with something else that the neurons respond to. To test "
        "this, symbols are swapped: in some texts the hypothesis stays true, in others it becomes false. Only neurons "
        "that respond to the hypothesis itself change differently in the two cases."
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        how, number = _choose(ways)
        asked = st.toggle(
            "Verify",
            key="verify",
            bind="query-params",
            help=f"Swaps symbols in up to {_PAIRS} texts per kind and compares with {_SETS} random sets of as many "
            "neurons. Takes seconds. Default off.",
        )
    if not asked:
        return
    units = grid.units_of(grid.names.index(hypothesis.name))[: min(number, most)].tolist()
    try:
        verification = _verified(measured, layer, units, hypothesis, how)
    except CancelledError:
        st.caption("Stopped before it was finished.")
        return
    except IdcError as error:
        st.error(literal(error))
        return
    st.markdown(_sentence(verification, hypothesis, len(units), how))
    _draw_sets(measured, layer, hypothesis, verification, units, how)


def _ways_of(measured: Measured, hypothesis: Hypothesis) -> list[Swaps]:
    """Return how symbols can be swapped so that it is known whether a hypothesis still holds."""
    from idc_core.inspection.verification import REWRITERS

    grammar = measured.view.test.name in REWRITERS and (hypothesis.recomputable or hypothesis.parsed)
    known = {"symbols": hypothesis.recomputable, "grammar": grammar}
    return [way for way in _SWAPS if known[way]]


def _why_not(hypothesis: Hypothesis, ways: list[Swaps], most: int) -> str:
    """Say why a hypothesis cannot be verified; empty where it can."""
    name = quoted(hypothesis.name)
    if hypothesis.kind != "binary":
        return f"{name} is not binary: no swap can make it false."
    if not ways:
        return (
            f"{name} cannot be computed from the text or its parse, so that it is unknown for texts with swapped "
            "symbols."
        )
    return "" if most else "The layer has a single neuron: there are no others to compare with."


def _choose(ways: list[Swaps]) -> tuple[Swaps, int]:
    """Choose how symbols are swapped, and how many units are compared."""
    how = ways[0]
    if len(ways) > 1:
        how = choose_one(
            st.segmented_control,
            "Swap",
            {way: _SWAPS[way] for way in ways},
            how,
            "swaps",
            required=True,
            help="One random symbol per text; or another derivation by the grammar from some place on, so that texts "
            f"stay well formed. Default {_SWAPS[how]}.",
        )
    number = choose_one(
        st.segmented_control,
        "Highest-scoring neurons",
        {units: str(units) for units in _UNITS},
        10,
        "verified-units",
        required=True,
        help="Number of neurons with the highest scores that are tested together, at most half of the layer. "
        "Default 10.",
    )
    return how, number


def _verified(measured: Measured, layer: str, units: list[int], hypothesis: Hypothesis, how: Swaps) -> Verification:
    """Return the verification by swapped symbols."""
    view, tests = measured.view, inspections.tests_of(measured.view)

    def work(report: Progress) -> Verification:
        from idc_core.inspection.verification import verify

        return verify(
            view.model, layer, units, tests, hypothesis, pairs=_PAIRS, sets=_SETS, swaps=how, on_progress=report
        )

    key = (view.card.fingerprint, tests.fingerprint, layer, tuple(units), hypothesis.name, how)
    return Waiting(1).get(JobKind("verifications", is_long=True), key, "swapping symbols", work)


def _sentence(found: Verification, hypothesis: Hypothesis, units: int, how: Swaps) -> str:
    """Put the finding into words."""
    from idc_core.inspection.verification import CONFIRMED

    verdict = "Confirmed" if found.confirmed else "Not confirmed"
    ways = "Random symbols were swapped in" if how == "symbols" else "The grammar rewrote the texts"
    text = (
        f"{ways}: {len(found.baseline)} swaps kept {quoted(literal(hypothesis.name))} true, {len(found.treatment)} "
        f"made it false. {verdict}: {100 * found.p_value:.0f}\u00a0% of the sets of neurons separate the two kinds of "
        f"swaps as well; at most {100 * CONFIRMED:g}\u00a0% confirm."
    )
    if found.few:
        text += " Few swaps of one kind were found: the result is uncertain."
    if found.confirmed and found.silhouette < _LITTLE:
        text += " The effect is small: the two kinds of changes overlap almost entirely."
    return layout.lead(_claim(found, hypothesis, units), text)


def _claim(found: Verification, hypothesis: Hypothesis, units: int) -> layout.Headline:
    """Say how distinctly the units change, beside random sets."""
    which = "neuron with the highest score" if units == 1 else f"{units} neurons with the highest scores"
    swaps = f"when swaps make {quoted(hypothesis.name)} false"
    return layout.claim(found.finding(f"Silhouette of the changes of the {which} {swaps}"))


def _draw_sets(
    measured: Measured, layer: str, hypothesis: Hypothesis, found: Verification, units: list[int], how: Swaps
) -> None:
    """Draw the chosen units among the random sets."""
    title = _claim(found, hypothesis, len(units))
    layout.chart(
        measured.view,
        "verification",
        lambda dark: figures.among_random(
            found.random, found.silhouette, f"{plural(len(units), 'neuron')} with the highest scores", title, dark=dark
        ),
        alt=title,
        read="each dot is another set of as many random neurons; the diamond is the neurons with the highest scores. "
        "x: silhouette of the neurons' changes (1: the two kinds of swaps are separable, 0: not). Diamond right of "
        "nearly all dots: the neurons respond to the hypothesis itself; among the dots: perhaps only to something "
        "correlated with it.",
        depends=(measured.key, layer, hypothesis.name, how, tuple(units)),
        table=_frame(found),
    )


def _frame(found: Verification) -> pd.DataFrame:
    """Return one row per set of units, the chosen one first."""
    return pd.DataFrame(
        {
            "neurons": ["highest scores"] + ["random"] * len(found.random),
            "silhouette": np.concatenate([[found.silhouette], found.random]),
        }
    )
