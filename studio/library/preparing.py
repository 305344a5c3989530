"""How files become inputs, as a person changes it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from idc_core.base.parameters import shown
from idc_core.datasets.preparation import ALPHA, CHANNELS, EMPTY, FITS, READ_AS, Preparation
from idc_core.errors import IdcError, SettingError
from studio.library.work import Asked, ask
from studio.state import visitor
from studio.text import literal

if TYPE_CHECKING:
    from idc_core.library import Entry

_REFUSED = "library-preparation-refused"
_TASKS = {"": "told by the targets", "classification": "classes", "regression": "quantities"}
_EMPTY = {"": "refused, with their rows", **EMPTY}
_READ_AS = {"": "told by their values", **READ_AS}
_FOLDERS = {
    "processor": ("Image processor of pictures", "pictures are brought to the size by the fit"),
    "tokenizer": ("Tokenizer of texts", "texts are split into words"),
}
_TOLD = "told by the files"


def choose_preparation(entry: Entry) -> None:
    """Draw the settings, closed; a change is read before it is kept."""
    now = entry.preparation
    with st.expander("Preparation"):
        with st.form(f"library-preparation-{entry.id}", border=False):
            one, two, three = st.columns(3, gap="medium")
            with one:
                _choose_pictures(entry, now)
            with two:
                _choose_columns(entry, now)
            with three:
                _choose_split(entry, now)
            st.form_submit_button("Read with these settings", on_click=_take, args=(entry,))
        if refusal := st.session_state.pop(_REFUSED, ""):
            st.error(refusal)


def control_key(entry: Entry, name: str) -> str:
    """Return the key of a control of an entry."""
    return f"library-{name}-{entry.id}"


def _choose_pictures(entry: Entry, now: Preparation) -> None:
    st.text_input(
        "Size of pictures",
        " x ".join(map(str, now.size)) if now.size else "",
        key=control_key(entry, "size"),
        placeholder="rows x columns, for example 32 x 32",
        help=f"Rows and columns that pictures are brought to. Default {_TOLD}.",
    )
    st.selectbox(
        "Fit",
        list(FITS),
        index=list(FITS).index(now.fit),
        format_func=FITS.__getitem__,
        key=control_key(entry, "fit"),
        help=f"How pictures of other shapes are brought to that size. Default {FITS['stretch']}.",
    )
    channels = [None, *CHANNELS]
    st.selectbox(
        "Channels",
        channels,
        index=channels.index(now.channels),
        format_func=lambda number: _TOLD if number is None else CHANNELS[number],
        key=control_key(entry, "channels"),
        help=f"Whether pictures are made grey or RGB. Default {_TOLD}.",
    )
    st.selectbox(
        "Transparent parts",
        list(ALPHA),
        index=list(ALPHA).index(now.alpha),
        format_func=ALPHA.__getitem__,
        key=control_key(entry, "alpha"),
        help=f"What becomes of an alpha channel, or a transparent colour. Default {ALPHA['drop']}.",
    )


def _choose_columns(entry: Entry, now: Preparation) -> None:
    for name, what in (("inputs", "Inputs"), ("targets", "Targets")):
        st.text_input(
            f"{what}: array or column",
            getattr(now, name),
            key=control_key(entry, name),
            placeholder=_TOLD,
            help=f"Name of the array or column that holds the {name}. Default {_TOLD}.",
        )
    st.selectbox(
        "Numbers in rows and columns",
        list(_READ_AS),
        index=list(_READ_AS).index(now.read_as),
        format_func=_READ_AS.__getitem__,
        key=control_key(entry, "read_as"),
        help="What arrays (n, rows, columns) hold: grey pictures, or series of steps and features. Default told by "
        "their values.",
    )
    st.selectbox(
        "Numbers as targets",
        list(_TASKS),
        index=list(_TASKS).index(now.task),
        format_func=_TASKS.__getitem__,
        key=control_key(entry, "task"),
        help=f"Whether they are classes or quantities. Default {_TASKS['']}.",
    )
    st.selectbox(
        "Empty cells",
        list(_EMPTY),
        index=list(_EMPTY).index(now.empty),
        format_func=_EMPTY.__getitem__,
        key=control_key(entry, "empty"),
        help="Of a table: cells without a value in columns of inputs or targets. Default refused, with their rows.",
    )


def _choose_split(entry: Entry, now: Preparation) -> None:
    st.number_input(
        "Share of tests",
        0.01,
        0.99,
        now.test_share,
        step=0.05,
        key=control_key(entry, "test_share"),
        help="Part of the inputs that become tests, where the files give no split. From 0.01 to 0.99; default 0.2.",
    )
    st.number_input(
        "Seed",
        0,
        999_999_999,
        now.seed,
        key=control_key(entry, "seed"),
        help="Draws the tests, where the files give no split. From 0 to 1e+09; default 0.",
    )
    if not visitor.paths_refused():
        for name, (label, what) in _FOLDERS.items():
            st.text_input(
                label,
                str(getattr(now, name) or ""),
                key=control_key(entry, name),
                placeholder="/home/me/network",
                help=f"Whole path of a folder on this computer with the {name} of a Hugging Face network. "
                f"Default none: {what}.",
            )
    st.text_input(
        "Tokens of a text",
        str(now.length or ""),
        key=control_key(entry, "length"),
        placeholder=_TOLD,
        help=f"Number of tokens that texts are cut or padded to. Default {_TOLD}.",
    )


def _take(entry: Entry) -> None:
    from idc_core.library import DataSettings

    given: dict[str, Any] = {
        name: st.session_state[control_key(entry, name)]
        for name in ("fit", "channels", "alpha", "inputs", "targets", "task", "empty", "read_as", "test_share", "seed")
    }
    try:
        if not visitor.paths_refused():
            given |= {name: _folder(st.session_state[control_key(entry, name)].strip()) for name in _FOLDERS}
        size, length = st.session_state[control_key(entry, "size")], st.session_state[control_key(entry, "length")]
        sides = tuple(int(side) for side in size.lower().replace("x", " ").split()) or None
        given |= {"size": sides, "length": int(length) if length.strip() else None}
        preparation = replace(entry.preparation, **given)
    except IdcError as error:
        st.session_state[_REFUSED] = literal(error)
        return
    except ValueError:
        st.session_state[_REFUSED] = "Size and tokens must be whole numbers, for example 32 x 32 and 128."
        return
    ask(Asked(entry.id, f"reading {entry.label}", read=True, data=DataSettings(preparation.to_json())))


def _folder(text: str) -> Path | None:
    """Return the folder that a person named; None where they named none."""
    if not text:
        return None
    try:
        folder = Path(text).expanduser()
        if folder.is_absolute() and folder.is_dir():
            return folder
    except (OSError, RuntimeError):  # its name is too long, or that of a person whose home is not known
        pass
    raise SettingError(f"{shown(text)} is no folder of this computer: give its whole path.")
