"""Buttons by which inputs that a page has made are kept as suites, for all pages that compare suites."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idc_core.errors import IdcError
from studio.jobs.results import View
from studio.jobs.wording import tests_name
from studio.state import visitor
from studio.text import literal, plural

if TYPE_CHECKING:
    from idc_core.suites import ProvenanceStep, Suite


@dataclass(frozen=True)
class Keepable:
    """Inputs that can be kept: the name they get, how many there are, and what makes the suite."""

    name: str
    count: int
    make: Callable[[], Suite]


def keep_row(usual: str, count: int, key: str, make: Callable[[], Suite]) -> str:
    """Offer to keep `count` inputs under their `usual` name or another one; to be drawn in a horizontal container.

    `key` is the button's, the name's ends in "-name"; `make` returns the suite when the button was pressed. Returned is
    what the suite is opened by that the last click has kept; empty before it.
    """
    st.text_input(
        # No value to begin with: it would stay when other inputs are shown, and they would be kept under that name.
        "Name of the suite",
        key=f"{key}-name",
        placeholder=usual,
        width=360,
        help=f"Name under which the suite is listed on all pages. Default {usual}.",
    )
    st.button(
        f"Keep {plural(count, 'input')} as a suite",
        key=key,
        disabled=not count,
        on_click=lambda: _keep([Keepable(st.session_state[f"{key}-name"].strip() or usual, count, make)], key),
        help="Kept on this computer until it is removed. Equal inputs are kept once.",
    )
    _tell(key)
    return str(st.session_state.get(f"{key}-kept", ""))


def keep_several(label: str, suites: Sequence[Keepable], key: str) -> None:
    """Offer to keep several suites by one click, each under its own name."""
    names = ", ".join(suite.name for suite in suites)
    st.button(label, key=key, on_click=_keep, args=(suites, key), help=f"Keeps {len(suites)} suites: {names}.")
    _tell(key)


def _tell(key: str) -> None:
    """Say what the last click on a button has kept."""
    message, failed = st.session_state.pop(f"{key}-said", ("", False))
    if message:
        (st.error if failed else st.success)(message)


def _keep(suites: Sequence[Keepable], key: str) -> None:
    """Keep them before the page is drawn again, so that whatever lists suites has them."""
    from idc_core.suites import save_suite

    try:
        for suite in suites:
            path = save_suite(suite.name, suite.make(), owner=visitor.person() or "")
            st.session_state[f"{key}-kept"] = path.stem
    except IdcError as error:
        st.session_state[f"{key}-said"] = literal(error), True
        return
    names = ", ".join(f"\u201c{literal(suite.name)}\u201d" for suite in suites)
    total = plural(sum(suite.count for suite in suites), "input")
    st.session_state[f"{key}-said"] = f"Kept as {names}: {total}.", False


def made_of_tests(
    view: View,
    inputs: NDArray[np.float32],
    targets: NDArray[np.generic],
    origin: NDArray[np.int64],
    step: ProvenanceStep,
) -> Suite:
    """Return inputs as a suite, each made of the test at a position of `origin`, so that it is shown beside it."""
    from idc_core.suites import ProvenanceStep
    from idc_core.suites.custom_tests import SuiteFormat, suite_from_arrays

    tests = f"{len(np.unique(origin)):,} of {len(view.test):,} tests of {tests_name(view.test)}"
    start = ProvenanceStep("original", tests, {"fingerprint": view.test.fingerprint})
    return suite_from_arrays(
        inputs, targets, SuiteFormat.of(view.test), origin=view.test.ids[origin], provenance=[start, step]
    )
