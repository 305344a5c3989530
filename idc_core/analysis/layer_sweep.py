"""Importance-Driven Coverage of every layer for several numbers of important neurons and several test sets.

One pass over the training inputs and one over each test set serve all layers. A layer's neurons are clustered once,
for the largest number of neurons: the important neurons of a smaller number are the first ones of a larger.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.analysis.layers import Activity, observe, respond
from idc_core.clustering.kmeans import Clusters
from idc_core.coverage.cells import assign, encode, total
from idc_core.coverage.idc import IDC
from idc_core.datasets import Dataset
from idc_core.errors import SettingError
from idc_core.lrp.rules import RelevanceSettings
from idc_core.progress import Progress


@dataclass(frozen=True, eq=False)
class States:
    """The clusters of a layer's important neurons.

    Attributes
    ----------
    layer : str
    neurons : int
        How many neurons the layer has.
    important : ndarray, int64 (k,)
        The important neurons, most important first.
    clusters : tuple of k Clusters
        Their clusters.
    """

    layer: str
    neurons: int
    important: NDArray[np.int64]
    clusters: tuple[Clusters, ...]


@dataclass(frozen=True)
class Cell:
    """IDC of one layer, one number of neurons and one test set.

    Attributes
    ----------
    suite, layer : str
    m : int
        The number asked for.
    used : int
        The number taken: m, or all neurons of a layer that has fewer.
    covered, total : int
        Cells reached, and cells there are; Python ints, for `total` can pass 2**64.
    """

    suite: str
    layer: str
    m: int
    used: int
    covered: int
    total: int

    @property
    def score(self) -> float:
        """IDC, 0..1."""
        return self.covered / self.total


@dataclass(frozen=True, eq=False)
class Sweep:
    """IDC over layers, numbers of important neurons and test sets.

    Attributes
    ----------
    layers : tuple of str
        In forward order.
    ms : tuple of int
        Numbers of important neurons asked for, ascending.
    suites : tuple of str
        Names of the test sets.
    cells : tuple of Cell
        Suite by suite, layer by layer, m by m; fewer where the work was stopped.
    neurons : dict of str to ndarray, int64 (k,)
        The important neurons of each layer, most important first.
    accuracy, rmse : dict of str to float or None
        Of each test set.
    """

    layers: tuple[str, ...]
    ms: tuple[int, ...]
    suites: tuple[str, ...]
    cells: tuple[Cell, ...]
    neurons: dict[str, NDArray[np.int64]]
    accuracy: dict[str, float | None]
    rmse: dict[str, float | None]

    def cell(self, suite: str, layer: str, m: int) -> Cell | None:
        """Return the result of one combination, or None where the work was stopped before it."""
        wanted = (suite, layer, m)
        return next((cell for cell in self.cells if (cell.suite, cell.layer, cell.m) == wanted), None)

    def table(self) -> list[dict[str, Any]]:
        """Return one row a combination: tests, layer, m, used, covered, total, idc (0..1)."""
        return [
            {
                "tests": cell.suite,
                "layer": cell.layer,
                "m": cell.m,
                "used": cell.used,
                "covered": cell.covered,
                "total": cell.total,
                "idc": cell.score,
            }
            for cell in self.cells
        ]


def find_states(
    model: nn.Module,
    activity: Activity,
    *,
    clusters: Sequence[int] = (2, 3, 4),
    drop_zeros: bool = False,
    clustering: str = "k-means",
    on_progress: Progress | None = None,
) -> States:
    """Cluster the important neurons of a layer.

    Parameters
    ----------
    model : Module
    activity : Activity
        From `observe`.
    clusters, drop_zeros, clustering
        As in `IDC`.
    on_progress : Progress, optional

    Returns
    -------
    States

    Raises
    ------
    SettingError
        As `idc_core.coverage.idc.IDC`.
    """
    important = activity.important
    criterion = IDC(
        model, activity.layer, len(important), clusters=clusters, drop_zeros=drop_zeros, clustering=clustering
    )
    criterion.learn(activity.activations, activity.importance[important], on_progress=on_progress)
    return States(activity.layer, len(activity.importance), important, criterion.clusters)


def count_cells(states: States, suite: str, activations: NDArray[np.float32], ms: Sequence[int]) -> tuple[Cell, ...]:
    """Count the cells of a layer that tests reach, for several numbers of neurons.

    Parameters
    ----------
    states : States
        From `find_states`.
    suite : str
        Name of the test set.
    activations : ndarray, float32 (tests, k)
        Of the layer's important neurons, from `respond`.
    ms : sequence of int
        Numbers of neurons, at least 1; the ones beyond k take all k.

    Returns
    -------
    tuple of Cell
        One for each of `ms`.

    Raises
    ------
    SettingError
        As `idc_core.coverage.cells.assign`.
    """
    assignments = assign(
        activations, [one.centroids for one in states.clusters], [one.boundaries for one in states.clusters]
    )
    sizes = [one.k for one in states.clusters]
    found: dict[int, tuple[int, int]] = {}
    for used in {min(m, len(sizes)) for m in ms}:
        codes = encode(assignments[:, :used], sizes[:used])
        found[used] = (len(np.unique(codes)), total(sizes[:used]))
    return tuple(Cell(suite, states.layer, m, used, *found[used]) for m in ms for used in [min(m, len(sizes))])


def sweep(
    model: nn.Module,
    train: Dataset,
    tests: Mapping[str, Dataset],
    layers: Sequence[str],
    ms: Sequence[int] = (2, 4, 6, 8, 10, 12),
    settings: RelevanceSettings | None = None,
    *,
    priority: str = "sum",
    clusters: Sequence[int] = (2, 3, 4),
    drop_zeros: bool = False,
    clustering: str = "k-means",
    on_progress: Progress | None = None,
) -> Sweep:
    """Measure IDC for every layer, number of important neurons and test set.

    Parameters
    ----------
    model : Module
    train : Dataset
        What neurons and clusters are learnt from.
    tests : mapping of str to Dataset
        The test sets by name.
    layers : sequence of str
        Names from ``named_modules()``.
    ms : sequence of int
        Numbers of important neurons, at least 1; a layer with fewer neurons takes all of them.
    settings : RelevanceSettings, optional
        How relevance is propagated; default: the epsilon rule.
    priority, clusters, drop_zeros, clustering
        As in `IDC`.
    on_progress : Progress, optional

    Returns
    -------
    Sweep
        The same numbers as `analyze` gives for one combination after the other.

    Raises
    ------
    SettingError
        If there is no layer, no test set or no number of neurons, or one is below 1.
    IdcError
        As `IDC` and `idc_core.tracing.trace.trace`.

    References
    ----------
    .. [1] S. Gerasimou, H. F. Eniser, A. Sen, A. Cakan, "Importance-Driven Deep Learning System Testing",
       ICSE 2020, Table 5.
    """
    layers, ms = tuple(dict.fromkeys(layers)), check_ms(ms)
    if not layers or not tests:
        raise SettingError(f"A sweep needs at least one layer and one test set; got {len(layers)} and {len(tests)}.")
    activities = observe(model, train, layers, max(ms), settings, priority=priority, on_progress=on_progress)
    neurons = {layer: activity.important for layer, activity in activities.items()}
    states = [
        find_states(
            model, activity, clusters=clusters, drop_zeros=drop_zeros, clustering=clustering, on_progress=on_progress
        )
        for activity in activities.values()
    ]
    answered = {
        suite: respond(model, test, neurons, train.class_names, on_progress=on_progress)
        for suite, test in tests.items()
    }
    return Sweep(
        layers,
        ms,
        tuple(tests),
        tuple(
            cell
            for suite, responses in answered.items()
            for one in states
            for cell in count_cells(one, suite, responses.activations[one.layer], ms)
        ),
        neurons,
        {suite: responses.accuracy for suite, responses in answered.items()},
        {suite: responses.rmse for suite, responses in answered.items()},
    )


def check_ms(ms: Sequence[int]) -> tuple[int, ...]:
    """Return numbers of important neurons ascending, each once.

    Raises
    ------
    SettingError
        If there is none, or one is no whole number from 1.
    """
    wrong = [m for m in ms if isinstance(m, bool) or not isinstance(m, int | np.integer) or m < 1]
    if wrong or not len(ms):
        raise SettingError(f"Expected numbers of important neurons, each a whole number from 1; got {list(ms)!r}.")
    return tuple(sorted({int(m) for m in ms}))
