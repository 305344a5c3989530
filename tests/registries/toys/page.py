"""A page of one's own in one file: imported, it registers itself; run by the studio, it draws."""

from pathlib import Path

import streamlit as st

from studio.shell.frame import current_view
from studio.shell.pages import PageEntry, register

if __name__ == "__main__":
    view = current_view()
    st.metric("Tests", len(view.chosen))
else:
    register(
        PageEntry(
            "toy", "Toy", ":material/toys:", "How many tests are there?", "The number of tests.", script=Path(__file__)
        )
    )
