"""Stories as a person keeps them: chosen, begun, read from files, passed on, and their slides edited."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from idc_core.base.parameters import is_whole
from idc_core.errors import IdcError
from idc_core.stories.page_file import read_page, write_page
from idc_core.stories.story import LONGEST, LONGEST_TITLE, STORIES, Story, keep_story, new_story, shipped
from studio.shell import presenting
from studio.shell.pages import PAGES
from studio.state import address, visitor
from studio.state.choices import choose_one
from studio.stories.player import draw_beside
from studio.text import literal, plural
from studio.widgets.charts import component
from studio.widgets.storytelling import own_stories, tell, told

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

CHOSEN = "edited-story"
"""Name in the address: the story that is shown."""

_AT, _SAID = "slide-shown", "story-said"
"""In the session: the position of the slide that is shown, and why something failed."""

_TITLE, _FILE, _DEED = "story-title", "story-file", "story-slides"

_slides = component("idc_slides", "stories", "slides")


def draw() -> None:
    """Choose a story, play it, and edit its slides."""
    own = own_stories()
    seen = {**dict(reversed(own.items())), **shipped(), **STORIES.listed(visitor.person())}
    if refusal := st.session_state.pop(_SAID, ""):
        st.error(refusal)
    if (reason := presenting.unknown()) and presenting.playing() is None:
        st.warning(literal(reason))
    titles = {id: story.title + ("" if id in own else " (to play)") for id, story in seen.items()}
    usual = told() or next(iter(titles))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = f"The story that is shown. Default {literal(titles[usual])}."
        id = choose_one(st.selectbox, "Story", titles, usual, CHOSEN, width=420, help=text)
        _draw_deeds(id, seen[id], mine=id in own)
    if id in own:
        tell(id)
    _draw_story(id, seen[id], mine=id in own)


def _draw_deeds(id: str, story: Story, *, mine: bool) -> None:
    """Offer what can be done with a story, and how to begin another one."""
    play = partial(presenting.play, id)
    st.button("Play", key="story-play", type="primary", on_click=play, disabled=not story.slides)
    st.download_button(
        "HTML",
        partial(write_page, story),
        f"idc-story-{id.removeprefix('story-')}.html",
        "text/html",
        on_click="ignore",
        key="story-html",
        help="Save the story as one file that plays without a network, and can be imported here.",
    )
    with st.popover("Link", key="story-link", help="The address that plays the story."):
        st.code(f"{(st.context.url or '').partition('?')[0]}?{address.STORY}={id}", language=None, wrap_lines=True)
    if visitor.uploads_refused():
        return
    st.button("Copy", key="story-copy", on_click=_begin, args=(_copy(story),), help="Begin a story with these slides.")
    st.button("New", key="story-new", on_click=_begin, args=(Story("My story"),), help="Begin a story without slides.")
    if mine:
        st.button("Delete", key="story-delete", type="tertiary", on_click=_delete, args=(id,))
    with st.popover("Import", key="story-import"):
        text = "An HTML file that this page exported. Default none."
        st.file_uploader("File", "html", key=_FILE, on_change=_import, help=text)


def _draw_story(id: str, story: Story, *, mine: bool) -> None:
    """Show the slides of a story, and one of them."""
    at = min(int(st.session_state.get(_AT, 0)), max(len(story.slides) - 1, 0))
    left, right = st.columns([2, 3], gap="medium")
    with left:
        if mine:
            st.session_state[_TITLE] = story.title
            text = f"The story's title. Default \u201c{literal(story.title)}\u201d."
            st.text_input("Title", key=_TITLE, max_chars=LONGEST_TITLE, on_change=_title, args=(id,), help=text)
            if visitor.person() is not None:
                text = "Whether everybody with an account may play it. Default off."
                st.toggle("Shared", story.shared, key=f"shared-{id}", on_change=_share, args=(id,), help=text)
        if not story.slides:
            st.caption(
                "No slides yet. Add them on any page: a button is beside every chart, gallery, finding and note."
            )
            return
        st.caption(plural(len(story.slides), "slide"))
        data = {"slides": [slide.sentence for slide in story.slides], "shown": at, "fixed": not mine}
        _slides(key=_DEED, data=data, on_deed_change=partial(_take, id, len(story.slides)))
    with right:
        _draw_slide(id, story, at, mine=mine)


def _draw_slide(id: str, story: Story, at: int, *, mine: bool) -> None:
    slide = story.slides[at]
    if mine:
        key = f"sentence-{at}"
        st.session_state[key] = slide.sentence
        text = "What the slide says. Default the title of its chart."
        st.text_area("Sentence", key=key, max_chars=LONGEST, height=90, on_change=_say, args=(id, at), help=text)
    else:
        st.markdown(literal(slide.sentence))
    draw_beside(slide, f"beside-{id}-{at}")
    with st.container(horizontal=True):
        st.button("Play from here", key="story-play-here", on_click=presenting.play, args=(id, at))
        if slide.page in PAGES:
            entry = PAGES[slide.page]
            st.page_link(entry.file, label=entry.title, icon=entry.icon, help=entry.help, query_params=slide.query)


def _copy(story: Story) -> Story:
    return replace(story, title=f"{story.title} (copy)"[:LONGEST_TITLE])


def _take(id: str, number: int) -> None:
    """Do what was done to the list of slides in the browser."""
    deed: dict[str, Any] = st.session_state[_DEED].deed or {}
    name, at, to = deed.get("name"), deed.get("at", -1), deed.get("to", -1)
    if not (is_whole(at, 0, number - 1) and is_whole(to, 0, number - 1)):
        return
    st.session_state[_AT] = to if name != "delete" else max(at - 1, 0)
    if name == "move":
        _change(id, lambda story: story.moved(at, to))
    elif name == "delete":
        _change(id, lambda story: story.without(at))


def _say(id: str, at: int) -> None:
    sentence = st.session_state[f"sentence-{at}"]
    _change(id, lambda story: story.said(at, sentence))


def _title(id: str) -> None:
    title = st.session_state[_TITLE]
    _change(id, lambda story: story.titled(title))


def _share(id: str) -> None:
    shared = bool(st.session_state[f"shared-{id}"])
    _change(id, lambda story: story.shared_with_all(shared))


def _change(id: str, change: Callable[[Story], Story]) -> None:
    """Keep a story as it is after a change, of its newest state."""
    try:
        keep_story(id, change(STORIES.own(id, visitor.owner())))
    except IdcError as error:
        st.session_state[_SAID] = literal(error)


def _begin(story: Story) -> None:
    """Begin a story with these slides, and show it."""
    try:
        _show(new_story(story, visitor.owner()))
    except IdcError as error:
        st.session_state[_SAID] = literal(error)


def _delete(id: str) -> None:
    try:
        STORIES.delete(id, visitor.owner(), missing_ok=True)
    except IdcError as error:
        st.session_state[_SAID] = literal(error)
    _show("")


def _import() -> None:
    """Read a story from the file that was chosen."""
    file: UploadedFile | None = st.session_state[_FILE]
    if file is None:
        return
    try:
        _show(new_story(read_page(file.getvalue(), file.name), visitor.owner()))
    except IdcError as error:
        st.session_state[_SAID] = literal(error)


def _show(id: str) -> None:
    """Show a story; an empty id the usual one."""
    st.session_state.pop(CHOSEN, None)
    address.keep(CHOSEN, id)
    st.session_state[_AT] = 0
    if id:
        tell(id)
