"""A person's notes in the sidebar: one is written about what is selected, and those that are kept are listed."""

from __future__ import annotations

from urllib.parse import urlencode

import streamlit as st

from idc_core.errors import IdcError
from idc_core.store import notes
from idc_core.store.notes import Note
from studio.shell.pages import go_to
from studio.state import address, selection, setup, visitor
from studio.state.selection import Selection
from studio.state.setup import Setup
from studio.text import literal, plural
from studio.widgets import exports
from studio.widgets.headlines import label
from studio.widgets.storytelling import add_button

_TEXT, _ABOUT, _SAID = "note-text", "note-about", "note-said"
"""In the session: the text that is being written, what it is about, and why something failed."""

_PAIR = "pair"
"""Name in the address: two classes, as Class errors writes them."""

_PAGE_OF = {"input": "relevance", "neuron": "neurons", "cell": "coverage", _PAIR: "classes"}
"""What a note can be about, by its name in the address, and the page that shows it."""

_SHOWN = 10


def draw(chosen: Setup, present: Selection) -> None:
    """Draw the button of the notes, and behind it a field for one and the notes that are kept."""
    kept, damaged = notes.kept_notes(visitor.person()), {} if visitor.person() else notes.NOTES.damaged()
    with st.popover(f"Notes ({len(kept)})" if kept else "Notes", key="notes", width="stretch"):
        if refusal := st.session_state.pop(_SAID, ""):
            st.error(refusal)
        _draw_writing(chosen, _subjects(chosen, present))
        for note in kept[:_SHOWN]:
            _draw_note(note)
        if len(kept) > _SHOWN:
            st.caption(f"{plural(len(kept) - _SHOWN, 'older note')} only in the files below.")
        for name, reason in damaged.items():
            st.caption(literal(reason))
            _draw_delete(name)
        if kept:
            _draw_export(kept)


def _subjects(chosen: Setup, present: Selection) -> dict[str, str]:
    """Return in words what is selected that a note can be about, by its name in the address."""
    subjects = present.words | {_PAIR: _pair_words(chosen)}
    return {name: words for name, words in subjects.items() if words}


def _pair_words(chosen: Setup) -> str:
    """Name the two classes that were last looked at; empty for none."""
    positions = [address.position(part) for part in address.read(_PAIR).split("-")]
    if len(positions) != 2 or None in positions:
        return ""
    from idc_core.datasets import DATASETS

    names = DATASETS[chosen.data].class_names
    known = [names[position] for position in positions if position is not None and position < len(names)]
    return " and ".join(("classes " + known[0], known[1])) if len(known) == 2 else ""


def _draw_writing(chosen: Setup, offered: dict[str, str]) -> None:
    """Draw the field for a note about one of the things that are selected."""
    if refused := visitor.uploads_refused():
        st.caption(f"Notes cannot be written here. {refused}")
        return
    if not offered:
        st.caption("Select a test, a neuron, a cell or a pair of classes on any page to write a note about it.")
        return
    if st.session_state.get(_ABOUT) not in offered:
        st.session_state.pop(_ABOUT, None)
    st.selectbox(
        "About",
        list(offered),
        format_func=lambda name: offered.get(name, name),
        key=_ABOUT,
        help="Which of the selected things the note is about. Default the first one.",
    )
    readers = "Only you can read it." if visitor.person() else "Everybody who opens this studio can read it."
    st.text_area(
        "Note",
        key=_TEXT,
        max_chars=notes.LONGEST,
        help=f"Kept on this computer as plain text. {readers} Default empty.",
    )
    st.button("Keep note", key="note-keep", on_click=_keep, args=(chosen, offered))


def _keep(chosen: Setup, offered: dict[str, str]) -> None:
    """Keep the note before the page is drawn again; what was written stays where that fails."""
    about = st.session_state[_ABOUT]
    parts = {about: address.read(about)} | ({"cluster": address.read("cluster")} if about == "neuron" else {})
    place = {name: text for name, text in (chosen.texts | parts).items() if text}
    try:
        notes.write_note(st.session_state[_TEXT], offered[about], chosen.line, place, visitor.owner())
    except IdcError as error:
        st.session_state[_SAID] = literal(error)
        return
    st.session_state[_TEXT] = ""


def _draw_note(note: Note) -> None:
    """Show a note as plain text, with what it is about."""
    with st.container(border=True, gap="xsmall"):
        st.caption(f"{label(note.subject)} · {literal(note.setup)} · {literal(note.written[:10])}")
        st.text(note.text)
        with st.container(horizontal=True, gap="xsmall"):
            st.button(
                "Open",
                key=f"note-open-{note.name}",
                type="tertiary",
                on_click=_open,
                args=(note,),
                help="Open the setup, and select what the note is about.",
            )
            add_button(f"note-{note.name}", note.text, None, note.setup, (_page_of(note), note.place))
            if note.owner in ("", visitor.owner()):
                _draw_delete(note.name)


def _draw_delete(name: str) -> None:
    st.button("Delete", key=f"note-delete-{name}", type="tertiary", on_click=_delete, args=(name,))


def _delete(name: str) -> None:
    try:
        notes.delete_note(name, visitor.person())
    except IdcError as error:
        st.session_state[_SAID] = literal(error)


def _open(note: Note) -> None:
    """Open the setup of a note and the page that shows what it is about; what else is selected is cleared."""
    texts = setup.parse(note.place).texts | selection.parse(note.place).texts | {_PAIR: note.place.get(_PAIR, "")}
    for name, text in texts.items():
        address.keep(name, address.clean(text))
    if page := _page_of(note):
        go_to(page)


def _page_of(note: Note) -> str:
    """Return the page that shows what a note is about; empty for none."""
    return next((page for about, page in _PAGE_OF.items() if note.place.get(about)), "")


def _draw_export(kept: list[Note]) -> None:
    """Offer all notes as files."""
    with st.container(horizontal=True, gap="xsmall"):
        st.download_button(
            "CSV", lambda: _table(kept), exports.named("notes.csv"), "text/csv", on_click="ignore", key="notes-csv"
        )
        st.download_button(
            "JSON",
            lambda: notes.notes_json(kept),
            exports.named("notes.json"),
            "application/json",
            on_click="ignore",
            key="notes-json",
        )


def _table(kept: list[Note]) -> str:
    """Write notes as CSV, with the end of the address that shows what each is about."""
    from idc_core.base.spreadsheets import csv

    names = ("written", "subject", "setup", "text")
    rows = [{name: getattr(note, name) for name in names} | {"address": urlencode(note.place)} for note in kept]
    import pandas as pd

    return csv(pd.DataFrame(rows))
