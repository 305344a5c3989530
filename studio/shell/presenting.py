"""Presentation mode, for the front of a room: a story's slides one after the other, larger type, no sidebar.

A slide is a page of its own; what it is about can be opened, still presented, and the story goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from idc_core.errors import IdcError
from studio.shell.pages import PAGES, go_to, go_to_address
from studio.state import address, visitor
from studio.text import literal
from studio.widgets.charts import ASSETS
from studio.widgets.storytelling import own_stories

if TYPE_CHECKING:
    from idc_core.stories.story import Slide, Story

PAGE = "stories"
"""The page that plays."""

_SHOWN = 8
"""Stories offered in the sidebar."""

_keys = st.components.v2.component("idc_turning", js=(ASSETS / "stories" / "turning.js").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Playing:
    """A story that is played, and the position of the slide."""

    id: str
    story: Story
    at: int

    @property
    def slide(self) -> Slide:
        """What is shown."""
        return self.story.slides[self.at]


def playing() -> Playing | None:
    """Return the story that the address plays; None where it plays none, or none that this visitor may see."""
    id = address.read(address.STORY)
    if not id:
        return None
    from idc_core.stories.story import find_story

    try:
        story = find_story(id, visitor.person())
    except IdcError:
        return None
    number = address.position(address.read(address.SLIDE)) or 1
    return Playing(id, story, min(number, len(story.slides)) - 1) if story.slides else None


def is_on() -> bool:
    """Whether the pages are presented."""
    return playing() is not None


def unknown() -> str:
    """Say why what the address names is not played; empty where it is, or names nothing."""
    id, number = address.read(address.STORY), address.position(address.read(address.SLIDE) or "1")
    shown = playing()
    if id and shown is None:
        return f"There is no story {id[:40]!r} with slides: it was deleted, or is somebody else's."
    if shown is not None and number != shown.at + 1:
        return f"There is no slide {address.read(address.SLIDE)[:20]!r}: slide {shown.at + 1} is shown."
    return ""


def play(id: str, at: int = 0) -> None:
    """Play a story from a slide on; for callbacks."""
    address.keep(address.STORY, id)
    address.keep(address.SLIDE, str(at + 1))
    go_to(PAGE)


def end() -> None:
    """Show pages as before; for callbacks."""
    address.keep(address.STORY, "")
    address.keep(address.SLIDE, "")


def stories() -> dict[str, str]:
    """Return the titles of stories that this visitor may play, by id: their own, the newest first, and the shipped."""
    from idc_core.stories.story import shipped

    every = {**dict(reversed(own_stories().items())), **shipped()}
    return {id: story.title for id, story in every.items() if story.slides}


def draw_sidebar() -> None:
    """Offer stories to play at the foot of the sidebar."""
    with st.sidebar, st.popover("Present", type="tertiary", icon=":material/slideshow:", key="present"):
        for id, title in list(stories().items())[:_SHOWN]:
            st.button(literal(title), key=f"present-{id}", type="tertiary", on_click=play, args=(id,))


def draw(page: str) -> None:
    """Draw the line above a presented page: which slide it is, the one before, the next, what it is about, the end."""
    shown = playing()
    if shown is None:
        return
    st.html(ASSETS / "styles" / "presenting.css")
    _keys(key="turning", data={})
    if reason := unknown():
        st.warning(literal(reason))
    number = len(shown.story.slides)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="presenting"):
        setup = f" · {shown.slide.setup}" if shown.slide.setup else ""
        st.caption(f"{shown.at + 1} of {number}{literal(setup)}", width="stretch")
        for label, to, key in (("Previous", shown.at - 1, "PageUp"), ("Next", shown.at + 1, "PageDown")):
            inside, go = 0 <= to < number, partial(play, shown.id, to)
            st.button(label, key=f"present-{key}", shortcut=key, on_click=go, disabled=not inside)
        if page != PAGE:
            st.button("Back to the slide", key="present-back", type="tertiary", on_click=go_to, args=(PAGE,))
        elif shown.slide.page in PAGES:
            st.button("Open", key="present-open", type="tertiary", on_click=_open, args=(shown,))
        st.button("End", key="present-end", type="tertiary", on_click=end)


def heading(page: str) -> str:
    """Return what the heading of a page says where it is a slide; empty elsewhere."""
    shown = playing() if page == PAGE else None
    return "" if shown is None else literal(shown.slide.sentence)


def _open(shown: Playing) -> None:
    """Open what a slide is about, as a link to it would."""
    held = {address.STORY: shown.id, address.SLIDE: str(shown.at + 1)}
    go_to_address(shown.slide.page, {**shown.slide.query, **held})
