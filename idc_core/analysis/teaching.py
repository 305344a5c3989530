"""The method on a network of ten neurons and a handful of pictures, to be shown to a class.

The network reads how much ink a picture has at its top, in its middle and at its foot, and tells ones from
sevens. Everything is small enough to be written out; it needs neither torch nor data, and tests hold it to what
the engine computes for the same network.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from idc_core.clustering.kmeans import Clusters, cluster
from idc_core.coverage.cells import assign
from idc_core.errors import SettingError

Floats = NDArray[np.float64]
Weights = tuple[Floats, ...]

LAYERS: Final = ("inputs", "first layer", "second layer", "scores")
NAMES: Final = (("top", "middle", "foot"), ("a1", "a2", "a3"), ("b1", "b2"), ("one", "seven"))
"""The ten neurons, layer by layer."""

EPSILON: Final = 1e-6
"""Stabiliser of the epsilon rule, the engine's default."""

MOST_WEIGHT: Final = 2.0
"""Weights lie in -2..2, inputs in 0..1."""

START: Final[Weights] = (
    np.array([[1.0, 0.3, -1.0], [0.2, 0.9, 0.2], [-0.3, 0.3, 1.0]]),
    np.array([[1.0, -0.1], [0.1, 0.2], [-0.5, 1.0]]),
    np.array([[-0.5, 1.2], [1.1, -0.4]]),
)
"""Weights from each layer (rows) to the next (columns); the network has no biases."""

START_INPUTS: Final[Floats] = np.array([0.9, 0.5, 0.4])

PICTURES: Final[Floats] = np.array(
    [
        [0.35, 0.35, 0.35],
        [0.60, 0.55, 0.20],
        [0.45, 0.50, 0.35],
        [0.45, 0.50, 0.15],
        [0.45, 0.40, 0.05],
        [1.00, 0.50, 0.35],
        [0.95, 0.50, 0.20],
        [1.00, 0.60, 0.20],
        [0.10, 0.20, 0.85],
        [0.00, 0.35, 0.95],
        [0.15, 0.50, 0.80],
        [0.10, 0.55, 0.80],
        [0.05, 0.30, 0.85],
        [0.10, 0.55, 1.00],
    ]
)
"""Ink at top, middle and foot of eight sevens and six ones from which importance and states are learnt."""

TESTS: Final[Floats] = np.array([[0.95, 0.40, 0.05], [0.05, 0.40, 0.90], [0.50, 0.40, 0.20], [0.80, 0.45, 0.10]])
"""Four tests: a clear seven, a one, a faint seven, another clear seven."""

WATCHED: Final = (0, 2)
"""Positions in the first layer of the two most important neurons, whose states make the cells."""

for _array in (*START, START_INPUTS, PICTURES, TESTS):
    _array.setflags(write=False)


@dataclass(frozen=True, eq=False)
class Explanation:
    """What happens in the network for some inputs, forwards and backwards."""

    values: tuple[Floats, ...]  # (n, units), what each layer passes on, inputs first; the last are the scores
    target: NDArray[np.int64]  # (n,), the answer whose score is explained
    relevance: tuple[Floats, ...]
    """(n, units), relevance of each layer's neurons, in the unit of a score; every layer sums to the explained
    score."""
    flows: tuple[Floats, ...]
    """(n, units, units of the next layer), what each line hands back: relevance of a neuron that comes from one neuron
    of the next layer."""


def explain(weights: Sequence[Floats], inputs: ArrayLike, target: int | None = None) -> Explanation:
    """Run inputs (n, units) forwards through weights as `START`, then hand the score of an answer back layer by layer.

    Equation 1 of Gerasimou et al., "Importance-Driven Deep Learning System Testing", ICSE 2020: of the relevance R_j of
    a neuron j its input i receives x_i w_ij / (z_j + epsilon sign z_j), z_j = sum_i x_i w_ij. A ReLU passes relevance
    on unchanged. Without biases nothing else takes a share, so the sum of each layer is kept up to epsilon.
    """
    current = np.asarray(inputs, dtype=np.float64)
    if current.ndim != 2 or any(w.ndim != 2 for w in weights):
        raise SettingError(f"Expected inputs of shape (n, units) and matrices as weights; got {current.shape}.")
    values, sums = [current], []
    for depth, weight in enumerate(weights, start=1):
        if weight.shape[0] != current.shape[1]:
            raise SettingError(f"Expected weights from {current.shape[1]} neurons, got {weight.shape} before {depth}.")
        sums.append(current @ weight)
        current = sums[-1] if depth == len(weights) else np.maximum(sums[-1], 0.0)
        values.append(current)
    answers = current.shape[1]
    if target is not None and not 0 <= target < answers:
        raise SettingError(f"Expected an answer from 0 to {answers - 1}; got {target!r}.")
    chosen = current.argmax(axis=1) if target is None else np.full(len(current), target)
    relevance = [np.where(np.arange(answers) == chosen[:, None], current, 0.0)]
    flows: list[Floats] = []
    for value, weight, z in zip(values[-2::-1], weights[::-1], sums[::-1], strict=True):
        share = relevance[0] / (z + np.copysign(EPSILON, z))
        flows.insert(0, value[:, :, None] * weight * share[:, None, :])
        relevance.insert(0, flows[0].sum(axis=2))
    return Explanation(tuple(values), chosen.astype(np.int64), tuple(relevance), tuple(flows))


@dataclass(frozen=True, eq=False)
class Step:
    """One step of k-means."""

    kind: Literal["start", "assign", "move", "done"]
    """Centroids are guessed; values choose the nearest; centroids move to the mean of theirs; nothing changes."""
    centroids: Floats  # (k,), after the step, ascending
    assignment: NDArray[np.int64]  # (n,), index of each value's centroid; -1 before the first assignment
    spread: float  # sum of squared distances of the values to their centroids; nan before the first assignment


def kmeans_steps(values: ArrayLike, k: int) -> tuple[Step, ...]:
    """Run k-means on values (n,) from the k lowest different ones and keep every step; the last changes no assignment.

    S. P. Lloyd, "Least squares quantization in PCM", 1982. From a poor start it can stop at a partition that is not the
    best one; `idc_core.clustering.kmeans.cluster` finds the best one directly. As there, a value between two centroids
    belongs to the lower one.
    """
    points = np.asarray(values, dtype=np.float64)
    different = np.unique(points)
    if not 1 <= k <= len(different):
        raise SettingError(f"Expected k from 1 to {len(different)}, the number of different values; got {k!r}.")
    centroids = different[:k]
    assignment = np.full(points.shape, -1, dtype=np.int64)
    steps = [Step("start", centroids, assignment, float("nan"))]
    while True:
        nearest = np.abs(points[:, None] - centroids).argmin(axis=1)
        done = bool((nearest == assignment).all())
        assignment = nearest
        steps.append(Step("done" if done else "assign", centroids, assignment, _spread(points, centroids, assignment)))
        if done:
            return tuple(steps)
        held = [points[assignment == index] for index in range(k)]
        centroids = np.array([own.mean() if len(own) else old for own, old in zip(held, centroids, strict=True)])
        steps.append(Step("move", centroids, assignment, _spread(points, centroids, assignment)))


def _spread(points: Floats, centroids: Floats, assignment: NDArray[np.int64]) -> float:
    return float(np.square(points - centroids[assignment]).sum())


def watched(inputs: ArrayLike) -> Floats:
    """Return the activations (n, 2) of the two watched neurons for inputs (n, 3), with the weights of `START`."""
    activations: Floats = explain(START, inputs).values[1][:, WATCHED]
    return activations


@cache
def states() -> tuple[Clusters, ...]:
    """Return the clusters of the two watched neurons over `PICTURES`."""
    return tuple(cluster(column) for column in watched(PICTURES).T)


def cells(inputs: ArrayLike) -> NDArray[np.uint8]:
    """Return the cell (n, 2) of inputs (n, 3): the state of each watched neuron."""
    return assign(watched(inputs), [state.centroids for state in states()])
