"""IDC over layers, numbers of neurons and test sets: each step a job of its own, so that stopping loses none."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idc_core.analysis.filtering import of_classes
from idc_core.base.progress import Progress
from idc_core.errors import CancelledError, IdcError
from studio.jobs.jobs import JobKind, Waiting, shelf
from studio.jobs.results import View, idc_settings, open_data
from studio.jobs.wording import tests_name
from studio.state.setup import MOST_NEURONS
from studio.text import literal

if TYPE_CHECKING:
    from idc_core.analysis.layer_sweep import LayerClusters, LayerCoverage, LayerResponses, Sweep
    from idc_core.datasets import Dataset
    from idc_core.importance.training_pass import RankedLayer

_ACTIVITIES = JobKind("activities", kept=2)
_STATES = JobKind("states", kept=96, is_light=True)


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
        if len(counted(view, test)):
            suites[name] = test
        else:
            problems.append(
                f"{literal(tests_name(test))} has no test of class {literal(view.class_label)}, so it is left out."
            )
    return suites, problems


def counted(view: View, test: Dataset) -> NDArray[np.int64]:
    """Return which tests are counted: those that pass the filter; of other test sets those of its true classes."""
    return view.chosen if test is view.test else of_classes(test.targets, test.class_names, view.setup.classes)


def open_sweep(
    view: View, suites: dict[str, Dataset], ms: Sequence[int], partly: Callable[[Sweep], None] | None = None
) -> Sweep:
    """Sweep over all layers of a setup's network, or find again what was swept; show progress while it takes long.

    `partly` is called while a layer takes long, with what is there so far: once per finished layer, and before any of
    them with the setup's own layer, which is known.
    """
    from idc_core.analysis.layer_sweep import Sweep

    layers = view.card.layers
    waiting = Waiting(1 + len(suites) + len(layers))
    cells: list[LayerCoverage] = []
    neurons: dict[str, NDArray[np.int64]] = {}
    responses: dict[str, LayerResponses] = {}

    def sweep() -> Sweep:
        return Sweep(
            layers,
            tuple(ms),
            tuple(suites),
            tuple(sorted(cells, key=lambda cell: list(suites).index(cell.suite))),
            neurons,
            {suite: response.accuracy for suite, response in responses.items()},
            {suite: response.rmse for suite, response in responses.items()},
        )

    shown = [0]

    def watch() -> None:
        if partly is not None and len(cells) > shown[0]:
            shown[0] = len(cells)
            partly(sweep())

    if partly is not None and shelf().finished(_ACTIVITIES, view.learnt_key) is None:
        partly(Sweep(layers, tuple(ms), tuple(suites), _own_layer(view, suites, ms), {}, {}, {}))
    try:
        activities = _rank(waiting, view)
        neurons = {layer: activity.important for layer, activity in activities.items()}
        clustering = {layer: _clustering(view, activity) for layer, activity in activities.items()}
        for key, work in clustering.values():
            waiting.begin(_STATES, key, work)  # goes on beside the network's passes over the tests
        for suite, test in suites.items():
            responses[suite] = _run_tests(waiting, view, test, neurons)
        for layer, (key, work) in clustering.items():
            states: LayerClusters
            doing = f"clustering the neurons of layer {layer}"
            states = waiting.get(_STATES, key, doing, work, watch)
            for suite, test in suites.items():
                cells += _count(states, suite, responses[suite], counted(view, test), ms)
    except CancelledError:
        pass  # the layers that were finished are shown
    return sweep()


def _own_layer(view: View, suites: dict[str, Dataset], ms: Sequence[int]) -> tuple[LayerCoverage, ...]:
    """Count the cells of the setup's layer, up to the setup's m, from what all pages show of it."""
    from idc_core.analysis.layer_sweep import count_assigned

    known = [m for m in ms if m <= view.setup.m]
    suite, layer = view.setup.data, view.setup.layer
    return count_assigned(layer, suite, view.analysis.assignments[view.chosen], view.sizes, known) * (suite in suites)


def _rank(waiting: Waiting, view: View) -> dict[str, RankedLayer]:
    def work(report: Progress) -> dict[str, RankedLayer]:
        from idc_core.importance.training_pass import rank_layers

        return rank_layers(view.model, view.train, view.card.layers, MOST_NEURONS, on_progress=report)

    key = view.learnt_key
    return waiting.get(_ACTIVITIES, key, "running training inputs through all layers", work)


def _run_tests(waiting: Waiting, view: View, test: Dataset, neurons: dict[str, NDArray[np.int64]]) -> LayerResponses:
    def work(report: Progress) -> LayerResponses:
        from idc_core.analysis.layer_sweep import run_tests

        return run_tests(view.model, test, neurons, view.train.class_names, on_progress=report)

    key = (*view.learnt_key, test.fingerprint)
    return waiting.get(
        JobKind("responses", kept=8), key, f"running the tests of {tests_name(test)} through all layers", work
    )


def _clustering(view: View, ranked: RankedLayer) -> tuple[Hashable, Callable[[Progress], LayerClusters]]:
    """Return what a layer's clusters depend on, and the work that finds them."""
    settings = idc_settings(view.setup)

    def work(report: Progress) -> LayerClusters:
        from idc_core.analysis.layer_sweep import cluster_layer

        return cluster_layer(view.model, ranked, settings, on_progress=report)

    return (*view.learnt_key, ranked.layer, *settings.options.values()), work


def _count(
    states: LayerClusters, suite: str, responses: LayerResponses, chosen: NDArray[np.int64], ms: Sequence[int]
) -> tuple[LayerCoverage, ...]:
    from idc_core.analysis.layer_sweep import count_cells

    return count_cells(states, suite, responses.activations[states.layer][chosen], ms)
