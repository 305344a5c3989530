"""Test sets: suites side by side, by the cells that each adds to the original tests."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from studio.engine import suite_catalog
from studio.shell import pins
from studio.shell.frame import current_view
from studio.testsets import added_inputs, comparison_charts, suite_controls
from studio.testsets.findings import headline
from studio.testsets.suite_comparison import compare_chosen
from studio.text import count, plural
from studio.widgets import layout

view = current_view()
finding = st.empty()

names = suite_controls.choose(view)
suite_controls.manage(view, names)
found = compare_chosen(view, names)
for problem in found.problems:
    st.warning(problem)
finding.markdown(headline(found))
perturbed = suite_catalog.perturbed_count(view)
if perturbed < len(view.chosen) and any(one.extra == perturbed for one in found.results):
    st.caption(
        f"Suites perturb {count(perturbed)} of the {plural(len(view.chosen), 'test')}, drawn at random. Raise "
        "“Perturbed tests” for more."
    )
comparison_charts.draw_gains(found)
comparison_charts.draw_tables(found)

files: dict[str, Any] = {}
number, m = 1, found.m
if len(found.results) > 1:
    st.header("Shared cells", anchor=False)
    comparison_charts.draw_shared(found)
if found.additions:
    st.header("Suites added one after another", anchor=False)
    comparison_charts.draw_cumulative(found)
    st.header("Inputs that add cells", anchor=False)
    number, m = added_inputs.choose(found)
    added_inputs.draw(found, number, m)
    added_inputs.draw_save(found, number, m)
if len(found.results) > 1:
    files = added_inputs.downloads(found, number, m)

pins.beside(
    view, partial(comparison_charts.draw_side, found, names), partial(comparison_charts.difference, found, names)
)

layout.computed(
    view,
    f"Neurons and clusters are learnt once from the training inputs, for {max(found.comparison.ms)} neurons of layer "
    f"{view.setup.layer}. A smaller m uses the first of them. Inputs are made block by block when they are needed; "
    "random numbers depend only on the seed and the test's number.",
    "Noise on random pixels (U_O+S) and on the most relevant pixels (U_O+DI) follows RQ2 of the paper: the same values "
    "on 2 % of the pixels. A suite adds a cell if it reaches it and no original test does.",
    "\n".join(
        f"* {option.label}: "
        + "; ".join(step.label + (f", seed {step.seed}" if step.seed is not None else "") for step in suite.provenance)
        + f"; fingerprint `{suite.fingerprint}`"
        for option, suite in zip(found.options, found.suites, strict=True)
    ),
)
# Without columns that are empty here: accuracy of a regression, or errors of a classification.
layout.take_away({"test-sets": pd.DataFrame(found.comparison.rows()).dropna(axis=1, how="all")}, files)
