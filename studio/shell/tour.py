"""The guided tour: an offer on the Overview, a panel on the page of each step, and what the browser remembers.

The step is in the session and in the address, so that a copied address opens the tour where it was. Whether it
was finished, skipped or declined is remembered by the browser alone: it decides only whether the tour is offered.
"""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from idc_core.analysis.overview import Overview
from studio.jobs.overview import summarise
from studio.jobs.results import View
from studio.shell import tabs
from studio.shell.pages import PAGES, go_to
from studio.shell.tour_steps import STEPS, Step, Story, Words, overview
from studio.state import address
from studio.state.selection import Selection, select, selected
from studio.state.setup import DEFAULT
from studio.widgets import grid_axes
from studio.widgets.charts import ASSETS, component
from studio.widgets.layout import label, topic

STEP = "tour"
"""Name in the address: the number of the step, from 1."""

_ARRIVED = "tour-arrived"
"""The step whose selection was made."""

_MOVES = "tour-moves"
"""How often the person moved in the tour; the browser puts the focus on the panel when it grows."""

_ENDED = "tour-ended"
"""How the tour ended in this session."""

_LENGTH = f"{len(STEPS)} steps, about three minutes"

_offer = component("idc_tour_offer", "tour", "offer")
_memory = st.components.v2.component("idc_tour_memory", js=(ASSETS / "tour" / "memory.js").read_text(encoding="utf-8"))


def _number() -> int:
    """Return the number of the present step, 0 where the tour is closed."""
    text = "" if address.read(address.STORY) else address.read(STEP)  # a talk is about its slides
    return int(text) if text in map(str, range(1, len(STEPS) + 1)) else 0


def _go(to: int) -> None:
    """Go to a step, on the default setup; for callbacks."""
    for part in vars(DEFAULT):
        address.keep(part, "")
    address.keep(STEP, str(to))
    go_to(STEPS[to - 1].page)
    st.session_state[_MOVES] = st.session_state.get(_MOVES, 0) + 1
    st.session_state[_ARRIVED] = 0
    st.session_state.pop(_ENDED, None)


def start() -> None:
    """Open the tour at its beginning; for callbacks."""
    for name in (grid_axes.FIXED, grid_axes.ROWS, grid_axes.COLUMNS):
        # A grid that is zoomed in elsewhere would not show the cell.
        address.keep(name, "")
    _go(1)


def _end(how: str) -> None:
    """Close the tour; for callbacks."""
    address.keep(STEP, "")
    st.session_state[_ENDED] = how
    st.session_state[_MOVES] = st.session_state.get(_MOVES, 0) + 1
    st.toast("The tour is closed. **Tour** at the foot of the sidebar opens it again.")


def begin(page: str) -> DeltaGenerator:
    """Go to the page of the present step where a callback asked for it; return the place of the panel on this one."""
    now = _number()
    # An address without a page, passed on with a step in it.
    sent = page == STEPS[0].page and _ARRIVED not in st.session_state
    if sent and now and STEPS[now - 1].page != page:
        st.switch_page(PAGES[STEPS[now - 1].page].file)
    place = st.container()
    with place:
        if now and STEPS[now - 1].page != page:
            _elsewhere(now)
        if not now and _ENDED in st.session_state:
            _remember()
    return place


def guide(place: DeltaGenerator, page: str, shown: View | Overview) -> None:
    """Show the present step's panel, at the place from `begin`, where this is its page; offer the tour on the first."""
    now = _number()
    if not now and page == STEPS[0].page and not (_ENDED in st.session_state or address.read(address.STORY)):
        # Only the browser knows who has taken or declined it, so it decides.
        with place:
            _offer(key="tour-offer", data={"length": _LENGTH}, on_take_change=start)
    if not now or STEPS[now - 1].page != page:
        return
    step = STEPS[now - 1]
    with place:
        if any(address.read(part) for part in vars(DEFAULT)):
            _strayed(now)
        elif now == 1:
            result = summarise(shown) if isinstance(shown, View) else shown
            _arrive(now, Selection())
            _panel(now, step, overview(result), Selection())
        elif isinstance(shown, View):
            story = Story(shown)
            selection = step.selects(story)
            _arrive(now, selection)
            _panel(now, step, step.tell(story), selection)


def draw_sidebar() -> None:
    """Offer the tour at the foot of the sidebar."""
    with st.sidebar:
        st.button(
            "Tour",
            key="tour-start",
            type="tertiary",
            icon=":material/explore:",
            on_click=start,
            help=f"Follow one misclassified test through the pages: {_LENGTH}, on the default setup.",
        )


def _arrive(now: int, wanted: Selection) -> None:
    """Open the tab of a step and select what it is about, once; what an address that was passed on says stays."""
    before = st.session_state.get(_ARRIVED)
    st.session_state[_ARRIVED] = now
    entry, tab = PAGES[STEPS[now - 1].page], STEPS[now - 1].tab
    if before != now and entry.tabs and tabs.TAB not in st.query_params:
        tabs.open_at(entry.name, tab or next(iter(entry.tabs)))
    passed_on = before is None and selected() != Selection()
    if before != now and not passed_on and selected() != wanted:
        select(**vars(wanted))
        st.rerun()


def _panel(now: int, step: Step, words: Words, wanted: Selection) -> None:
    with st.container(border=True, key="tour-panel"):
        st.header(topic("Tour, step {} of {}: {}", now, len(STEPS), step.title), anchor=False)
        if now == 1:
            st.caption("The tour uses the default setup, which is now in the sidebar.")
        titles = ("What you see", "Try this", "What it means here")
        for column, title, text in zip(st.columns([5, 4, 6], gap="medium"), titles, words, strict=True):
            column.markdown(f"{label(title)}: {text}")
        with st.container(horizontal=True, gap="small"):
            if now > 1:
                st.button("Back", key="tour-back", on_click=_go, args=(now - 1,))
            if now < len(STEPS):
                text = f"Next: {PAGES[STEPS[now].page].title}"
                st.button(text, key="tour-next", type="primary", on_click=_go, args=(now + 1,))
                _skip()
            else:
                st.button("Finish", key="tour-finish", type="primary", on_click=_end, args=("finished",))
            if selected() != wanted:
                st.button(
                    "Restore the selection",
                    key="tour-again",
                    type="tertiary",
                    on_click=select,
                    kwargs=vars(wanted),
                    help="Select the test, neuron and cell of this step again.",
                )
        _remember()


def _elsewhere(now: int) -> None:
    """Say on which page the tour goes on."""
    title = PAGES[STEPS[now - 1].page].title
    _short(now, f"continues on the page {title}.", f"Continue: {title}")


def _strayed(now: int) -> None:
    """Say that the setup is not the one that the tour is about."""
    _short(now, "uses the default setup. Another one is chosen in the sidebar.", "Back to the default setup")


def _short(now: int, text: str, label: str) -> None:
    with (
        st.container(border=True, key="tour-panel"),
        st.container(horizontal=True, vertical_alignment="center", gap="small"),
    ):
        st.markdown(f"Step {now} of {len(STEPS)} of the **tour** {text}")
        st.button(label, key="tour-continue", on_click=_go, args=(now,))
        _skip()
        _remember()


def _skip() -> None:
    st.button("Skip the tour", key="tour-skip", type="tertiary", on_click=_end, args=("skipped",))


def _remember() -> None:
    """Let the browser remember how the tour ended, and put the focus where the person goes on."""
    data = {"ended": st.session_state.get(_ENDED, ""), "moves": st.session_state.get(_MOVES, 0)}
    _memory(key="tour-memory", data=data)
