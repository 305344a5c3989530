"""The controls of a search: models, seeds, constraint with its parameters, guidance, weights and steps."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from idc_core.base.ranges import SEARCH
from idc_core.errors import IdcError
from studio.differential import search
from studio.differential.search import SearchResult, SearchSettings, offered, usual
from studio.differential.summary import uncovered_cell
from studio.jobs.results import View
from studio.state import address
from studio.state.choices import choose_one
from studio.text import cell_name, literal, lower
from studio.widgets import layout

_MODELS, _NOTHING = "against", "none"  # name of the control, also in the address; no guidance
_MOST_SEEDS = 500
_USUAL_SEEDS, _FEW_SEEDS = 50, 16
_LARGE = 5_000
"""Values of a picture from which a search opens with few seeds."""

_ASKED = "search-asked"
"""The setup and the settings of the long search that this session has started."""

_SLIDERS = [(control, asked) for control in SEARCH if control.key and (asked := control.parameter)]

_RARE = ("seeds", "count", "search-seed", "guide", "objective", *(control.key for control, _ in _SLIDERS))
"""Names of the controls that are folded away, in the address."""


def choose(view: View) -> SearchSettings:
    """Draw all controls and return what is chosen."""
    models = _choose_models(view)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        constraint, parameters = _choose_constraint()
        with layout.settings(*_RARE):
            settings = _choose_more(view, _choose_seeds(view, SearchSettings(models=models, constraint=constraint)))
    return replace(settings, parameters=(*parameters, *_choose_where(view, constraint)))


def open_or_offer(view: View, settings: SearchSettings, finding: DeltaGenerator) -> SearchResult:
    """Search, or offer to start a search that takes long; the page ends where nothing is found yet."""
    wanted = search.is_quick(view, settings) or st.session_state.get(_ASKED) == (view.setup, settings)
    try:
        found = search.run(view, settings, start=wanted)
    except IdcError as error:
        st.error(literal(error))
        st.stop()
    if found is not None:
        return found
    if wanted:
        finding.markdown("Stopped before any disagreement was found.")
    else:
        finding.markdown("**This search waits for a click:** many or large pictures take seconds to minutes.")
        st.button(
            "Start search",
            key="search-start",
            type="primary",
            on_click=lambda: st.session_state.update({_ASKED: (view.setup, settings)}),
            help="Many or large pictures take seconds to minutes. What was found is kept.",
        )
    st.stop()


def _choose_models(view: View) -> tuple[str, ...]:
    """Choose the models; the setup's network always is one of them."""
    labels, opened = offered(view), usual(view)
    names = address.read(_MODELS).split(",")
    st.session_state[_MODELS] = [name for name in labels if name in names] or opened
    usually = layout.names([literal(labels[name]) for name in labels if name in opened])
    chosen = st.pills(
        "Models",
        list(labels),
        selection_mode="multi",
        format_func=lambda name: literal(labels[name]),
        key=_MODELS,
        on_change=lambda: address.keep(_MODELS, ",".join(st.session_state[_MODELS]) or view.setup.model),
        help="Networks for the same task to compare, and a copy of this network with coarser weights, as on a small "
        "device. This network is always one of them; alone, it is searched for inputs in an uncovered cell. "
        f"Default {usually}.",
    )
    return tuple(name for name in labels if name == view.setup.model or name in chosen)


def _choose_seeds(view: View, settings: SearchSettings) -> SearchSettings:
    from idc_core.generation import SEEDS

    near = uncovered_cell(view)
    ways = [
        name for name, seeds in SEEDS.items() if (view.is_classifier or not seeds.classes) and (near or not seeds.cell)
    ]
    few = _FEW_SEEDS if view.test.inputs[0].size >= _LARGE else _USUAL_SEEDS
    most = max(2, min(_MOST_SEEDS, len(view.chosen)))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        how = choose_one(
            st.selectbox,
            "Seeds",
            {name: SEEDS[name].label for name in ways},
            ways[0],
            "seeds",
            width=260,
            help="Tests that the search starts from. "
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
            help="Seed of the random choices: tests, the model that is to lose the class, uncovered targets. From 0 to "
            "9999; default 0.",
        )
    cell = near if how == "cell" else None
    if cell is not None:
        st.caption(f"The seeds lie closest to cell {cell_name(cell)}. Select another on the Coverage page.")
    return replace(settings, how=how, count=count, seed=seed, cell=cell)


def _constraint_menu() -> dict[str, str]:
    """Return the constraints with their names for a person."""
    from idc_core.generation import CONSTRAINTS

    return {name: constraint.card.label for name, constraint in CONSTRAINTS.items()}


def _objective_menu() -> dict[str, str]:
    """Return the objectives with their names for a person."""
    from idc_core.generation import OBJECTIVES

    return {name: objective.label for name, objective in OBJECTIVES.items()}


def _choose_constraint() -> tuple[str, tuple[tuple[str, object], ...]]:
    from idc_core.generation import CONSTRAINTS

    labels = _constraint_menu()
    name = choose_one(
        st.selectbox,
        "Constraint",
        labels,
        "light",
        "constraint",
        width=260,
        help="Allowed changes of a picture. "
        + " ".join(f"{one.card.label}: {lower(one.card.help)}" for one in CONSTRAINTS.values())
        + " Default light.",
    )
    values = []
    for one in CONSTRAINTS[name].card.parameters:
        step = 1 if one.is_whole else round((one.high - one.low) / 20, 2) or 0.01
        ends = (one.low, one.high, step)
        values.append((one.name, layout.ask(st.number_input, one, f"{name}-{one.name}", ends, width=210)))
    return name, tuple(values)


def _choose_where(view: View, name: str) -> tuple[tuple[str, object], ...]:
    """Choose where a constraint lets pixels change."""
    from idc_core.generation import CONSTRAINTS

    height, width = view.test.inputs.shape[2:]
    values: list[tuple[str, object]] = []
    if "top" in CONSTRAINTS[name].card.defaults:
        values += _choose_place(height, width)
    if name == "only":
        values += _choose_pixels(height, width)
    return tuple(values)


def _choose_place(height: int, width: int) -> list[tuple[str, object]]:
    """Choose the position of the rectangle, or leave it to the gradient."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if not st.toggle(
            "Fixed position",
            key="place",
            bind="query-params",
            help="The same position for all pictures. Default off: where the gradient of the seed is largest.",
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


def _choose_pixels(height: int, width: int) -> list[tuple[str, object]]:
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
                        help=f"Only these pixels may change. From 0 to {most}; default all.",
                    )
                ),
            )
            for name, label, most in (("rows", "Rows that may change", height), ("columns", "Columns", width))
        ]


def _choose_more(view: View, settings: SearchSettings) -> SearchSettings:
    from idc_core.coverage import CRITERIA
    from idc_core.generation import OBJECTIVES, guides

    columns = st.columns(2, gap="medium")
    with columns[0]:
        guide = choose_one(
            st.selectbox,
            "Guidance",
            {**{name: CRITERIA[name].card.label for name in guides()}, _NOTHING: "nothing"},
            "nc",
            "guide",
            help="The criterion whose uncovered targets attract the pictures. Neuron coverage starts from zero, as in "
            "the paper. The others aim at targets that the tests leave uncovered, IDC at cells next to each seed's. "
            f"Default {CRITERIA['nc'].card.label}.",
        )
        labels = _objective_menu()
        objective = choose_one(
            st.selectbox,
            "Objective",
            labels,
            "margin",
            "objective",
            help="What each model adds to the search. "
            + " ".join(f"{one.label}: {lower(one.help)}" for one in OBJECTIVES.values())
            + f" Default {lower(labels['margin'])}.",
        )
    chosen = {}
    sliders = [one for one in _SLIDERS if one[0].name != "bound" or not view.is_classifier]
    for place, (one, asked) in enumerate(sliders, start=1):
        with columns[place % len(columns)]:
            chosen[one.name] = layout.ask(st.slider, asked, one.key, one.slider)
    return replace(settings, guide="" if guide == _NOTHING else guide, objective=objective, **chosen)
