"""Learn: the method on a network of ten neurons, in six short chapters."""

from studio.learn import turning
from studio.shell.frame import enter
from studio.shell.pages import PageEntry

PAGE = PageEntry(
    "Learn",
    ":material/school:",
    "How does it work?",
    "The method on a network of ten neurons with weights to drag, in six short chapters.",
    section="Start",
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

enter()
turning.draw()
