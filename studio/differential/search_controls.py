"""The controls of a search: models, seeds, constraint with its parameters, guidance, weights and steps."""

from __future__ import annotations

from typing import Any

import streamlit as st

from studio.differential.search import SearchSettings, offered, usual
from studio.engine.results import View
from studio.shell import address
from studio.shell.selection import selected
from studio.widgets import layout
from studio.widgets.text import cell_name, lower, parse_cell

MODELS, NOTHING = "against", "none"  # name of the control, also in the address; no guidance
MOST_SEEDS = 500
USUAL_SEEDS, FEW_SEEDS = 50, 16
LARGE = 5_000
"""Values of a picture from which a search opens with few seeds."""


def choose(view: View) -> SearchSettings:
    """Draw all controls and return what is chosen."""
    models = choose_models(view)
    how, count, seed, cell = _choose_seeds(view)
    constraint, parameters = _choose_constraint(view)
    with st.expander("Guidance, weights and steps"):
        more = _choose_more(view)
    return SearchSettings(models, how, count, seed, cell, constraint, parameters, **more)


def choose_models(view: View) -> tuple[str, ...]:
    """Choose the models; the bench's network always is one of them."""
    labels, opened = offered(view), usual(view)
    said = address.read(MODELS).split(",")
    st.session_state[MODELS] = [name for name in labels if name in said] or opened
    told = layout.names([labels[name] for name in labels if name in opened])
    chosen = st.pills(
        "Models",
        list(labels),
        selection_mode="multi",
        format_func=labels.get,
        key=MODELS,
        on_change=lambda: address.keep(MODELS, ",".join(st.session_state[MODELS]) or view.bench.model),
        help="Whose answers are compared: networks for this task, and a copy of the bench's network with coarser "
        "weights, as on a small device. The bench's network always is one of them; alone, it is searched for inputs "
        f"in a cell that no test reaches. Default {told}.",
    )
    return tuple(name for name in labels if name == view.bench.model or name in chosen)


def _choose_seeds(view: View) -> tuple[str, int, int, tuple[int, ...] | None]:
    from idc_core.generation import SEEDS
    from idc_core.generation.seeds import uncovered_beside

    near = None
    wanted = parse_cell(selected().cell, view.sizes)
    covered = {tuple(cell) for cell in view.table.cells.tolist()}
    near = wanted if wanted is not None and wanted not in covered else uncovered_beside(view.table)
    ways = [name for name, one in SEEDS.items() if (view.is_classifier or not one.classes) and (near or not one.cell)]
    few = FEW_SEEDS if view.test.inputs[0].size >= LARGE else USUAL_SEEDS
    most = max(2, min(MOST_SEEDS, len(view.chosen)))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        how = st.selectbox(
            "Seeds",
            ways,
            format_func=lambda name: SEEDS[name].label,
            key="seeds",
            bind="query-params",
            width=260,
            help="The tests that the search starts from. "
            + " ".join(f"{SEEDS[name].label}: {lower(SEEDS[name].help)}" for name in ways)
            + " Default at random.",
        )
        count = st.number_input(
            "How many",
            1,
            most,
            min(few, most),
            10,
            key="count",
            bind="query-params",
            width=150,
            help=f"Seeds to search from, all at once. From 1 to {most}; default {min(few, most)}.",
        )
        seed = st.number_input(
            "Seed number",
            0,
            9999,
            0,
            1,
            key="search-seed",
            bind="query-params",
            width=150,
            help="Of everything that is random: which tests, which model is to lose the class, which uncovered neuron "
            "is aimed at. From 0 to 9999; default 0.",
        )
    if how != "cell" or near is None:
        return how, count, seed, None
    whose = "the selected cell" if near == wanted else "an uncovered cell beside the fullest one"
    st.caption(f"The seeds lie closest to {cell_name(near)}, {whose}. Select another on the Coverage page.")
    return how, count, seed, near


def constraint_menu() -> dict[str, str]:
    """Return the constraints with their names for a person."""
    from idc_core.generation import CONSTRAINTS

    return {name: one.card.label for name, one in CONSTRAINTS.items()}


def objective_menu() -> dict[str, str]:
    """Return the objectives with their names for a person."""
    from idc_core.generation import OBJECTIVES

    return {name: one.label for name, one in OBJECTIVES.items()}


def _choose_constraint(view: View) -> tuple[str, tuple[tuple[str, Any], ...]]:
    from idc_core.generation import CONSTRAINTS

    labels = constraint_menu()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox(
            "Constraint",
            list(labels),
            list(labels).index("light"),
            key="constraint",
            format_func=labels.get,
            bind="query-params",
            width=260,
            help="How a picture may be changed. "
            + " ".join(f"{one.card.label}: {lower(one.card.help)}" for one in CONSTRAINTS.values())
            + " Default light.",
        )
        values: list[tuple[str, Any]] = []
        for one in CONSTRAINTS[name].card.parameters:
            step = 1 if isinstance(one.default, int) else round((one.high - one.low) / 20, 2) or 0.01
            ends = f"From {one.low:g} to {one.high:g}; default {one.default:g}."
            values.append(
                (
                    one.name,
                    st.number_input(
                        one.label,
                        one.low,
                        one.high,
                        one.default,
                        step,
                        key=f"{name}-{one.name}",
                        bind="query-params",
                        width=210,
                        help=f"{one.help} {ends}",
                    ),
                )
            )
    height, width = view.test.inputs.shape[2:]
    if "top" in CONSTRAINTS[name].card.defaults:
        values += _choose_place(height, width)
    if name == "only":
        values += _choose_pixels(height, width)
    return name, tuple(values)


def _choose_place(height: int, width: int) -> list[tuple[str, Any]]:
    """Choose where the rectangle lies, or let the gradient."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if not st.toggle(
            "Choose its place",
            key="place",
            bind="query-params",
            help="Put the rectangle in one place for all pictures; off by default: then it lies where the gradient of "
            "the seed is largest.",
        ):
            return []
        return [
            (
                name,
                st.number_input(
                    label,
                    0,
                    most - 1,
                    0,
                    1,
                    key=f"place-{name}",
                    bind="query-params",
                    width=210,
                    help=f"In pixels from the picture's edge. From 0 to {most - 1}; default 0.",
                ),
            )
            for name, label, most in (("top", "From the top", height), ("left", "From the left", width))
        ]


def _choose_pixels(height: int, width: int) -> list[tuple[str, Any]]:
    """Choose the rows and columns of the pixels that may change."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        return [
            (
                name,
                tuple(
                    st.slider(
                        label,
                        0,
                        most,
                        (0, most),
                        1,
                        key=f"only-{name}",
                        width=320,
                        help=f"Pixels outside stay as they are. From 0 to {most}; default all.",
                    )
                ),
            )
            for name, label, most in (("rows", "Rows that may change", height), ("columns", "Columns", width))
        ]


def _choose_more(view: View) -> dict[str, Any]:
    from idc_core.coverage import CRITERIA
    from idc_core.generation import GUIDES, OBJECTIVES

    found: dict[str, Any] = {}
    columns = st.columns(3, gap="medium")
    with columns[0]:
        guide = st.selectbox(
            "Aim at what is uncovered",
            [*GUIDES, NOTHING],
            GUIDES.index("nc"),
            key="guide",
            bind="query-params",
            format_func=lambda name: "nothing" if name == NOTHING else CRITERIA[name].card.label,
            help="The criterion whose uncovered targets pictures are pulled to, besides the disagreement. Neuron "
            "coverage counts from nothing, as in the paper; the others aim at what these tests leave uncovered, IDC at "
            f"uncovered cells beside each seed's own. Default {CRITERIA['nc'].card.label}.",
        )
        labels = objective_menu()
        objective = st.selectbox(
            "Objective",
            list(labels),
            list(labels).index("margin"),
            key="objective",
            bind="query-params",
            format_func=labels.get,
            help="What each model adds to the search. "
            + " ".join(f"{one.label}: {lower(one.help)}" for one in OBJECTIVES.values())
            + f" Default {lower(labels['margin'])}.",
        )
    found |= {"guide": "" if guide == NOTHING else guide, "objective": objective}
    numbers: tuple[tuple[str, str, str, float, float, float, float], ...] = (
        (
            "weight_difference",
            "Weight of the difference, lambda 1",
            "How strongly the chosen model is driven away from the class, beside the others that are to keep it.",
            0.0,
            5.0,
            1.0,
            0.1,
        ),
        (
            "weight_coverage",
            "Weight of the guidance, lambda 2",
            "How strongly pictures are pulled to what is uncovered.",
            0.0,
            5.0,
            0.1,
            0.1,
        ),
        ("step", "Step in grey levels", "How far a picture changes in one step, of 255.", 1.0, 100.0, 10.0, 1.0),
        ("iterations", "Steps at most", "After so many, a seed is given up.", 1, 200, 50, 1),
        ("threshold", "Threshold of neuron coverage", "An activation above it counts as covered.", 0.0, 5.0, 0.0, 0.05),
    )
    if not view.is_classifier:
        numbers += (
            (
                "bound",
                "Answers differ by more than",
                "The angle in radians from which two answers are a difference.",
                0.01,
                1.0,
                0.2,
                0.01,
            ),
        )
    for place, (name, label, text, low, high, usually, step) in enumerate(numbers, start=1):
        with columns[place % len(columns)]:
            kind = type(usually)
            found[name] = st.slider(
                label,
                kind(low),
                kind(high),
                usually,
                kind(step),
                key=f"search-{name}",
                bind="query-params",
                help=f"{text} From {low:g} to {high:g}; default {usually:g}.",
            )
    return found
