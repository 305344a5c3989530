"""IDC over layers, numbers of neurons and test sets: each step a job of its own, so that stopping loses none."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from idc_core.errors import CancelledError, IdcError
from idc_core.progress import Progress
from studio.engine.jobs import Waiting
from studio.engine.results import View, of_classes, open_data
from studio.state.setup import MOST_NEURONS
from studio.text import literal

if TYPE_CHECKING:
    from idc_core.analysis.layer_sweep import LayerClusters, LayerCoverage, LayerResponses, Sweep
    from idc_core.datasets import Dataset
    from idc_core.importance.training_pass import RankedLayer


def open_suites(view: View, names: Sequence[str]) -> tuple[dict[str, Dataset], list[str]]:
    """Read test sets by name; return those with tests of the chosen classes, and a sentence for each of the others."""
    suites, problems = {}, []
    waiting = Waiting(len(names))
    for name in names:
        try:
            test = view.test if name == view.setup.data else open_data(waiting, name, "test")
        except IdcError as error:
            problems.append(literal(error))
            continue
        if len(of_classes(test, view.setup.classes)):
            suites[name] = test
        else:
            problems.append(f"{name} has no test of class {view.class_label}, so it is left out.")
    return suites, problems


def open_sweep(view: View, suites: dict[str, Dataset], ms: Sequence[int]) -> Sweep:
    """Sweep over all layers of a setup's network, or find again what was swept; show progress while it takes long."""
    from idc_core.analysis.layer_sweep import Sweep

    layers = view.model.card.layers
    waiting = Waiting(1 + len(suites) + len(layers))
    cells: list[LayerCoverage] = []
    neurons, responses = {}, {}
    try:
        activities = _rank(waiting, view)
        neurons = {layer: activity.important for layer, activity in activities.items()}
        clustering = {layer: _clustering(view, activity) for layer, activity in activities.items()}
        for key, work in clustering.values():
            waiting.begin("states", key, work)  # goes on beside the network's passes over the tests
        responses = {suite: _run_tests(waiting, view, test, neurons) for suite, test in suites.items()}
        for layer, (key, work) in clustering.items():
            states: LayerClusters
            states = waiting.get("states", key, f"clustering the neurons of layer {layer}", work, kept=96)
            for suite, test in suites.items():
                cells += _count(states, suite, responses[suite], of_classes(test, view.setup.classes), ms)
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


def _rank(waiting: Waiting, view: View) -> dict[str, RankedLayer]:
    def work(report: Progress) -> dict[str, RankedLayer]:
        from idc_core.importance.training_pass import rank_layers

        return rank_layers(view.model, view.train, view.model.card.layers, MOST_NEURONS, on_progress=report)

    key = view.learnt_key
    found: dict[str, RankedLayer] = waiting.get(
        "activities", key, "running training inputs through all layers", work, kept=2
    )
    return found


def _run_tests(waiting: Waiting, view: View, test: Dataset, neurons: dict[str, Any]) -> LayerResponses:
    def work(report: Progress) -> LayerResponses:
        from idc_core.analysis.layer_sweep import run_tests

        return run_tests(view.model, test, neurons, view.train.class_names, on_progress=report)

    key = (*view.learnt_key, test.fingerprint)
    found: LayerResponses = waiting.get(
        "responses", key, f"running the tests of {test.name} through all layers", work, kept=8
    )
    return found


def _clustering(view: View, ranked: RankedLayer) -> tuple[Hashable, Callable[[Progress], LayerClusters]]:
    """Return what a layer's clusters depend on, and the work that finds them."""
    settings = {name: view.analysis.settings[name] for name in ("clusters", "drop_zeros", "clustering")}

    def work(report: Progress) -> LayerClusters:
        from idc_core.analysis.layer_sweep import cluster_layer

        return cluster_layer(view.model, ranked, on_progress=report, **settings)

    return (*view.learnt_key, ranked.layer, *settings.values()), work


def _count(
    states: LayerClusters, suite: str, responses: LayerResponses, chosen: Any, ms: Sequence[int]
) -> tuple[LayerCoverage, ...]:
    from idc_core.analysis.layer_sweep import count_cells

    return count_cells(states, suite, responses.activations[states.layer][chosen], ms)
