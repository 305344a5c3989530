"""What stands out about the tests of an analysis, beside training inputs, other classes and chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.coverage.cell_table import state_counts
from idc_core.coverage.cells import cell_name, cluster_name, decode, encode
from idc_core.evidence.finding import Finding
from idc_core.evidence.of_tests import confused_pair, errors_alone, low_recall, training_alone, uneven_group

_Places = NDArray[np.uint8]
_Classes = NDArray[np.integer]
_Where = tuple[tuple[str, str], ...]


@dataclass(frozen=True, eq=False)
class Labelled:
    """Classes, by their number among `names`: true and predicted ones of tests (t,), true ones of training inputs."""

    names: Sequence[str]
    true: _Classes
    predicted: _Classes
    training: _Classes


@dataclass(frozen=True, eq=False)
class Looked:
    """Tests, and the training inputs that they are compared with.

    `tests` (t, m) and `training` (n, m) are the clusters of either; None for `training` where there are no inputs that
    the tests should be like. `correct` (t,) is None where no prediction can be right or wrong, `classes` where there
    are none to compare.
    """

    tests: _Places
    training: _Places | None
    correct: NDArray[np.bool_] | None = None
    classes: Labelled | None = None


def find(looked: Looked, important: Sequence[int], sizes: Sequence[int]) -> tuple[Finding, ...]:
    """Return the most certain finding of each kind, whether it stands out or not.

    `important` (m,) are the important neurons, `sizes` the number of clusters of each.
    """
    found = [*_of_classes(looked.classes), _of_clusters(looked, important, sizes), *_of_cells(looked, sizes)]
    return tuple(finding for finding in found if finding is not None)


def _of_classes(given: Labelled | None) -> list[Finding | None]:
    """Look at the share and the recall of every class, and at every two classes."""
    if given is None:
        return []
    names, true, predicted, classes = given.names, given.true, given.predicted, len(given.names)
    tests = np.bincount(true, minlength=classes)
    right = np.bincount(true[true == predicted], minlength=classes)
    return [
        low_recall(names, tests, right, lambda _: ()),
        confused_pair(names, true, predicted, lambda one, other: (("pair", f"{one}-{other}"),)),
        uneven_group(
            "class-share",
            [f"Tests of class {name}" for name in names],
            tests,
            np.bincount(given.training, minlength=classes),
            (len(true), len(given.training)),
            lambda _: (),
        ),
    ]


def _of_clusters(looked: Looked, important: Sequence[int], sizes: Sequence[int]) -> Finding | None:
    """Look at how many tests, and how many training inputs, every cluster of every neuron holds."""
    if looked.training is None:
        return None
    places = [
        (int(neuron), cluster, size) for neuron, size in zip(important, sizes, strict=True) for cluster in range(size)
    ]

    def where(group: int) -> _Where:
        neuron, cluster, _ = places[group]
        return ("neuron", str(neuron)), ("cluster", str(cluster))

    return uneven_group(
        "cluster",
        [f"Tests in the {cluster_name(cluster, size)} of neuron {neuron}" for neuron, cluster, size in places],
        np.concatenate(state_counts(looked.tests, sizes)),
        np.concatenate(state_counts(looked.training, sizes)),
        (len(looked.tests), len(looked.training)),
        where,
    )


def _of_cells(looked: Looked, sizes: Sequence[int]) -> list[Finding | None]:
    """Look at the cells that only errors reach, and at those that training inputs reach and no test."""
    codes = encode(looked.tests, sizes)
    learnt = codes[:0] if looked.training is None else encode(looked.training, sizes)
    cells, cell = np.unique(np.concatenate([codes, learnt]), return_inverse=True)
    tests, training = (np.bincount(part, minlength=len(cells)) for part in np.split(cell, [len(codes)]))

    def where(group: NDArray[np.bool_], inputs: NDArray[np.int64]) -> _Where:
        """Select the cell of a group that holds most inputs."""
        if not group.any():
            return ()
        chosen = cells[[int(np.argmax(np.where(group, inputs, -1)))]]
        return (("cell", cell_name(decode(chosen, sizes)[0])),)

    found = [training_alone(tests, training, where((tests == 0) & (training > 0), training))]
    if looked.correct is not None:
        wrong = np.bincount(cell[: len(codes)][~looked.correct], minlength=len(cells))
        reached = tests > 0
        found.append(errors_alone(tests[reached], wrong[reached], where(reached & (tests == wrong), tests)))
    return found
