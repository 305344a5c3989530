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
    suites = compare_chosen(view, names)
    for problem in suites.problems:
        st.warning(problem)
    return suites


def draw_compared() -> None:
    """Show which suite adds most cells, for several numbers of neurons."""
    finding = st.empty()
    suites = compare()
    finding.markdown(headline(suites))
    perturbed = suite_catalog.perturbed_count(view)
    if perturbed < len(view.chosen) and any(result.extra == perturbed for result in suites.results):
        st.caption(f"Suites perturb {count(perturbed)} of the {plural(len(view.chosen), 'test')}, drawn at random.")
    comparison_charts.draw_gains(suites)
    comparison_charts.draw_tables(suites)
    pins.beside(
        view, partial(comparison_charts.draw_side, suites, names), partial(comparison_charts.difference, suites, names)
    )
    explanations.explain_comparison(suites)


def draw_overlap() -> None:
    """Show which cells suites share, and what each adds to those before it."""
    suites = compare()
    if len(suites.results) < 2:
        st.markdown(headline(suites))
        return
    comparison_charts.draw_shared(suites)
    if suites.additions:
        comparison_charts.draw_cumulative(suites)
    explanations.explain_overlap(suites)


def draw_adding() -> None:
    """Show the inputs that add cells, and one of them beside its source."""
    suites = compare()
    if not suites.additions:
        st.markdown(headline(suites))
        return
    number, m = added_inputs.choose(suites)
    added_inputs.draw(suites, number, m)
    added_inputs.draw_save(suites, number, m)
    explanations.explain_inputs(suites)
    layout.take_away({}, added_inputs.downloads(suites, number, m))


def draw_own() -> None:
    """Show what was saved, and how more suites are had: from a file, or from several others."""
    own_suites.draw_saved(view, names)
    file, together = st.columns(2, gap="large")
    with file:
        own_suites.draw_upload(view, names)
    with together:
        own_suites.draw_combine(view, names)


tabs.draw("testsets", {"compare": draw_compared, "overlap": draw_overlap, "adding": draw_adding, "own": draw_own})
