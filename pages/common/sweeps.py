"""IDC over layers, numbers of neurons and test sets: each step a job of its own, so that stopping loses none."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from idc_core.errors import CancelledError, IdcError
from idc_core.progress import Progress
from pages.common import work
from pages.common.bench import MOST_NEURONS
from pages.common.results import ENGINE, View, of_classes, open_data
from pages.common.work import Waiting, shelf

if TYPE_CHECKING:
    from idc_core.datasets import Dataset
    from idc_core.sweep import Activity, Cell, Responses, States, Sweep

SWEEPING = "sweeping"
"""Set in a session while a page waits for a sweep, so that Stop is known to mean the sweep."""

HALTED = "halted-sweep"
"""What was being swept when the person pressed Stop; it stays stopped until they go on."""

Get = Callable[[str, Hashable, str, Callable[[Progress], Any]], Any]


def take_stop() -> None:
    """Find out whether Stop was pressed during a sweep; to be asked before the bench is opened."""
    swept = st.session_state.pop(SWEEPING, None)
    if swept is not None and st.session_state.pop(work.STOPPED, False):
        st.session_state[HALTED] = swept


def go_on() -> None:
    """Take a stopped sweep up again; for callbacks."""
    st.session_state.pop(HALTED, None)


def open_suites(view: View, names: Sequence[str]) -> tuple[dict[str, Dataset], list[str]]:
    """Read test sets.

    Parameters
    ----------
    view : View
        The bench; its own tests are there already.
    names : sequence of str
        Names in the registry of data sets.

    Returns
    -------
    suites : dict of str to Dataset
        The ones with tests of the chosen classes.
    problems : list of str
        A sentence for each of the others.
    """
    suites, problems = {}, []
    waiting = Waiting(len(names))
    for name in names:
        try:
            test = view.test if name == view.bench.data else open_data(waiting, name, "test")
        except IdcError as error:
            problems.append(str(error))
            continue
        if len(of_classes(test, view.bench.classes)):
            suites[name] = test
        else:
            problems.append(f"{name} has no test of class {view.class_label}, so it is left out.")
    return suites, problems


def open_sweep(view: View, suites: dict[str, Dataset], ms: Sequence[int]) -> Sweep:
    """Sweep over all layers of a bench's network, or find again what was swept; show progress while it takes long.

    Parameters
    ----------
    view : View
        The bench: network, training inputs, how clusters are found, and which classes are looked at.
    suites : dict of str to Dataset
        The test sets.
    ms : sequence of int
        Numbers of important neurons, at most `MOST_NEURONS`.

    Returns
    -------
    Sweep
        With the layers that were finished, where the person pressed Stop.

    Raises
    ------
    IdcError
        If a layer cannot be swept.
    """
    from idc_core.sweep import Sweep

    what = (view.bench.model, tuple(suites))
    layers = view.model.layers
    halted = st.session_state.get(HALTED) == what
    if not halted:
        st.session_state[SWEEPING] = what
    get = _finished if halted else Waiting(1 + len(suites) + len(layers)).get
    cells: list[Cell] = []
    neurons, responses = {}, {}
    try:
        activities = _observe(get, view)
        neurons = {layer: activity.important for layer, activity in activities.items()}
        responses = {suite: _respond(get, view, test, neurons) for suite, test in suites.items()}
        for layer in layers:
            states = _find_states(get, view, activities[layer])
            for suite, test in suites.items():
                cells += _count(states, suite, responses[suite], of_classes(test, view.bench.classes), ms)
    except IdcError as error:
        st.session_state.pop(SWEEPING, None)
        if not (halted and isinstance(error, CancelledError)):
            raise
    st.session_state.pop(SWEEPING, None)
    return Sweep(
        layers,
        tuple(ms),
        tuple(suites),
        tuple(sorted(cells, key=lambda cell: list(suites).index(cell.suite))),
        neurons,
        {suite: found.accuracy for suite, found in responses.items()},
        {suite: found.rmse for suite, found in responses.items()},
    )


def _finished(kind: str, key: Hashable, doing: str, work: Callable[[Progress], Any]) -> Any:
    """Return a result that is there; take one that is not for stopped."""
    job = shelf().finished(kind, key)
    if job is None:
        raise CancelledError(f"Stopped before {doing}.")
    return job.result()


def _observe(get: Get, view: View) -> dict[str, Activity]:
    def work(report: Progress) -> dict[str, Activity]:
        from idc_core.sweep import observe

        return observe(view.model, view.train, view.model.layers, MOST_NEURONS, on_progress=report)

    key = (ENGINE, view.model.card.fingerprint, view.train.fingerprint)
    found: dict[str, Activity] = get("activities", key, "running training inputs through all layers", work)
    return found


def _respond(get: Get, view: View, test: Dataset, neurons: dict[str, Any]) -> Responses:
    def work(report: Progress) -> Responses:
        from idc_core.sweep import respond

        return respond(view.model, test, neurons, view.train.class_names, on_progress=report)

    key = (ENGINE, view.model.card.fingerprint, view.train.fingerprint, test.fingerprint)
    found: Responses = get("responses", key, f"running the tests of {test.name} through all layers", work)
    return found


def _find_states(get: Get, view: View, activity: Activity) -> States:
    settings = {name: view.analysis.settings[name] for name in ("clusters", "drop_zeros", "clustering")}

    def work(report: Progress) -> States:
        from idc_core.sweep import find_states

        return find_states(view.model, activity, on_progress=report, **settings)

    key = (ENGINE, view.model.card.fingerprint, view.train.fingerprint, activity.layer, *settings.values())
    found: States = get("states", key, f"clustering the neurons of layer {activity.layer}", work)
    return found


def _count(states: States, suite: str, responses: Responses, chosen: Any, ms: Sequence[int]) -> tuple[Cell, ...]:
    from idc_core.sweep import count_cells

    return count_cells(states, suite, responses.activations[states.layer][chosen], ms)
