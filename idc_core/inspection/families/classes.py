"""Hypotheses about a whole record: its class."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets import Dataset
from idc_core.inspection.hypothesis import Hypothesis, Records, register_family


@register_family("labels", "Classes", "The class of the test; the target of a regression.")
def _labels(dataset: Dataset) -> Iterator[Hypothesis]:
    """Offer one hypothesis per class and the class itself; the target of a regression."""
    if dataset.task == "regression":
        yield Hypothesis("target", "labels", "number", lambda records: records.targets, recomputable=False)
        return
    for number, name in enumerate(dataset.class_names):
        yield Hypothesis(f"class {name}", "labels", "binary", partial(_is, number=number), recomputable=False)
    if len(dataset.class_names) > 2:
        yield Hypothesis(
            "class", "labels", "classes", lambda records: records.targets, len(dataset.class_names), recomputable=False
        )


def _is(records: Records, number: int) -> NDArray[np.generic]:
    return np.asarray(records.targets == number)
