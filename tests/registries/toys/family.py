"""A toy family of hypotheses, as a person's own file would register it."""

from collections.abc import Iterator

from idc_core.datasets import Dataset
from idc_core.inspection.hypothesis import Hypothesis, register_family


@register_family("toy-family", "Toy family", "The record has an even number.")
def toy(dataset: Dataset) -> Iterator[Hypothesis]:
    yield Hypothesis("even number", "toy-family", "binary", lambda records: records.ids % 2 == 0)
