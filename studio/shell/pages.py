"""The pages: navigation, links and headings are made from this list."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import streamlit as st
from streamlit.navigation.page import Page

FOLDER = Path(__file__).parents[2] / "pages"
GO = "go-to-page"
"""The page that a callback asked for: callbacks cannot change the page themselves."""


@dataclass(frozen=True)
class PageEntry:
    """One page.

    Attributes
    ----------
    name : str
        File under ``pages`` without its ending; also its address.
    title : str
        Name in the navigation.
    group : str
        Menu it is in.
    icon : str
        Material symbol.
    question : str
        What the page answers; its heading.
    help : str
        One line on what can be done there.
    setup : str
        ``live`` where the page shows results of the setup, ``none`` where it needs none, and ``snapshot`` where it
        opens on results made beforehand.
    """

    name: str
    title: str
    group: str
    icon: str
    question: str
    help: str
    setup: Literal["live", "none", "snapshot"] = "live"

    @property
    def file(self) -> Path:
        """Path of the page's script."""
        return FOLDER / f"{self.name}.py"


PAGES: dict[str, PageEntry] = {
    page.name: page
    for page in (
        PageEntry(
            "overview",
            "Overview",
            "Start",
            ":material/home:",
            "What have these tests not exercised?",
            "The result for the chosen network and tests at a glance, and where to look next.",
            setup="snapshot",
        ),
        PageEntry(
            "learn",
            "Learn",
            "Start",
            ":material/school:",
            "How does it work?",
            "The method on a network of ten neurons whose weights can be dragged, in six short chapters.",
            setup="none",
        ),
        PageEntry(
            "relevance",
            "Relevance",
            "Explore",
            ":material/visibility:",
            "Which part of the input decided?",
            "Heatmaps of one test for any class and method, side by side, and relevance layer by layer.",
        ),
        PageEntry(
            "neurons",
            "Neurons",
            "Explore",
            ":material/hub:",
            "Which neurons decide, and do they really?",
            "Neurons ranked by any measure, what activates one, and what happens when the first ones are silenced.",
        ),
        PageEntry(
            "clusters",
            "Clusters",
            "Explore",
            ":material/bar_chart:",
            "What states does each important neuron have?",
            "A histogram a neuron with its clusters, how their number was chosen, and example inputs.",
        ),
        PageEntry(
            "coverage",
            "Coverage",
            "Explore",
            ":material/grid_on:",
            "Which combinations of behaviour do the tests reach?",
            "The grid of combinations: click a cell to see the tests in it.",
        ),
        PageEntry(
            "layers",
            "Layers",
            "Explore",
            ":material/layers:",
            "Where in the network are the tests weak?",
            "Coverage of every layer for several numbers of neurons and test sets; click one to look into it.",
        ),
        PageEntry(
            "testsets",
            "Test sets",
            "Challenge",
            ":material/science:",
            "Which additional tests are worth having?",
            "Noise, transforms, attacks, parts and tests of your own side by side, by the combinations each adds.",
        ),
        PageEntry(
            "adversarial",
            "Adversarial",
            "Challenge",
            ":material/bolt:",
            "What do attacks reveal that the tests do not?",
            "Six attacks on correctly classified tests: what fools the network, how far the picture and its relevance "
            "move, and which cells that adds.",
        ),
        PageEntry(
            "differential",
            "Differential",
            "Challenge",
            ":material/call_split:",
            "Where do similar models disagree?",
            "Search for pictures on which networks for one task disagree, so that at least one of them is wrong.",
        ),
        PageEntry(
            "robustness",
            "Robustness",
            "Challenge",
            ":material/fitness_center:",
            "Does training on what was missing help?",
            "The network retrained with inputs that raise IDC, with as many random ones and with none.",
        ),
        PageEntry(
            "criteria",
            "Criteria",
            "Compare",
            ":material/compare_arrows:",
            "Do other criteria see the same?",
            "Eleven other coverage criteria beside IDC, how far they agree, and which tests each would run first.",
        ),
        PageEntry(
            "classes",
            "Class errors",
            "Compare",
            ":material/balance:",
            "Which classes does it confuse, and for whom is it unfair?",
            "Pairs of classes that activate the neurons alike, beside what labels say; bias, own predictions, groups.",
        ),
        PageEntry(
            "hypotheses",
            "Hypotheses",
            "Compare",
            ":material/psychology:",
            "Do units mean something I can name?",
            "Every unit against classes, shapes, words or grammar rules: which goes with which, how sure, and where.",
        ),
    )
}
"""Pages by name, in the order of the menus."""


def navigation() -> tuple[PageEntry, Page]:
    """Draw the navigation; return the page that was asked for, and its script to run."""
    groups: dict[str, list[Page]] = {}
    entries = {}
    for entry in PAGES.values():
        page = st.Page(entry.file, title=entry.title, help=entry.help, url_path=entry.name, default=not entries)
        groups.setdefault(entry.group, []).append(page)
        entries[page.title] = entry
    script = st.navigation(groups, position="top")
    return entries[script.title], script


def go_to(name: str) -> None:
    """Open another page at the next run; for callbacks."""
    st.session_state[GO] = name


def asked_page() -> str:
    """Return the page that a callback asked for, once; empty where none did."""
    return str(st.session_state.pop(GO, ""))
