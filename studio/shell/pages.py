"""The pages: navigation, links and headings are made from this list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.navigation.page import Page

from idc_core.files import SHIPPED
from idc_core.registry import Registry
from studio.shell.needs import Need, classes, first_unmet, pictures, true_classes
from studio.state import address
from studio.state.selection import EXPLAINED, NEURON, select
from studio.state.setup import Setup

FOLDER = SHIPPED / "pages"
_GO = "go-to-page"
"""The page that a callback asked for: callbacks cannot change the page themselves."""
_PARAMETERS = "go-to-parameters"
"""What its address is to say, where the callback said so."""


@dataclass(frozen=True)
class PageEntry:
    """One page: its address, its name in the navigation, its Material symbol in links, and the question of its heading.

    `help` says in a line what can be done there. `setup` is ``live`` where the page shows results of the setup,
    ``none`` where it needs none, and ``snapshot`` where it opens on results made beforehand. `script` draws the page,
    run anew each time it is shown; by default the one of its name under ``pages``. `tabs` are the titles of its tabs by
    their names, and `controls` says in which of them a control is that the address can hold. `needs` are what the page
    cannot do without: it is marked in the navigation and the search where network and tests do not meet them.
    """

    name: str
    title: str
    icon: str
    question: str
    help: str
    setup: Literal["live", "none", "snapshot"] = "live"
    script: Path | None = None
    tabs: Mapping[str, str] = field(default_factory=dict)
    controls: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[Need, ...] = ()

    @property
    def file(self) -> Path:
        """Path of the page's script."""
        return self.script or FOLDER / f"{self.name}.py"


PAGES: Registry[PageEntry] = Registry("page")
"""Pages by name, in the order of the navigation."""


def register(*pages: PageEntry) -> None:
    """Add pages to the navigation."""
    PAGES.update({page.name: page for page in pages})


register(
    PageEntry(
        "overview",
        "Overview",
        ":material/home:",
        "What do these tests not cover?",
        "The result for this setup at a glance, and where to look next.",
        setup="snapshot",
    ),
    PageEntry(
        "learn",
        "Learn",
        ":material/school:",
        "How does it work?",
        "The method on a network of ten neurons with weights to drag, in six short chapters.",
        setup="none",
        tabs={
            "network": "1 A network",
            "relevance": "2 Relevance",
            "importance": "3 Importance",
            "clusters": "4 Clusters",
            "cells": "5 Cells",
            "empty": "6 Empty cells",
        },
    ),
    PageEntry(
        "library",
        "Library",
        ":material/folder_open:",
        "Which networks and data are mine?",
        "Your own networks, data and test sets: add them from files, check them, open them in the studio.",
        setup="none",
    ),
    PageEntry(
        "runs",
        "Runs",
        ":material/history:",
        "What was found before?",
        "Finished analyses, comparisons, attacks, searches and inspections: find, name, compare and open them.",
        setup="none",
        tabs={"all": "All runs", "compare": "Compare", "versions": "Over time"},
        controls={"compared-runs": "compare", "version-of": "versions"},
    ),
    PageEntry(
        "relevance",
        "Relevance",
        ":material/visibility:",
        "Which part of the input decided?",
        "Heatmaps of one test for any class and method, and relevance layer by layer.",
        tabs={
            "test": "One test",
            "layers": "Layer by layer",
            "methods": "Compare methods",
            "edit": "Change it",
            "tests": "All tests",
        },
        controls={"methods": "methods"},
    ),
    PageEntry(
        "neurons",
        "Neurons",
        ":material/hub:",
        "Which neurons decide, and do they really?",
        "Neurons ranked by relevance or attribution, tests that activate one, and the effect of silencing.",
        tabs={
            "ranking": "Ranking",
            "neuron": "One neuron",
            "decide": "Do they decide?",
            "agreement": "Do measures agree?",
        },
        controls={
            "ranked-beside": "ranking",
            "tried": "decide",
            "changed": "decide",
            "scaled": "decide",
            "compared": "agreement",
            "agreement-classes": "agreement",
        },
    ),
    PageEntry(
        "clusters",
        "Clusters",
        ":material/bar_chart:",
        "What clusters does each important neuron have?",
        "One histogram per neuron with its clusters, the choice of their number, and example inputs.",
        tabs={
            "histograms": "Histograms",
            "number": "Number of clusters",
            "cells": "Effect on cells",
            "map": "Map of the tests",
        },
        controls={"neuron-heatmaps": "histograms", "other-ways": "cells", "plane": "map", "plane-colour": "map"},
    ),
    PageEntry(
        "coverage",
        "Coverage",
        ":material/grid_on:",
        "Which combinations of clusters do the tests reach?",
        "The grid of combinations, its growth with the tests, the smallest set of tests, and empty cells to fill.",
        tabs={"grid": "Grid", "growth": "Growth and what is left", "smallest": "Smallest set", "fill": "Fill the grid"},
        controls={
            "make": "fill",
            "make-epsilon": "fill",
            "make-seeds": "fill",
            "prefer": "smallest",
            "colour": "grid",
            "zoom": "grid",
            "rows": "grid",
            "columns": "grid",
        },
    ),
    PageEntry(
        "layers",
        "Layers",
        ":material/layers:",
        "Where in the network are the tests weak?",
        "Coverage of every layer, for several m and test sets. Click a square to open it.",
        tabs={"coverage": "Coverage of every layer", "network": "Drawing of the network"},
    ),
    PageEntry(
        "testsets",
        "Test sets",
        ":material/science:",
        "Which additional tests are worth having?",
        "Noise, transforms, attacks, subsets and your own tests, compared by the cells that each adds.",
        tabs={"compare": "Compare", "overlap": "Overlap", "adding": "Inputs that add cells", "own": "Your suites"},
        controls={"shown": "adding", "cells-m": "adding", "pick": "adding"},
    ),
    PageEntry(
        "adversarial",
        "Adversarial",
        ":material/bolt:",
        "What do attacks reveal that the tests do not?",
        "Attacks on correctly classified tests: success, size of the change, change of relevance, and added cells.",
        tabs={
            "inputs": "Inputs",
            "sizes": "Size of change",
            "confusions": "Confusions",
            "cells": "New cells",
            "all": "All attacks",
        },
        controls={"show": "inputs", "magnify": "inputs"},
        needs=(
            pictures(
                "Attacks change pictures, and these tests are none.",
                "relevance",
                "There is nothing between two words, and features and channels have ranges of their own, so that one "
                "epsilon does not fit all. The Relevance page shows which parts of an input contribute most.",
            ),
            classes(
                "Attacks aim at a wrong class, and this network predicts a number.",
                "testsets",
                "The Test sets page shows which cells noise and transforms add.",
            ),
            true_classes(
                "The tests have other classes than the network: an attack has no true class to start from.",
                "coverage",
                "Choose the network's own tests in the sidebar, or see the Coverage page.",
            ),
        ),
    ),
    PageEntry(
        "differential",
        "Differential",
        ":material/call_split:",
        "Where do similar models disagree?",
        "Search for inputs on which networks for one task disagree, so that at least one is wrong.",
        tabs={
            "found": "Disagreements",
            "steps": "Search progress",
            "gain": "What they add",
            "retraining": "Retraining",
        },
        controls={"measured": "gain", "retrain": "retraining"},
        needs=(
            pictures(
                "The search changes pictures, and these tests are none.",
                "testsets",
                "Choose a network for pictures. The Test sets page shows which of your own tests add cells.",
            ),
        ),
    ),
    PageEntry(
        "robustness",
        "Robustness",
        ":material/fitness_center:",
        "Does training on what was missing help?",
        "The network retrained with inputs that raise IDC, with equally many random inputs, and with none.",
        tabs={"curves": "Accuracy", "differences": "Differences", "added": "Added inputs"},
        needs=(
            pictures(
                "The additions of this page are made by noise, which is defined for pictures, and these tests are "
                "none.",
                "testsets",
                "The Test sets page shows which of your own tests add cells; "
                "`idc_core.experiments.retraining.retrain` trains with additions of any kind.",
            ),
            true_classes(
                "Accuracy is not defined for these tests: their classes are not the network's.",
                "coverage",
                "Choose the network's own tests in the sidebar, or see the Coverage page.",
            ),
        ),
    ),
    PageEntry(
        "criteria",
        "Criteria",
        ":material/compare_arrows:",
        "Do other coverage criteria agree with IDC?",
        "Other coverage criteria compared with IDC, their agreement, and test prioritisation by each.",
        tabs={"scores": "Scores", "agreement": "Agreement", "growth": "Growth", "prioritisation": "Prioritisation"},
        controls={"over": "agreement", "coefficient": "agreement", "order": "prioritisation", "suites": "scores"},
    ),
    PageEntry(
        "classes",
        "Class errors",
        ":material/balance:",
        "Which classes does it confuse, and for whom is it unfair?",
        "Pairs of classes with similar activations, compared with the labels; bias, your own predictions, groups.",
        tabs={"pairs": "Pairs", "pair": "One pair", "bias": "Bias", "cost": "Cost-effectiveness", "remedy": "Remedy"},
        controls={"pair-shown": "pair", "third": "bias"},
        needs=(
            classes(
                "This network predicts a number: it has no classes to confuse.",
                "coverage",
                "Choose a classifier in the sidebar, or load predictions of one above.",
            ),
        ),
    ),
    PageEntry(
        "hypotheses",
        "Hypotheses",
        ":material/psychology:",
        "Do units mean something I can name?",
        "Which units correlate with classes, shapes, words or grammar rules, how strongly, and where.",
        tabs={"map": "Map", "unit": "One unit", "important": "Important neurons", "epochs": "Epochs", "sql": "SQL"},
        controls={
            "verify": "unit",
            "swaps": "unit",
            "verified-units": "unit",
            "over-epochs": "epochs",
            "rows-shown": "map",
            "units-shown": "map",
        },
    ),
)


def navigation(setup: Setup | None) -> tuple[PageEntry, Page]:
    """Draw the navigation; return the page that was asked for, and its script to run.

    Pages that do not apply to a setup say so behind their titles, and why when they are pointed at.
    """
    pages = [
        _draw_entry(entry, unmet(entry.name, setup), default=index == 0) for index, entry in enumerate(PAGES.values())
    ]
    # In the sidebar all pages are in sight and one click away; menus on top hid them. Headings between them would make
    # a list that screen readers cannot read.
    script = st.navigation(pages, position="sidebar", expanded=True)
    return list(PAGES.values())[pages.index(script)], script


def _draw_entry(entry: PageEntry, need: Need | None, *, default: bool) -> Page:
    """Return a page as the navigation shows it."""
    title = f"{entry.title} · *{need.short}*" if need else entry.title
    # No help on the others: sixteen of them took a tenth of the browser's time whenever a page was opened.
    reason = need.reason if need else None
    return st.Page(entry.file, title=title, help=reason, url_path=entry.name, default=default)


def unmet(name: str, setup: Setup | None) -> Need | None:
    """Return what a page needs and a setup does not have; None where the page applies, or there is no setup yet."""
    return first_unmet(PAGES[name].needs, setup)


def stop_if_unmet(name: str, setup: Setup, finding: DeltaGenerator) -> None:
    """End a page that does not apply to a setup: its finding says why, and a link leads on."""
    if need := unmet(name, setup):
        finding.markdown(f"**{need.reason}** {need.more}")
        draw_link(need.instead)
        st.stop()


def draw_link(name: str, label: str = "") -> None:
    """Draw a link to a page, named by its question where it has no label."""
    page = PAGES[name]
    st.page_link(page.file, label=label or page.question, icon=page.icon, help=page.help)


def go_to(name: str) -> None:
    """Open another page at the next run; for callbacks."""
    st.session_state[_GO] = name


def open_neuron(neuron: int) -> None:
    """Open the Relevance page on a neuron of the layer; for callbacks."""
    select(neuron=neuron)
    address.keep(EXPLAINED, NEURON)
    st.session_state[EXPLAINED] = NEURON
    go_to("relevance")


def go_to_address(name: str, parameters: Mapping[str, str]) -> None:
    """Open a page as a link with these parts would in a new window, at the next run; for callbacks."""
    address.replace(parameters)
    st.session_state[_PARAMETERS] = dict(parameters)
    go_to(name)


def asked_page() -> tuple[str, dict[str, str] | None]:
    """Return the page that a callback asked for, once, and its parameters if it named any; empty where none did."""
    return str(st.session_state.pop(_GO, "")), st.session_state.pop(_PARAMETERS, None)
