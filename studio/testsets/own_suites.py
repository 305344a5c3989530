"""A person's own suites: those that were saved, uploads, and unions of several."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from idc_core.errors import IdcError
from idc_core.store.documents import may_change
from studio.jobs import suite_addresses, suite_catalog
from studio.jobs.results import View
from studio.shell.pages import draw_link
from studio.state import visitor
from studio.state.selection import change_setup
from studio.testsets.suite_controls import MOST
from studio.text import literal, plural

_MOST_UPLOAD = 20
"""Megabytes of a file with tests."""

_REFUSED = "suite-refused"


def draw(view: View, names: list[str]) -> None:
    """Show what was saved, and how more suites are had: from a file, or from several others."""
    _draw_saved(view, names)
    file, together = st.columns(2, gap="large")
    with file:
        _draw_upload(view, names)
    with together:
        _draw_combine(view, names)


def _draw_saved(view: View, names: list[str]) -> None:
    """List the saved suites that fit: to be compared, opened as the tests of all pages, or deleted."""
    from idc_core.suites import SAVED, saved_suites

    who = visitor.person()
    saved, damaged = saved_suites(view.test, who), {} if who else SAVED.damaged()
    st.markdown(
        f"{plural(len(saved), 'saved suite')} can be compared with these tests. They are kept on this computer."
        if saved
        else "**No suite is saved that fits these tests.** Upload one here, or keep inputs that add cells."
    )
    for suite in saved.values():
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"{literal(suite.label)}: {plural(suite.inputs, 'test')}")
            st.button(
                "Compare",
                key=f"compare-{suite.name}",
                on_click=suite_catalog.keep_names,
                args=([*names, suite.name][-MOST:],),
                disabled=suite.name in (*names, view.setup.data),
                type="tertiary",
                help="Adds this suite to those that are compared with the original tests.",
            )
            st.button(
                "Open as tests",
                key=f"open-{suite.name}",
                on_click=change_setup,
                kwargs={"data": suite.name},
                disabled=suite.name == view.setup.data,
                type="tertiary",
                help="Makes this suite the tests of all pages; the sidebar offers it under Tests.",
            )
            if may_change(suite.owner, who):
                _draw_delete(suite.name, plural(suite.inputs, "test"))
    for name, reason in damaged.items():
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"{name}.npz is damaged and left out", help=literal(reason))
            _draw_delete(name, "this damaged file")
    if saved:
        draw_link("library", "Rename them in the Library")


def _draw_delete(name: str, what: str) -> None:
    """Offer to delete a saved suite."""
    st.button(
        "Delete",
        key=f"remove-{name}",
        on_click=_delete,
        args=(name,),
        type="tertiary",
        help=f"Deletes {what} from this computer.",
    )


def _delete(name: str) -> None:
    from idc_core.suites import SAVED

    try:
        SAVED.delete(name, visitor.person())
    except IdcError as error:
        st.session_state[_REFUSED] = literal(error)


def _draw_upload(view: View, names: list[str]) -> None:
    """Offer to upload a file with tests."""
    key = "own-file"

    def take() -> None:
        from idc_core.suites import custom_suite, save_suite

        given = st.session_state[key]
        if given is None:
            return
        try:
            suite = custom_suite(given, view.test)
            path = save_suite(Path(given.name).stem, suite, owner=visitor.person() or "")
        except IdcError as error:
            st.session_state[_REFUSED] = f"{literal(given.name)} was not added. {literal(error)}"
            return
        suite_catalog.keep_names([*names, path.stem][-MOST:])

    shape = ", ".join(map(str, view.test.inputs.shape[1:]))
    st.file_uploader(
        "Upload your own tests (npz)",
        type="npz",
        key=key,
        max_upload_size=_MOST_UPLOAD,
        on_change=take,
        help=f"A file written by numpy.savez with the arrays inputs (n, {shape}) and targets (n); {_form(view)}. It is "
        "saved on this computer and added to the suites. Default none.",
    )
    if refused := st.session_state.pop(_REFUSED, ""):
        st.error(refused)


def _form(view: View) -> str:
    """Say what values an uploaded file holds."""
    if view.has_pictures:
        return "images in 0..1 or uint8"
    if view.test.inputs.dtype.kind == "f":
        return "numbers, scaled as the network's training inputs"
    return "token ids, 0 for padding"


def _draw_combine(view: View, names: list[str]) -> None:
    """Offer to make one suite of several."""
    known, key = suite_catalog.suite_options(view), "union-of"
    parts = [name for name in known if len(suite_addresses.split(name)) == 1]
    st.multiselect(
        "Combine",
        parts,
        format_func=lambda name: known[name].label if name in known else name,
        key=key,
        placeholder="None",
        help="Two or more suites that become one. Default none.",
    )

    def add() -> None:
        suite_catalog.keep_names([*names, suite_addresses.TOGETHER.join(st.session_state[key])][-MOST:])
        st.session_state[key] = []

    st.button(
        "Add union",
        key="union-add",
        on_click=add,
        disabled=len(st.session_state[key]) < 2,
        help="Adds the union of these suites to the comparison.",
    )
