"""Learn: the method on a network of ten neurons, in six short chapters."""

from functools import partial

import streamlit as st

from studio.learn.chapters import CHAPTERS
from studio.learn.turning import begin_at_top, open_former, turn
from studio.shell import presenting, tabs
from studio.shell.frame import enter
from studio.shell.pages import PageEntry

PAGE = PageEntry(
    "Learn",
    ":material/school:",
    "How does it work?",
    "The method on a network of ten neurons with weights to drag, in six short chapters.",
    place=20,
    setup="none",
    tabs={
        "network": "1 A network",
        "relevance": "2 Relevance",
        "importance": "3 Importance",
        "clusters": "4 Clusters",
        "cells": "5 Cells",
        "empty": "6 Empty cells",
    },
)

WIDTH = 900  # pixels: lines of text stay readable, and the network above the fold

enter()
open_former()


def draw(name: str) -> None:
    """Show a chapter, and lead to the one before and the next."""
    CHAPTERS[name][1]()
    if presenting.is_on():
        return  # its own buttons turn the chapters
    names = list(CHAPTERS)
    place = names.index(name)
    with st.container(horizontal=True):
        for label, to in (("Previous", place - 1), ("Next", place + 1)):
            if 0 <= to < len(CHAPTERS):
                st.button(label, on_click=turn, args=(names[to],), help=f"Chapter {CHAPTERS[names[to]][0]}.")


with st.container(width="stretch" if presenting.is_on() else WIDTH):
    tabs.draw("learn", {name: partial(draw, name) for name in CHAPTERS})
begin_at_top()
