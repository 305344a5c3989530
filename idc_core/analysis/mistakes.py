"""What every misclassified test of a data set most likely is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Floats
from idc_core.datasets.dataset import Dataset
from idc_core.errors import DataError
from idc_core.evidence.mistakes import Mistakes, judge_mistakes

_BYTES = 256 << 20
"""Memory that the training inputs may take while tests are compared with them; of more, some are drawn evenly."""


def mistakes_of(scores: NDArray[np.floating], train: Dataset, test: Dataset) -> Mistakes:
    """Judge every misclassified test by scores (n, classes) before the softmax and by the closest training inputs.

    Pictures are compared by their pixels, tables by their columns in standard deviations of training, and texts by
    their words, weighed by how rare they are.

    Raises
    ------
    DataError
        If data set and training data are no classification of the same classes.
    """
    if test.task != "classification" or test.class_names != train.class_names:
        raise DataError(
            f"Only misclassified tests can be judged: expected a classification whose tests have the classes of the "
            f"training data, got {test.name} ({test.task}) and {train.name} ({train.task})."
        )
    words = 0 if train.inputs.dtype.kind == "f" else 1 + int(np.asarray(train.inputs).max())
    width = words or int(np.prod(train.inputs.shape[1:]))
    taken = np.arange(0, len(train), max(1, -(-len(train) * width * 8 // _BYTES)))
    learnt = np.asarray(train.inputs[taken])
    numbers = _numbers_of(learnt, words, train.special)
    shifted = np.exp(scores - scores.max(1, keepdims=True), dtype=np.float64)
    probabilities = shifted / shifted.sum(1, keepdims=True)
    inputs = np.asarray(test.inputs)
    return judge_mistakes(probabilities, test.targets, inputs, numbers(learnt), train.targets[taken], numbers)


def _numbers_of(learnt: NDArray[Any], words: int, special: tuple[int, ...]) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Return what makes of inputs numbers whose distance counts: texts of so many words, tables, or pictures."""
    if words:
        rarity = np.log((1 + len(learnt)) / (1 + (_bag(learnt, words, special) > 0).sum(0)))
        return lambda ids: _of_length_one(_bag(ids, words, special) * rarity)
    if learnt.ndim != 2:
        return np.asarray
    spread = learnt.std(0)
    middle, scale = learnt.mean(0), np.where(spread > 0, spread, 1.0)
    return lambda rows: (rows - middle) / scale


def _of_length_one(rows: Floats) -> Floats:
    lengths: Floats = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.maximum(lengths, 1e-12)


def _bag(ids: NDArray[np.integer], words: int, special: tuple[int, ...]) -> Floats:
    """Return the logarithm of how often each word of training occurs (n, words); marks such as padding are none."""
    bag = np.zeros((len(ids), words))
    rows, places = np.nonzero(ids < words)
    np.add.at(bag, (rows, ids[rows, places]), 1)
    bag[:, [mark for mark in special if mark < words]] = 0
    return np.log1p(bag, out=bag)
