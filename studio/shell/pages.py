"""The pages: navigation, links and headings are made from this list."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import streamlit as st
from streamlit.navigation.page import Page

from idc_core.registry import Registry

FOLDER = Path(__file__).parents[2] / "pages"
GO = "go-to-page"
"""The page that a callback asked for: callbacks cannot change the page themselves."""


@dataclass(frozen=True)
class PageEntry:
    """One page: its address, its name, menu and Material symbol in the navigation, and the question of its heading.

    `help` says in a line what can be done there. `setup` is ``live`` where the page shows results of the setup,
    ``none`` where it needs none, and ``snapshot`` where it opens on results made beforehand. `script` draws the page,
    run anew each time it is shown; by default the one of its name under ``pages``.
    """

    name: str
    title: str
    group: str
    icon: str
    question: str
    help: str
    setup: Literal["live", "none", "snapshot"] = "live"
    script: Path | None = None

    @property
    def file(self) -> Path:
        """Path of the page's script."""
        return self.script or FOLDER / f"{self.name}.py"


PAGES: Registry[PageEntry] = Registry("page")
"""Pages by name, in the order of the menus."""


def register(*pages: PageEntry) -> None:
    """Add pages to the menus."""
    PAGES.update({page.name: page for page in pages})


register(
    PageEntry(
        "overview",
        "Overview",
        "Start",
        ":material/home:",
        "What do these tests not cover?",
        "The result for this setup at a glance, and where to look next.",
        setup="snapshot",
    ),
    PageEntry(
        "learn",
        "Learn",
        "Start",
        ":material/school:",
        "How does it work?",
        "The method on a network of ten neurons with weights to drag, in six short chapters.",
        setup="none",
    ),
    PageEntry(
        "relevance",
        "Relevance",
        "Explore",
        ":material/visibility:",
        "Which part of the input decided?",
        "Heatmaps of one test for any class and method, and relevance layer by layer.",
    ),
    PageEntry(
        "neurons",
        "Neurons",
        "Explore",
        ":material/hub:",
        "Which neurons decide, and do they really?",
        "Neurons ranked by relevance or attribution, tests that activate one, and the effect of silencing.",
    ),
    PageEntry(
        "clusters",
        "Clusters",
        "Explore",
        ":material/bar_chart:",
        "What clusters does each important neuron have?",
        "One histogram per neuron with its clusters, the choice of their number, and example inputs.",
    ),
    PageEntry(
        "coverage",
        "Coverage",
        "Explore",
        ":material/grid_on:",
        "Which combinations of clusters do the tests reach?",
        "The grid of combinations. Click a cell to see its tests.",
    ),
    PageEntry(
        "layers",
        "Layers",
        "Explore",
        ":material/layers:",
        "Where in the network are the tests weak?",
        "Coverage of every layer, for several m and test sets. Click a square to open it.",
    ),
    PageEntry(
        "testsets",
        "Test sets",
        "Challenge",
        ":material/science:",
        "Which additional tests are worth having?",
        "Noise, transforms, attacks, subsets and your own tests, compared by the cells that each adds.",
    ),
    PageEntry(
        "adversarial",
        "Adversarial",
        "Challenge",
        ":material/bolt:",
        "What do attacks reveal that the tests do not?",
        "Attacks on correctly classified tests: success, size of the change, change of relevance, and added cells.",
    ),
    PageEntry(
        "differential",
        "Differential",
        "Challenge",
        ":material/call_split:",
        "Where do similar models disagree?",
        "Search for inputs on which networks for one task disagree, so that at least one is wrong.",
    ),
    PageEntry(
        "robustness",
        "Robustness",
        "Challenge",
        ":material/fitness_center:",
        "Does training on what was missing help?",
        "The network retrained with inputs that raise IDC, with equally many random inputs, and with none.",
    ),
    PageEntry(
        "criteria",
        "Criteria",
        "Compare",
        ":material/compare_arrows:",
        "Do other coverage criteria agree with IDC?",
        "Other coverage criteria compared with IDC, their agreement, and test prioritisation by each.",
    ),
    PageEntry(
        "classes",
        "Class errors",
        "Compare",
        ":material/balance:",
        "Which classes does it confuse, and for whom is it unfair?",
        "Pairs of classes with similar activations, compared with the labels; bias, your own predictions, groups.",
    ),
    PageEntry(
        "hypotheses",
        "Hypotheses",
        "Compare",
        ":material/psychology:",
        "Do units mean something I can name?",
        "Which units correlate with classes, shapes, words or grammar rules, how strongly, and where.",
    ),
)


def navigation() -> tuple[PageEntry, Page]:
    """Draw the navigation; return the page that was asked for, and its script to run."""
    pages = [
        st.Page(entry.file, title=entry.title, help=entry.help, url_path=entry.name, default=index == 0)
        for index, entry in enumerate(PAGES.values())
    ]
    groups: dict[str, list[Page]] = {}
    for entry, page in zip(PAGES.values(), pages, strict=True):
        groups.setdefault(entry.group, []).append(page)
    script = st.navigation(groups, position="top")
    return list(PAGES.values())[pages.index(script)], script


def go_to(name: str) -> None:
    """Open another page at the next run; for callbacks."""
    st.session_state[GO] = name


def asked_page() -> str:
    """Return the page that a callback asked for, once; empty where none did."""
    return str(st.session_state.pop(GO, ""))
