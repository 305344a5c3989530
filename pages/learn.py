"""Learn: the method on a network of ten neurons, in six short chapters."""

import streamlit as st

from studio.learn.chapters import CHAPTERS, choose, turn
from studio.shell.frame import enter

WIDTH = 900  # pixels: lines of text stay readable, and the network above the fold

enter()
with st.container(width=WIDTH):
    names = list(CHAPTERS)
    titles = {name: f"{number} {CHAPTERS[name][0]}" for number, name in enumerate(names, start=1)}
    chapter = choose("Chapter", titles, "chapter", "Chapter to read.")
    CHAPTERS[chapter][1]()
    place = names.index(chapter)
    with st.container(horizontal=True):
        for label, to in (("Previous", place - 1), ("Next", place + 1)):
            if 0 <= to < len(CHAPTERS):
                st.button(f"{label}: {CHAPTERS[names[to]][0]}", on_click=turn, args=(names[to],))
