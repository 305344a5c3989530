"""Adding a network or data: by upload, or by path in a browser on the server's own computer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from idc_core.errors import IdcError
from studio.library.entries import open_details
from studio.library.work import Asked, ask
from studio.state import visitor
from studio.text import literal

if TYPE_CHECKING:
    from idc_core.library import Entry

_KINDS = {"told": "Told by the file", "network": "Network", "data": "Data set"}
_KIND, _PATH, _UPLOADER, _REFUSED = "library-kind", "library-path", "library-uploader", "library-refused"


def draw(*, expanded: bool) -> None:
    """Draw the form, or say why nothing can be added here."""
    with st.expander("Add a network or data", expanded=expanded):
        if refused := visitor.uploads_refused():
            st.caption(literal(refused))
            return
        st.segmented_control(
            "What it is",
            list(_KINDS),
            default="told",
            required=True,
            format_func=_KINDS.__getitem__,
            key=_KIND,
            help="What the file holds. A zip file may hold either: a Hugging Face folder is a network, pictures are "
            "data. Default Told by the file.",
        )
        uploading, naming = st.columns(2, gap="large")
        with uploading:
            _upload()
        with naming:
            _name()
        if refusal := st.session_state.pop(_REFUSED, ""):
            st.error(refusal)


def _readable() -> str:
    """Say which files are read."""
    from idc_core import library

    networks, data = (
        ", ".join("a folder" if ending == "/" else ending for ending in library.accepted(kind))
        for kind in ("network", "data")
    )
    return f"Networks: {networks}. Data: {data}. Code and pickles (.py, .pt, .pkl) are not read here."


def _upload() -> None:
    from idc_core.base.config import config

    most = min(config().upload_mib, int(st.get_option("server.maxUploadSize")))
    # Another key after each file: the server holds an upload in memory as long as a control shows it.
    key = f"{_UPLOADER}-{st.session_state.get(_UPLOADER, 0)}"
    st.file_uploader(
        "Upload a file",
        key=key,
        on_change=_take_upload,
        args=(key,),
        max_upload_size=most,
        help=f"{_readable()} Kept on the server until you delete it, at most {most:,} MB. Zip a Hugging Face folder "
        "first. Default none.",
    )


def _name() -> None:
    if refused := visitor.paths_refused():
        st.caption(literal(refused))
        return
    st.text_input(
        "Or name a file or folder of this computer",
        key=_PATH,
        placeholder="/home/me/network.onnx",
        help=f"The whole path. The file stays where it is and is read from there. {_readable()} Default none.",
    )
    st.button("Add", key="library-add", on_click=_take_path, help="Adds the file or folder, and reads it.")


def _take_upload(key: str) -> None:
    from idc_core import library

    given = st.session_state[key]
    if given is None or visitor.uploads_refused():
        return
    st.session_state[_UPLOADER] = st.session_state.get(_UPLOADER, 0) + 1
    kind = st.session_state[_KIND]
    try:
        kind = library.kind_of(given.name) if kind == "told" else kind
        _begin(library.add_upload(given, given.name, kind, owner=visitor.owner()))
    except IdcError as error:
        st.session_state[_REFUSED] = literal(error)


def _take_path() -> None:
    from idc_core import library

    if visitor.paths_refused():
        return
    path, kind = st.session_state[_PATH].strip(), st.session_state[_KIND]
    try:
        if kind == "told":
            folder = Path(path).expanduser() if path.startswith(("/", "~")) else None
            kind = library.kind_of(Path(path).name, folder if folder and folder.is_dir() else None)
        _begin(library.add_path(path, kind, owner=visitor.owner()))
    except IdcError as error:
        st.session_state[_REFUSED] = literal(error)
    except (OSError, RuntimeError, ValueError) as error:
        st.session_state[_REFUSED] = f"This path cannot be looked at: {literal(error)}."
    else:
        st.session_state[_PATH] = ""


def _begin(entry: Entry) -> None:
    ask(Asked(entry.id, f"reading {entry.label}", read=True))
    open_details(entry.id)
