"""The controls of the Criteria page: which criteria, which suites, and the parameters on the criteria's cards."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from idc_core.base.parameters import Parameter
from idc_core.coverage import CRITERIA
from idc_core.coverage.agreement import MANY_PAIRS
from studio.criteria import compared_suites, criterion_scores
from studio.criteria.criterion_scores import CriterionSettings, MeasuredCriteria
from studio.jobs import suite_catalog
from studio.jobs.results import View
from studio.state import address
from studio.widgets import layout

_CHOSEN, _OTHERS = "criteria", "suites"  # names of the controls, also in the address


def choose(view: View, *shown: str) -> tuple[DeltaGenerator, list[str], dict[str, CriterionSettings]]:
    """Choose criteria and their parameters, folded away; say which are not measured.

    Returns a place for more controls, which are named by `shown`, then the criteria, and the parameters of each.
    """
    with layout.settings(_CHOSEN, *(_parameter_key(*shared) for shared in _shared_parameters()), *shown):
        place = st.container()
        names = _choose_criteria(view)
        settings = _choose_parameters()
    _say_left_out(view, names)
    return place, names, settings


def with_others(view: View, measured: MeasuredCriteria) -> MeasuredCriteria:
    """Choose other suites to compare with the tests and their parts, and add them to the scores."""
    suites = compared_suites.others(view)
    chosen: list[str] = []
    if suites:
        st.session_state[_OTHERS] = [name for name in suite_catalog.chosen_names() if name in suites]
        chosen = st.multiselect(
            "Other suites",
            list(suites),
            format_func=lambda name: suites[name].label,
            key=_OTHERS,
            on_change=lambda: address.keep(_OTHERS, ",".join(st.session_state[_OTHERS])),
            placeholder="None",
            width=420,
            help="Tests plus perturbed or attacked tests, parts of the tests, other test sets, your own tests. Attacks "
            "can take minutes. Their settings are on the Test sets page. Default none.",
        )
    scores = criterion_scores.with_suites(view, measured, [suites[name] for name in chosen])
    for problem in scores.problems:
        st.warning(problem)
    return scores


def _choose_criteria(view: View) -> list[str]:
    """Choose which criteria are measured; IDC always is."""
    names, usual = address.read(_CHOSEN).split(","), _usual(view)
    st.session_state[_CHOSEN] = [name for name in CRITERIA if name in names] or usual
    chosen = st.pills(
        "Criteria",
        list(_offered()),
        selection_mode="multi",
        format_func=lambda name: _offered()[name],
        key=_CHOSEN,
        on_change=lambda: _keep(usual),
        help=f"Criteria to measure; IDC always is. {_labels(_pairwise())} compare every test with many "
        "other inputs. Default: all; on large data sets all but these; without classes all but "
        f"{_labels(_of_classes())}. {_exceptions()}",
    )
    return [name for name in CRITERIA if name == "idc" or name in chosen]


def _exceptions() -> str:
    """Say which scores are no count that only grows."""
    cards = [kind.card for kind in CRITERIA.values()]
    falls, ordered = ([card.name for card in cards if getattr(card, of)] for of in ("can_fall", "order_matters"))
    return f"{_labels(falls)} can fall when tests are added; {_labels(ordered)} depends on the order of the tests."


def _say_left_out(view: View, chosen: list[str]) -> None:
    """Say which criteria are not measured, and why."""
    misfits = _misfits(view)
    waiting = [name for name in _slow(view) if name not in (*chosen, *misfits)]
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


def _choose_parameters() -> dict[str, CriterionSettings]:
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


def _pairwise() -> list[str]:
    """Return the criteria that compare every test with many other inputs."""
    return [name for name, kind in CRITERIA.items() if kind.card.pairwise]


def _of_classes() -> list[str]:
    """Return the criteria that compare classes."""
    return [name for name, kind in CRITERIA.items() if kind.card.needs_classes]


def _slow(view: View) -> list[str]:
    """Return the criteria that take seconds on this setup."""
    return _pairwise() if len(view.train) * len(view.chosen) > MANY_PAIRS else []


def _misfits(view: View) -> list[str]:
    """Return the criteria that are not defined on this setup."""
    return [] if view.is_classifier else _of_classes()


def _usual(view: View) -> list[str]:
    """Return the criteria that are measured by default."""
    return [name for name in CRITERIA if name not in (*_slow(view), *_misfits(view))]
