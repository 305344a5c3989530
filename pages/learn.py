"""Learn: the method on a network of ten neurons, in six short chapters."""

import streamlit as st

from studio.learn.chapters import CHAPTERS, NAMES_OF_CHAPTERS, turn
from studio.shell.frame import enter
from studio.widgets.layout import one_of

WIDTH = 900  # pixels: lines of text stay readable, and the network above the fold

enter()
with st.container(width=WIDTH):
    chapter = one_of("Chapter", NAMES_OF_CHAPTERS, NAMES_OF_CHAPTERS[0], "chapter", "Chapter to read.")
    CHAPTERS[chapter]()
    place = NAMES_OF_CHAPTERS.index(chapter)
    with st.container(horizontal=True):
        for label, to in (("Previous", place - 1), ("Next", place + 1)):
            if 0 <= to < len(CHAPTERS):
                st.button(f"{label}: {NAMES_OF_CHAPTERS[to][2:]}", on_click=turn, args=(NAMES_OF_CHAPTERS[to],))
