"""IDC over layers, numbers of neurons and test sets: each step a job of its own, so that stopping loses none."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from idc_core.errors import CancelledError, IdcError
from idc_core.progress import Progress
from studio.engine.jobs import Waiting
from studio.engine.results import View, of_classes, open_data
from studio.shell.bench import MOST_NEURONS

if TYPE_CHECKING:
    from idc_core.analysis.layer_sweep import Cell, States, Sweep
    from idc_core.analysis.layers import Activity, Responses
    from idc_core.datasets import Dataset


def open_suites(view: View, names: Sequence[str]) -> tuple[dict[str, Dataset], list[str]]:
    """Read test sets by name; return those with tests of the chosen classes, and a sentence for each of the others."""
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

    Raises
    ------
    IdcError
        If a layer cannot be swept.
    """
    from idc_core.analysis.layer_sweep import Sweep

    layers = view.model.layers
    waiting = Waiting(1 + len(suites) + len(layers))
    cells: list[Cell] = []
    neurons, responses = {}, {}
    try:
        activities = _observe(waiting, view)
        neurons = {layer: activity.important for layer, activity in activities.items()}
        clustering = {layer: _clustering(view, activity) for layer, activity in activities.items()}
        for key, work in clustering.values():
            waiting.begin("states", key, work)  # goes on beside the network's passes over the tests
        responses = {suite: _respond(waiting, view, test, neurons) for suite, test in suites.items()}
        for layer, (key, work) in clustering.items():
            states: States = waiting.get("states", key, f"clustering the neurons of layer {layer}", work, kept=96)
            for suite, test in suites.items():
                cells += _count(states, suite, responses[suite], of_classes(test, view.bench.classes), ms)
    except CancelledError:
        pass  # the layers that were finished are shown
    return Sweep(
        layers,
        tuple(ms),
        tuple(suites),
        tuple(sorted(cells, key=lambda cell: list(suites).index(cell.suite))),
        neurons,
        {suite: found.accuracy for suite, found in responses.items()},
        {suite: found.rmse for suite, found in responses.items()},
    )


def _observe(waiting: Waiting, view: View) -> dict[str, Activity]:
    def work(report: Progress) -> dict[str, Activity]:
        from idc_core.analysis.layers import observe

        return observe(view.model, view.train, view.model.layers, MOST_NEURONS, on_progress=report)

    key = view.learnt_key
    found: dict[str, Activity] = waiting.get(
        "activities", key, "running training inputs through all layers", work, kept=2
    )
    return found


def _respond(waiting: Waiting, view: View, test: Dataset, neurons: dict[str, Any]) -> Responses:
    def work(report: Progress) -> Responses:
        from idc_core.analysis.layers import respond

        return respond(view.model, test, neurons, view.train.class_names, on_progress=report)

    key = (*view.learnt_key, test.fingerprint)
    found: Responses = waiting.get(
        "responses", key, f"running the tests of {test.name} through all layers", work, kept=8
    )
    return found


def _clustering(view: View, activity: Activity) -> tuple[Hashable, Callable[[Progress], States]]:
    """Return what a layer's clusters depend on, and the work that finds them."""
    settings = {name: view.analysis.settings[name] for name in ("clusters", "drop_zeros", "clustering")}

    def work(report: Progress) -> States:
        from idc_core.analysis.layer_sweep import find_states

        return find_states(view.model, activity, on_progress=report, **settings)

    return (*view.learnt_key, activity.layer, *settings.values()), work


def _count(states: States, suite: str, responses: Responses, chosen: Any, ms: Sequence[int]) -> tuple[Cell, ...]:
    from idc_core.analysis.layer_sweep import count_cells

    return count_cells(states, suite, responses.activations[states.layer][chosen], ms)
