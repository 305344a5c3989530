"""A pinned setup to compare with the present one: two inputs, test sets, networks or layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

import numpy as np
import streamlit as st

from idc_core.coverage.cell_table import overlap
from idc_core.errors import IdcError
from studio.jobs.results import View, open_view
from studio.shell import notes
from studio.state import address, selection, setup
from studio.state.selection import Selection
from studio.state.setup import Setup
from studio.text import count, literal, percent, plural, signed
from studio.widgets.headlines import label

PIN = "pin"
"""Name in the address: the pinned setup and selection, written as an address themselves."""

_NOTHING_ELSE = "default"
"""Stands for a pinned setup on which everything is as the studio opens."""


@dataclass(frozen=True)
class _Pinned:
    """A setup with its results and what is selected on it, or was when it was pinned."""

    view: View
    selection: Selection

    @property
    def line(self) -> str:
        """Setup and selection in one line."""
        return " · ".join((self.view.line, *self.selection.words.values()))


def _pin(chosen: Setup, chosen_selection: Selection) -> None:
    """Pin a setup and a selection; for callbacks."""
    texts = {name: text for name, text in (chosen.texts | chosen_selection.texts).items() if text}
    address.keep(PIN, urlencode(texts) or _NOTHING_ELSE)


def _unpin() -> None:
    """Pin nothing; for callbacks."""
    address.keep(PIN, "")


def pinned() -> tuple[Setup, Selection] | None:
    """Return what is pinned, without its results."""
    text = address.read(PIN)
    if not text:
        return None
    texts = dict(parse_qsl(text))
    return setup.parse(texts), selection.parse(texts)


def _swap(present: Setup, present_selection: Selection) -> None:
    """Open what is pinned, and pin what is open; for callbacks."""
    kept = pinned()
    if kept is None:
        return
    for name, text in (kept[0].texts | kept[1].texts).items():
        address.keep(name, text)
    _pin(present, present_selection)


def open_pinned() -> _Pinned | None:
    """Return the pinned setup with its results; None where there is none, or where it fails, which is said."""
    kept = pinned()
    if kept is None:
        return None
    try:
        view = open_view(kept[0])
    except IdcError as error:
        st.error(f"The pinned setup cannot be shown. {literal(error)}")
        return None
    if not len(view.chosen):
        st.warning("The pinned setup cannot be shown: no test passes its filter. Unpin it, or pin another.")
        return None
    return _Pinned(view, kept[1])


def beside(
    view: View, draw: Callable[[View, Selection, str], None], sentence: Callable[[View, View], str] | None = None
) -> None:
    """Show the page's main chart for the present and for the pinned setup side by side.

    `draw` draws the picture of a view with its selection; the third value goes into the keys of its elements.
    `sentence` says how the two differ; by default `_compare`.
    """
    kept = open_pinned()
    if kept is None:
        return
    st.header("Compared with the pinned setup", anchor=False)
    st.markdown((sentence or _compare)(view, kept.view))
    sides = {"This setup": _Pinned(view, selection.selected()), "Pinned": kept}
    for column, (name, side) in zip(st.columns(2, gap="medium"), sides.items(), strict=True):
        with column:
            st.caption(f"{label(name)}: {side.line}")
            draw(side.view, side.selection, name.partition(" ")[0].lower())


def _compare(here: View, there: View) -> str:
    """Say in a sentence or two how two setups differ."""
    mine, theirs = here.table, there.table
    score, other_score = mine.covered / mine.total, theirs.covered / theirs.total
    change = score - other_score
    text = f"IDC is {percent(score)} here and {percent(other_score)} on the pinned setup"
    text += f" ({signed(100 * change, '+.1f')} percentage points)." if abs(change) >= 0.0005 else "."
    if not same_cells(here, there):
        return f"{text} The cells are not comparable: network, layer, m or clusters differ."
    common = overlap(mine, theirs)
    return (
        f"{text} {plural(common.both, 'cell')} are covered on both, {count(common.only_first)} only here, "
        f"{count(common.only_second)} only on the pinned setup."
    )


def same_cells(here: View, there: View) -> bool:
    """Whether a cell of one setup means the same on the other."""
    analysis, other = here.analysis, there.analysis
    return (
        (here.model.card.fingerprint, here.setup.layer) == (there.model.card.fingerprint, there.setup.layer)
        and np.array_equal(analysis.important, other.important)
        and here.sizes == there.sizes
        and all(np.array_equal(a, b) for a, b in zip(analysis.centroids, other.centroids, strict=True))
    )


def draw_sidebar(chosen: Setup) -> None:
    """Show in the sidebar what is selected, and what is pinned."""
    present = selection.selected()
    with st.sidebar:
        st.markdown("**Selected**", help="Selected on any page, used on all pages, and part of the address.")
        words = present.words
        for name, what in words.items():
            with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
                st.markdown(literal(what))
                st.button(
                    "Clear",
                    key=f"clear-{name}",
                    type="tertiary",
                    help=f"Clear the selected {name}.",
                    on_click=selection.select,
                    kwargs={name: None},
                )
        if len(numbers := selection.drawn_around(chosen.data)) > 1:
            with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
                st.markdown(plural(len(numbers), "test") + " in a chart")
                st.button(
                    "Clear",
                    key="clear-tests",
                    type="tertiary",
                    help="Clear the tests selected in a chart.",
                    on_click=selection.forget_tests,
                )
        elif not words:
            st.caption(
                "Nothing yet. Click a test, a neuron, a cluster or a cell on any page to select it on all pages."
            )
        notes.draw(chosen, present)
        _draw_pinned(chosen, present)


def _draw_pinned(chosen: Setup, present: Selection) -> None:
    kept = pinned()
    if kept is None:
        st.button(
            "Pin for comparison",
            key="pin-this",
            on_click=_pin,
            args=(chosen, present),
            width="stretch",
            help="Keep this setup and selection, to compare it with another input, test set, network or layer.",
        )
        return
    st.markdown("**Pinned**")
    st.caption(" · ".join((kept[0].line, *kept[1].words.values())))
    st.caption("Compared farther down on every page.")
    for sentence in setup.unknown(dict(parse_qsl(address.read(PIN)))).values():
        st.warning(literal(sentence))
    with st.container(horizontal=True, gap="xsmall"):
        st.button(
            "Swap",
            key="pin-swap",
            on_click=_swap,
            args=(chosen, present),
            help="Open the pinned setup, and pin this one.",
        )
        st.button("Unpin", key="pin-remove", on_click=_unpin, help="Remove the pinned setup.")
