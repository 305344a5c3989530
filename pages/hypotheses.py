"""Hypotheses: which units respond to properties of the inputs that can be named."""

from __future__ import annotations

from functools import partial

import streamlit as st

from idc_core.errors import CancelledError, IdcError
from idc_core.inspection.measures import PAIR_MEASURES
from studio.hypotheses import (
    controls,
    epochs,
    hypothesis_pair,
    important_neurons,
    inspections,
    score_map,
    sql_questions,
    unit_links,
    verification,
)
from studio.hypotheses.inspections import Measured
from studio.jobs.wording import kind
from studio.shell import pins, tabs
from studio.shell.frame import current_view
from studio.shell.pages import PageEntry
from studio.text import count, literal
from studio.widgets import layout

PAGE = PageEntry(
    "Hypotheses",
    ":material/psychology:",
    "Do units mean something I can name?",
    "Which units correlate with classes, shapes, words or grammar rules, how strongly, and where.",
    place=160,
    tabs={"map": "Map", "unit": "One unit", "important": "Important neurons", "epochs": "Epochs", "sql": "SQL"},
    controls={
        "verify": "unit",
        "swaps": "unit",
        "verified-units": "unit",
        "over-epochs": "epochs",
        "rows-shown": "map",
        "units-shown": "map",
    },
    selects=("hypothesis", "unit"),
    opens=("inspections",),
)

PLACES = {
    "texts": " Layers with units at every symbol are compared place by place, without padding.",
    "pictures": " Layers with units at every pixel are compared place by place. For a coarser layer, a hypothesis "
    "about pixels is pooled over the pixels of each place.",
}
"""How layers with places are compared, by the kind of inputs."""

SOURCE = "Source: T. Sellam et al., DeepBase: Deep Inspection of Neural Networks, SIGMOD 2019."

view = current_view()
finding = st.empty()
settings, shown = controls.choose(view)
preliminary = st.empty()


def tell(part: Measured) -> None:
    """Show the scores so far while more records are read."""
    finding.markdown(score_map.sentence(part, shown))
    if tabs.opened("hypotheses") != "map":
        return
    with preliminary.container():
        score_map.draw_map(part, shown, None, f"scores-{part.records}")
        st.caption(f"After {count(part.records)} records. Widest 95\u00a0% interval: ± {shown.grid(part).widest:.2f}.")


try:
    found = inspections.measure(view, settings, tell)
except IdcError as error:
    st.error(literal(error))
    st.stop()
preliminary.empty()
if found is None:
    st.info("Stopped before any score was ready. Start again to continue; fewer hypotheses are faster.")
    st.stop()
measured = found
grid, layer, label = shown.grid(measured), shown.layer, shown.label
finding.markdown(score_map.sentence(measured, shown))
pair = hypothesis_pair.choose(measured, grid, layer)
hypothesis = next(
    candidate for candidate in inspections.chosen_hypotheses(view, settings) if candidate.name == grid.names[pair[0]]
)


def draw_map() -> None:
    """Show all scores, and the tests that activate the selected unit most."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        size = controls.choose_size()
        first = controls.choose_part(grid, size.columns, pair[1])
    score_map.draw_map(measured, shown, pair, size=size, first=first)
    score_map.draw_records_read(measured, shown)
    draw_behind()
    score_map.draw_probes(measured)
    pins.beside(view, partial(score_map.draw_side, settings, shown), partial(score_map.compare, settings, shown))
    layout.computed(
        view,
        f"Every unit of a layer is compared with {len(grid.names)} hypotheses by {label}: "
        f"{PAIR_MEASURES[shown.measure].help}{PLACES.get(kind(view.test), '')}",
        "Confidence intervals (95 %) come from the jackknife over groups of records, because the symbols of one record "
        f"depend on one another. With {count(grid.tested)} tests some would seem significant by chance. Significant "
        f"are those that pass Benjamini and Yekutieli's procedure at {100 * shown.rate:g} %, which holds for any "
        "dependence of the tests. Hypotheses that hold, or fail, in fewer than 20 records are not tested. Mutual "
        "information is tested per bin, with Bonferroni's correction. A probe is tested by the correlation of its "
        "predictions with the truth on held-out records.",
        SOURCE,
    )


def draw_behind() -> None:
    """Show the tests behind the selected pair."""
    try:
        hypothesis_pair.draw_behind(measured, grid, layer, pair, hypothesis)
    except CancelledError:
        st.caption("Stopped before single records were ready.")


def draw_unit() -> None:
    """Show the selected unit and hypothesis: ranks, single records, clusters, and whether the one causes the other."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        hypothesis_pair.draw_choice(measured, grid, layer, pair)
        unit_links.draw_links(measured, layer, pair[1])
    hypothesis_pair.draw_ranks(measured, grid, layer, pair, label)
    try:
        hypothesis_pair.draw_records(measured, layer, pair[1], hypothesis)
    except CancelledError:
        st.caption("Stopped before single records were ready.")
    verification.draw_verification(measured, grid, layer, hypothesis)
    layout.computed(view, f"Single records: the first {inspections.SHOWN_RECORDS} tests, and the selected one.", SOURCE)


def draw_important() -> None:
    """Show whether important neurons correlate more strongly with hypotheses than others."""
    important_neurons.draw_importance(measured, grid, layer, label)
    draw_behind()
    layout.computed(view, "A unit's strongest score is its largest one, in size, over all hypotheses.", SOURCE)


def draw_epochs() -> None:
    """Show the scores over the epochs of training."""
    epochs.draw_epochs(measured, grid, shown.measure, layer, label, pair)
    layout.computed(view, "A score changes clearly where the 95 % intervals of both ends do not overlap.", SOURCE)


def draw_sql() -> None:
    """Keep this run, and query those that were kept."""
    sql_questions.draw_questions(measured)


tabs.draw(
    "hypotheses",
    {"map": draw_map, "unit": draw_unit, "important": draw_important, "epochs": draw_epochs, "sql": draw_sql},
)
