"""Test sets: suites side by side, by the cells that each adds to the original tests."""

from __future__ import annotations

from functools import partial

import streamlit as st

from studio.jobs import suite_catalog
from studio.shell import pins, tabs
from studio.shell.frame import current_view
from studio.shell.pages import PageEntry
from studio.testsets import added_inputs, comparison_charts, explanations, own_suites, suite_controls
from studio.testsets.findings import headline
from studio.testsets.suite_comparison import ComparedSuites, compare_chosen
from studio.text import count, plural
from studio.widgets import layout

PAGE = PageEntry(
    "Test sets",
    ":material/science:",
    "Which additional tests are worth having?",
    "Noise, transforms, attacks, subsets and your own tests, compared by the cells that each adds.",
    place=100,
    tabs={"compare": "Compare", "overlap": "Overlap", "adding": "Inputs that add cells", "own": "Your suites"},
    controls={"shown": "adding", "cells-m": "adding", "pick": "adding"},
    selects=("pick",),
    opens=("comparisons",),
)

view = current_view()
names = suite_controls.choose(view)


def compare() -> ComparedSuites:
    """Compare the chosen suites, or find the comparison again; say what is left out."""
    found = compare_chosen(view, names)
    for problem in found.problems:
        st.warning(problem)
    return found


def draw_compared() -> None:
    """Show which suite adds most cells, for several numbers of neurons."""
    finding = st.empty()
    found = compare()
    finding.markdown(headline(found))
    perturbed = suite_catalog.perturbed_count(view)
    if perturbed < len(view.chosen) and any(one.extra == perturbed for one in found.results):
        st.caption(f"Suites perturb {count(perturbed)} of the {plural(len(view.chosen), 'test')}, drawn at random.")
    comparison_charts.draw_gains(found)
    comparison_charts.draw_tables(found)
    pins.beside(
        view, partial(comparison_charts.draw_side, found, names), partial(comparison_charts.difference, found, names)
    )
    explanations.explain_comparison(found)


def draw_overlap() -> None:
    """Show which cells suites share, and what each adds to those before it."""
    found = compare()
    if len(found.results) < 2:
        st.markdown(headline(found))
        return
    comparison_charts.draw_shared(found)
    if found.additions:
        comparison_charts.draw_cumulative(found)
    explanations.explain_overlap(found)


def draw_adding() -> None:
    """Show the inputs that add cells, and one of them beside its source."""
    found = compare()
    if not found.additions:
        st.markdown(headline(found))
        return
    number, m = added_inputs.choose(found)
    added_inputs.draw(found, number, m)
    added_inputs.draw_save(found, number, m)
    explanations.explain_inputs(found)
    layout.take_away({}, added_inputs.downloads(found, number, m))


def draw_own() -> None:
    """Show what was saved, and how more suites are had: from a file, or from several others."""
    own_suites.draw_saved(view, names)
    file, together = st.columns(2, gap="large")
    with file:
        own_suites.draw_upload(view, names)
    with together:
        own_suites.draw_combine(view, names)


tabs.draw("testsets", {"compare": draw_compared, "overlap": draw_overlap, "adding": draw_adding, "own": draw_own})
