"""Does a unit answer to a hypothesis, or to what goes with it? Symbols are swapped, and units watched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.errors import CancelledError, IdcError
from idc_core.figures import verification as figures
from idc_core.figures.wording import signed
from idc_core.progress import Progress
from studio.engine.jobs import Waiting
from studio.hypotheses import inspections
from studio.hypotheses.inspections import Measured, quoted
from studio.widgets import layout
from studio.widgets.text import plural

if TYPE_CHECKING:
    from idc_core.inspection import Hypothesis
    from idc_core.inspection.grid import Grid
    from idc_core.inspection.verification import Swaps, Verification

SWAPS: dict[str, Swaps] = {"random symbols": "symbols", "by the grammar": "grammar"}
"""How symbols are swapped: label and what the engine calls it."""

UNITS = ("5", "10", "20")
"""How many units of the highest scores are watched."""

PAIRS, SETS = 200, 99
"""Swaps of each kind, and random sets of units: with the network of SQL strings it takes a few seconds at most."""

LITTLE = 0.1
"""Silhouette below which the two kinds of changes overlap almost wholly."""


def draw(measured: Measured, grid: Grid, layer: str, hypothesis: Hypothesis) -> dict[str, pd.DataFrame]:
    """Verify a hypothesis by swapped symbols where that is asked for. Returns the table to take away."""
    st.header("Does it answer to this, or to what goes with it?", anchor=False)
    ways = ways_of(measured, hypothesis)
    most = grid.score.shape[1] // 2
    if reason := why_not(measured, hypothesis, ways, most):
        st.caption(reason)
        return {}
    st.caption(
        f"What {quoted(hypothesis.name)} is true of may go with other things in these texts. So symbols are "
        "swapped, in some texts so that it stays true, in others so that it becomes false there. Units that follow "
        "it change in another way in the one case than in the other; units that follow something else do not."
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        how, wanted = choose(ways)
        asked = st.toggle(
            "Verify",
            key="verify",
            bind="query-params",
            help=f"Swaps symbols in up to {PAIRS} texts of each kind, and compares with {SETS} random sets of as many "
            "units, which takes seconds; default off.",
        )
    if not asked:
        return {}
    units = grid.units_of(grid.names.index(hypothesis.name))[: min(wanted, most)].tolist()
    try:
        found = verified(measured, layer, units, hypothesis, how)
    except CancelledError:
        st.caption("Stopped before it was finished.")
        return {}
    except IdcError as error:
        st.error(str(error))
        return {}
    st.markdown(sentence(found, hypothesis, len(units), how))
    draw_sets(measured, layer, hypothesis, found, units, how)
    return {"hypotheses-verification": frame(found)}


def ways_of(measured: Measured, hypothesis: Hypothesis) -> list[str]:
    """Return how symbols can be swapped so that it is known whether a hypothesis still holds."""
    from idc_core.inspection.rewriting import REWRITERS

    grammar = measured.view.test.name in REWRITERS and (hypothesis.recomputable or hypothesis.parsed)
    known = {"symbols": hypothesis.recomputable, "grammar": grammar}
    return [label for label, name in SWAPS.items() if known[name]]


def why_not(measured: Measured, hypothesis: Hypothesis, ways: list[str], most: int) -> str:
    """Say why a hypothesis cannot be verified; empty where it can."""
    from idc_core.inspection.records import is_text

    if not is_text(measured.view.test):
        return "This swaps symbols of texts so that a hypothesis becomes false; these tests are no texts."
    name = quoted(hypothesis.name)
    if hypothesis.kind != "binary":
        return f"{name} is not either true or false of a symbol, so that no swap could make it false."
    if not ways:
        return (
            f"{name} does not follow from the text or from its parse: whether it were still true of a text with "
            "another symbol in it is not known."
        )
    return "" if most else "The layer has a single unit, and no others to compare it with."


def choose(ways: list[str]) -> tuple[Swaps, int]:
    """Choose how symbols are swapped, and how many units are watched."""
    how = ways[0]
    if len(ways) > 1:
        how = st.segmented_control(
            "Swapped in",
            ways,
            default=how,
            required=True,
            key="swaps",
            bind="query-params",
            help="Random symbols, one a text; or what the grammar might have written instead from a place on, so that "
            f"texts stay well formed. Default {how}.",
        )
    wanted = st.segmented_control(
        "Highest-scoring units",
        list(UNITS),
        default="10",
        required=True,
        key="verified-units",
        bind="query-params",
        help="How many units, those that score highest on the hypothesis, are watched together; at most half of the "
        "layer. Default 10.",
    )
    return SWAPS[how], int(wanted)


def verified(measured: Measured, layer: str, units: list[int], hypothesis: Hypothesis, how: Swaps) -> Verification:
    """Return what swapped symbols show.

    Raises
    ------
    CancelledError
        If the person pressed Stop.
    IdcError
        If too few swaps are found, or the layer has no value a symbol.
    """
    view, tests = measured.view, inspections.tests_of(measured.view)

    def work(report: Progress) -> Verification:
        from idc_core.inspection.verification import verify

        return verify(
            view.model, layer, units, tests, hypothesis, pairs=PAIRS, sets=SETS, swaps=how, on_progress=report
        )

    key = (view.model.card.fingerprint, tests.fingerprint, layer, tuple(units), hypothesis.name, how)
    found: Verification = Waiting(1).get("verifications", key, "swapping symbols", work)
    return found


def sentence(found: Verification, hypothesis: Hypothesis, units: int, how: Swaps) -> str:
    """Put the finding into words."""
    from idc_core.inspection.verification import CONFIRMED

    verdict = "confirmed" if found.confirmed else "not confirmed"
    ways = "random symbols" if how == "symbols" else "what the grammar might have written instead"
    text = (
        f"**{finding(found, hypothesis, units)}: {verdict}.** "
        f"Swapped in were {ways}: {len(found.baseline)} swaps kept {quoted(hypothesis.name)} true, "
        f"{len(found.treatment)} made it false. Confirmed says that at most {100 * CONFIRMED:g} in 100 sets of units, "
        f"these among them, tell the two kinds of swaps apart as well (here {100 * found.p_value:.0f})."
    )
    if found.few:
        text += " So few swaps of one kind were found that others might tell another story."
    if found.confirmed and found.silhouette < LITTLE:
        text += " It is more than chance, but little: the two kinds of changes overlap almost wholly."
    return text


def finding(found: Verification, hypothesis: Hypothesis, units: int) -> str:
    """Say how the units compare with random sets, without a full stop."""
    beaten = int((found.random < found.silhouette).sum())
    which = "unit that scores highest" if units == 1 else f"{units} units that score highest"
    return (
        f"Swapping what {quoted(hypothesis.name)} is true of moves the {which} apart more than {beaten} of "
        f"{len(found.random)} random sets of {units} do (silhouette {signed(found.silhouette, '.2f')} against "
        f"{signed(float(found.random.mean()), '.2f')} on average)"
    )


def draw_sets(
    measured: Measured, layer: str, hypothesis: Hypothesis, found: Verification, units: list[int], how: Swaps
) -> None:
    """Draw the chosen units among the random sets."""
    title = finding(found, hypothesis, len(units))
    layout.chart(
        measured.view,
        "verification",
        lambda dark: figures.among_random(
            found.random, found.silhouette, f"{plural(len(units), 'unit')} of the highest scores", title, dark=dark
        ),
        alt=title,
        read="a dot is a random set of as many other units, the diamond the units that score highest. The silhouette "
        "says how far the changes under swaps that make the hypothesis false lie from those under swaps that keep it "
        "true: 1 wholly apart, 0 or less alike. A diamond to the right of nearly all dots says that the units answer "
        "to the hypothesis itself; amid the dots, that they may follow something that goes with it.",
        depends=(measured.key, layer, hypothesis.name, how, tuple(units)),
    )


def frame(found: Verification) -> pd.DataFrame:
    """Return a line a set of units, the chosen one first."""
    return pd.DataFrame(
        {
            "units": ["highest scores"] + ["random"] * len(found.random),
            "silhouette": np.concatenate([[found.silhouette], found.random]),
        }
    )
