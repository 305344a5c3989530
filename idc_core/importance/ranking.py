"""Rankings of a layer's neurons by several measures, how far they agree, and what stands behind a neuron's place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Array
from idc_core.base.parameters import whole_number
from idc_core.base.progress import Progress, part_of
from idc_core.errors import UnsupportedOperationError
from idc_core.evidence.finding import Control, Finding
from idc_core.importance.important_neurons import PRIORITIES, Relevance

if TYPE_CHECKING:
    from torch import nn

    from idc_core.datasets import Dataset

_ROWS = 256
"""Inputs attributed at a time: values in the layer's own shape are added up and forgotten."""

_GROUPS = 5
"""Groups of equally many inputs that numbers are put into, as classes are for inputs that have them."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """One measure of how much each neuron decides."""

    name: str
    label: str
    values: NDArray[np.float64]
    """(neurons,), mean over inputs, in the unit of a score, so that rankings over different inputs can be compared."""
    inputs: int  # over how many inputs

    @property
    def order(self) -> NDArray[np.int64]:
        """Neurons, the one with the largest value first; of equal ones the lower number first."""
        return np.argsort(-self.values, kind="stable").astype(np.int64)

    @property
    def places(self) -> NDArray[np.int64]:
        """Place of every neuron in the order, from 0, int64 (neurons,)."""
        places = np.empty(len(self.values), np.int64)
        places[self.order] = np.arange(len(self.values))
        return places


def by_relevance(relevance: Relevance) -> list[Ranking]:
    """Rank neurons by every entry of `PRIORITIES`, the paper's first, from relevance (n, neurons)."""
    n = len(relevance)
    return [Ranking(entry.name, entry.label, entry.total(relevance) / n, n) for entry in PRIORITIES.values()]


def by_group(relevance: Relevance, groups: NDArray[np.int64], labels: Sequence[str]) -> list[Ranking]:
    """Rank neurons by their relevance (n, neurons) over the inputs of each group (n,), if it has any."""
    means = group_means(relevance, groups, len(labels))
    counts = np.bincount(groups, minlength=len(labels))
    return [
        Ranking(f"group-{index}", label, means[:, index], int(counts[index]))
        for index, label in enumerate(labels)
        if counts[index]
    ]


def group_means(relevance: Relevance, groups: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """Return a neuron's mean relevance over the inputs of each group (n,), float64 (neurons, count); NaN of none."""
    means = np.full((relevance.shape[1], count), np.nan)
    for group in range(count):
        inside = groups == group
        if inside.any():
            means[:, group] = relevance[inside].mean(axis=0, dtype=np.float64)
    return means


def carrying(values: NDArray[np.floating], share: float = 0.5) -> NDArray[np.int64]:
    """Return the fewest neurons that together have a share of all positive values (neurons,), the largest first."""
    positive = np.maximum(np.nan_to_num(values), 0)
    order = np.argsort(-positive, kind="stable")
    before = positive[order].cumsum() - positive[order]  # what larger ones have together
    fewest: NDArray[np.int64] = order[(before < share * positive.sum()) & (positive[order] > 0)]
    return fewest


def group_inputs(data: Dataset) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return the group of every input, int64 (n,), and the groups' names: classes, or ranges of the number answered.

    There are up to `_GROUPS` ranges that hold equally many inputs, from low to high.
    """
    if data.task == "classification":
        return data.targets, data.class_names
    edges = np.unique(np.quantile(data.targets, np.linspace(0, 1, _GROUPS + 1)))
    groups = np.searchsorted(edges[1:-1], data.targets, side="right").astype(np.int64)
    ends = edges if len(edges) > 1 else np.repeat(edges, 2)
    labels = tuple(f"{low:+.2f} to {high:+.2f}".replace("-", "\u2212") for low, high in pairwise(ends))
    return groups, labels


def sample_inputs(data: Dataset, count: int, seed: int = 0) -> NDArray[np.int64]:
    """Choose inputs for a measure that is too slow for all of them; positions, int64 (k,), ascending.

    Classes get equally many places, as far as they have inputs; where the answer is a number, inputs lie at even
    distances.
    """
    whole_number("The number of inputs of a sample", count, 1)
    if data.task != "classification":
        return spread_evenly(len(data), count)
    shuffled = np.random.default_rng(seed).permutation(len(data))
    classes = data.targets[shuffled]
    # How many of its class come before an input: taking the lowest first fills the classes evenly.
    turn = np.empty(len(data), np.int64)
    for label in np.unique(classes):
        members = np.flatnonzero(classes == label)
        turn[members] = np.arange(len(members))
    return np.sort(shuffled[np.lexsort((classes, turn))[:count]]).astype(np.int64)


def spread_evenly(total: int, count: int) -> NDArray[np.int64]:
    """Return up to `count` positions at even distances, the first and the last of `total` among them."""
    return np.linspace(0, total - 1, min(count, total)).astype(np.int64)


def by_method(
    model: nn.Module, inputs: Array, layer: str, method: str, *, on_progress: Progress | None = None
) -> Ranking:
    """Rank neurons by what an attribution method gives them on average over inputs (n, ...)."""
    import torch

    from idc_core.attribution.methods import METHODS, attribute
    from idc_core.tracing.neurons import neuron_axes, neuron_relevance

    label, n = METHODS[method].label, len(inputs)
    axis = neuron_axes(model, (layer,))[layer]
    summed: NDArray[np.float64] | float = 0.0
    for begin in range(0, n, _ROWS):
        values = attribute(
            model, inputs[begin : begin + _ROWS], method, layer, on_progress=part_of(on_progress, begin, n)
        )
        summed = summed + neuron_relevance(torch.from_numpy(values), axis).numpy().sum(axis=0, dtype=np.float64)
    if not np.isfinite(summed).all():
        raise UnsupportedOperationError(
            f"{label} gives some neurons of layer {layer!r} no finite value: its sums cancel exactly. Choose another "
            "method, or a rule of relevance propagation with a damping such as epsilon."
        )
    return Ranking(method, label, np.asarray(summed) / n, n)


def count_shared(first: Ranking, second: Ranking, m: int) -> int:
    """Return how many of the first m neurons of one ranking are among the first m of another one."""
    return len(np.intersect1d(first.order[:m], second.order[:m]))


def shared_finding(first: Ranking, second: Ranking, m: int, labels: tuple[str, str]) -> Finding:
    """Compare how many of the first m neurons two rankings share with what random neurons would (hypergeometric).

    `labels` name the two in a sentence.
    """
    from idc_core.base.scipy_parts import stats

    neurons, number = len(first.values), count_shared(first, second, m)
    random = stats.hypergeom(neurons, m, m)
    low, high = (float(end) for end in random.ppf([0.025, 0.975]))
    looked = number, max(0, 2 * m - neurons), m
    p, fewest, most = (2 * min(random.cdf(shared), random.sf(shared - 1)) for shared in looked)
    return Finding(
        "shared neurons",
        f"Of the first {m} neurons by {labels[0]}, also first by {labels[1]}",
        number,
        Control("of as many random neurons", float(random.mean()), low, high),
        number - high,
        number - low,
        min(1.0, float(p)),
        min(1.0, float(min(fewest, most))),
    )


def extremes(values: NDArray[np.floating], count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the positions of the largest and the smallest values (n,), most extreme first, of equals the earlier."""
    most = np.argsort(-values, kind="stable")[:count]
    least = np.argsort(values, kind="stable")[:count]
    return most.astype(np.int64), least.astype(np.int64)
