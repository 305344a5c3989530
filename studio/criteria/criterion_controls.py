"""The controls of the Criteria page: which criteria, which suites, and the parameters on the criteria's cards."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from idc_core.base.parameters import Parameter
from idc_core.coverage import CRITERIA
from studio.criteria import compared_suites, criterion_scores
from studio.criteria.compared_suites import OtherSuite
from studio.criteria.criterion_scores import CriterionSettings
from studio.jobs import suite_catalog
from studio.jobs.results import View
from studio.state import address
from studio.widgets import layout

_CHOSEN, _OTHERS = "criteria", "suites"  # names of the controls, also in the address


def choose_criteria(view: View) -> list[str]:
    """Choose which criteria are measured; IDC always is."""
    names, usual = address.read(_CHOSEN).split(","), criterion_scores.usual(view)
    st.session_state[_CHOSEN] = [name for name in CRITERIA if name in names] or usual
    chosen = st.pills(
        "Criteria",
        list(_offered()),
        selection_mode="multi",
        format_func=lambda name: _offered()[name],
        key=_CHOSEN,
        on_change=lambda: _keep(usual),
        help=f"Criteria to measure; IDC always is. {_labels(criterion_scores.pairwise())} compare every test with many "
        "other inputs. Default: all; on large data sets all but these; without classes all but "
        f"{_labels(criterion_scores.of_classes())}. {_exceptions()}",
    )
    return [name for name in CRITERIA if name == "idc" or name in chosen]


def _exceptions() -> str:
    """Say which scores are no count that only grows."""
    cards = [kind.card for kind in CRITERIA.values()]
    falls, ordered = ([card.name for card in cards if getattr(card, of)] for of in ("can_fall", "order_matters"))
    return f"{_labels(falls)} can fall when tests are added; {_labels(ordered)} depends on the order of the tests."


def say_left_out(view: View, chosen: list[str]) -> None:
    """Say which criteria are not measured, and why."""
    misfits = criterion_scores.misfits(view)
    waiting = [name for name in criterion_scores.slow(view) if name not in (*chosen, *misfits)]
    if waiting:
        st.caption(
            f"Not measured: {_labels(waiting)}. {'They compare' if len(waiting) > 1 else 'It compares'} every test "
            "with many other inputs, which takes seconds. Select them in Settings."
        )
    if misfits:
        them = "They compare" if len(misfits) > 1 else "It compares"
        st.caption(f"Not measured: {_labels(misfits)}. {them} classes, and these tests have none.")


def _keep(usual: list[str]) -> None:
    """Keep the chosen criteria; the address holds none where they are the default ones."""
    chosen = [name for name in CRITERIA if name in st.session_state[_CHOSEN]]
    address.keep(_CHOSEN, "" if chosen == usual else ",".join(chosen))


def _offered() -> dict[str, str]:
    """Return the short labels of the criteria that can be chosen, by name."""
    return {name: name.upper() for name in CRITERIA}


def choose_others(view: View) -> list[OtherSuite]:
    """Choose other suites to compare with the tests and their parts."""
    suites = compared_suites.others(view)
    if not suites:
        return []
    st.session_state[_OTHERS] = [name for name in suite_catalog.chosen_names() if name in suites]
    chosen = st.multiselect(
        "Other suites",
        list(suites),
        format_func=lambda name: suites[name].label,
        key=_OTHERS,
        on_change=lambda: address.keep(_OTHERS, ",".join(st.session_state[_OTHERS])),
        placeholder="None",
        width=420,
        help="Tests plus perturbed or attacked tests, parts of the tests, other test sets, your own tests. Attacks can "
        "take minutes. Their settings are on the Test sets page. Default none.",
    )
    return [suites[name] for name in chosen]


def settings(*names: str) -> DeltaGenerator:
    """Return the place of the controls that are folded away: criteria, their parameters, and those of `names`."""
    return layout.settings(_CHOSEN, *(_parameter_key(*shared) for shared in _shared_parameters()), *names)


def choose_parameters() -> dict[str, CriterionSettings]:
    """Choose the parameters of the criteria; return those of each."""
    chosen: dict[str, CriterionSettings] = {name: {} for name in CRITERIA}
    st.caption("Parameters; the defaults are those of the papers. IDC uses m and the clusters of the setup.")
    columns = st.columns(2, gap="medium")
    for index, (names, parameter) in enumerate(_shared_parameters()):
        with columns[index % len(columns)]:
            label = f"{', '.join(map(str.upper, names))}: {parameter.label}"
            value = layout.ask(st.number_input, parameter, _parameter_key(names, parameter), label=label)
        for name in names:
            chosen[name][parameter.name] = value
    return chosen


def _shared_parameters() -> list[tuple[tuple[str, ...], Parameter]]:
    """Return the parameters on the criteria's cards, each with the criteria that share it."""
    shared: dict[Parameter, tuple[str, ...]] = {}
    for name, kind in CRITERIA.items():
        for parameter in kind.card.parameters:
            shared[parameter] = (*shared.pop(parameter, ()), name)  # behind the last criterion that has it
    return [(names, parameter) for parameter, names in shared.items()]


def _parameter_key(names: tuple[str, ...], parameter: Parameter) -> str:
    """Return the name of a parameter's control, also in the address."""
    return f"{'-'.join(names)}-{parameter.name}"


def _labels(names: list[str]) -> str:
    return layout.names([name.upper() for name in names])
