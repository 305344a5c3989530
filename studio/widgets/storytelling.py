"""Adding to a story: a chart, a gallery, a finding or a note becomes its next slide, with where it is from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import streamlit as st

from idc_core.errors import IdcError
from studio.state import address, visitor
from studio.text import literal

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from idc_core.stories.story import Story

_Themed: TypeAlias = "Callable[[bool], go.Figure]"
_Place: TypeAlias = tuple[str, Mapping[str, str]]

_TOLD = "story-told"
"""In the session: the id of the story that slides are added to."""

_FIRST_TITLE = "My story"


def add_button(key: str, title: str, figure: _Themed | None, line: str, place: _Place | None = None) -> None:
    """Offer to add a slide to the story: its sentence, a figure for either ground, and the setup in a line.

    `place` is the page and what its address says; by default those that are shown.
    """
    _offer(f"tell-{key}", title, figure, line, place)


def add_chart(key: str, title: str, figure: _Themed, line: str) -> None:
    """Offer the same below a chart."""
    _offer(f"add-{key}", title, figure, line, None)


def _offer(key: str, *slide: str | _Themed | _Place | None) -> None:
    if not visitor.uploads_refused():
        st.button(
            "Add to story",
            key=key,
            icon=":material/playlist_add:",
            type="tertiary",
            on_click=add_slide,
            args=slide,
            help="Add to story: the next slide of the one that was last opened on the page Stories.",
        )


def own_stories() -> dict[str, Story]:
    """Return the kept stories that this visitor may change, by id, the oldest first."""
    from idc_core.store.documents import may_change
    from idc_core.stories.story import STORIES

    who = visitor.owner()
    return {id: story for id, story in STORIES.listed(visitor.person()).items() if may_change(story.owner, who)}


def tell(id: str) -> None:
    """Add what is added from now on to this story."""
    st.session_state[_TOLD] = id


def told() -> str:
    """Return the id of the story that slides are added to; empty where none was begun."""
    own = own_stories()
    chosen = st.session_state.get(_TOLD)
    return str(chosen) if chosen in own else next(reversed(own), "")


def add_slide(title: str, figure: _Themed | None, line: str, place: _Place | None = None) -> None:
    """Add a slide to the story, as `add_button` offers it; for callbacks."""
    from idc_core.stories.drawing import large
    from idc_core.stories.story import LONGEST, STORIES, THEMES, Slide, Story, keep_story, new_story

    page, query = place or address.here()
    sentence = title if title.endswith((".", "!", "?")) else f"{title}."
    sentence = sentence if len(sentence) <= LONGEST else f"{sentence[: LONGEST - 1]}…"  # of a note
    drawings = {} if figure is None else {theme: large(figure(theme == "dark")) for theme in THEMES}
    slide = Slide(sentence, page, dict(query), line, drawings)
    try:
        id = told()
        story = (STORIES.own(id, visitor.owner()) if id else Story(_FIRST_TITLE)).added(slide)
        if id:
            keep_story(id, story)
        else:
            id = new_story(story, visitor.owner())
    except IdcError as error:
        st.toast(literal(error))
        return
    tell(id)
    st.toast(f"Slide {len(story.slides)} of \u201c{literal(story.title)}\u201d.")
