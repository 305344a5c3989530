"""Tests by their names; inputs and targets as a person reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from idc_core.figures.input_texts import amount, feature_names, features, input_parts, is_series, kind, quantity

if TYPE_CHECKING:
    from idc_core.datasets import Dataset

__all__ = ["amount", "feature_names", "features", "input_parts", "is_series", "kind", "quantity", "tests_name"]


def tests_name(test: Dataset) -> str:
    """Return what tests are called: their data set's name, or a saved suite's label."""
    from idc_core.datasets import DATASETS
    from idc_core.suites import SAVED

    return DATASETS[test.name].label if SAVED.is_id(test.name) else test.name
