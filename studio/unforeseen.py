"""An error that nobody foresaw: what a page shows in place of Streamlit's box, and what is copied into a report."""

from __future__ import annotations

import platform
import traceback
from pathlib import Path

import streamlit as st

from idc_core import __version__
from studio.state import address

_ROOT = Path(__file__).parents[1]


def show(error: Exception) -> bool:
    """Say which page failed, what to do and what to report; called for pages, callbacks, fragments and dialogs.

    Streamlit has written the whole error to the server's log. Returns True: its own box is not shown.
    """
    page = address.here()[0]
    st.error(
        f"An unforeseen error stopped the page \u201c{page}\u201d. Finished results are kept. Load the page again. If "
        "it fails again, go back to the settings before your last change."
    )
    with st.expander("Report this error"):
        st.caption(
            "Send these lines, and what you did last, to whoever runs this server. They hold no data, names or paths "
            "of yours; the server's log holds the full message."
        )
        st.code(details(error, page), language=None, wrap_lines=True)
    return True


def details(error: BaseException, page: str) -> str:
    """Return versions, the page, the kind of error, and where in the program it arose: nothing that a person gave."""
    places = []
    for frame in traceback.extract_tb(error.__traceback__):
        path = Path(frame.filename)
        if path.is_relative_to(_ROOT) and path.relative_to(_ROOT).parts[0] in ("app.py", "pages", "studio", "idc_core"):
            places.append(f"{path.relative_to(_ROOT)}, line {frame.lineno}, {frame.name}")
    versions = f"IDC Studio {__version__}, Streamlit {st.__version__}, Python {platform.python_version()}"
    return "\n".join([versions, f"page: {page}", f"error: {type(error).__name__}", *places])
