"""The share of the distinct faults that the tests are expected to find, by their mutation score."""

from __future__ import annotations

import streamlit as st

from idc_core.base.progress import Progress
from idc_core.errors import CancelledError, IdcError
from idc_core.worth.prediction import COUNTED, NETWORKS, SUITES, Relation
from idc_core.worth.published import kept_relation
from studio.jobs.jobs import JobKind, Waiting
from studio.jobs.results import View
from studio.text import count, literal, percent, plural
from studio.widgets import layout

_SCORES = JobKind("mutation-scores", is_long=True)
_ASKED = "faults-asked"

_WIDE = f"{100 * NETWORKS:.0f} %"
"""Of how many networks an interval is to hold."""


def draw(view: View) -> None:
    """Say which share of the distinct faults the chosen tests are expected to find, once a click asked for it."""
    if view.correct is None:
        return
    st.header("Faults that these tests find", anchor=False)
    relation = _relation(view.card.name)
    asked = (*view.key, view.chosen_key)
    if st.session_state.get(_ASKED) != asked:
        st.button(
            "Predict the share of faults found",
            key="predict-faults",
            on_click=_ask,
            args=(asked,),
            help=f"Mutants of the network are made, and the share that {plural(len(view.chosen), 'test')} kill is "
            "measured: takes from seconds to minutes. Can be stopped.",
        )
        return
    try:
        found = relation.predict(_mutation_score(view))
    except CancelledError:
        st.caption("Stopped before the faults were predicted.")
        return
    except IdcError as error:
        st.info(literal(error))
        return
    what = "Share of the distinct faults that a suite like this finds"
    share, low, high = (percent(value) for value in (found.share, found.low, found.high))
    st.markdown(layout.lead(layout.estimated(what, share, low, high, _WIDE)))
    st.caption(
        f"Of those that {count(COUNTED)} such inputs would show; told by the share of mutants that the tests kill, as "
        f"in {relation.networks} other networks. In {_WIDE} of further networks like these the interval holds for "
        f"{100 * SUITES:.0f} % of the suites. How well it held: docs/results/worth.md."
    )


def _ask(asked: tuple[str, ...]) -> None:
    st.session_state[_ASKED] = asked


@st.cache_data(show_spinner=False)
def _relation(network: str) -> Relation:
    """Return the kept relation of all networks but this one, learned once."""
    return kept_relation(network)


def _mutation_score(view: View) -> float:
    """Return the share of mutants that the chosen tests kill, measured once."""
    tests = view.test.only(view.chosen)

    def work(report: Progress) -> float:
        from idc_core.worth.fault_suites import mutation_score

        return mutation_score(view.model, view.train, tests, on_progress=report)

    return Waiting(1).get(_SCORES, (*view.key, view.chosen_key), "mutating the network", work)
