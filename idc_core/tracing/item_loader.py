"""Inputs that a torch Dataset gives item by item: in batches, read by processes of their own if the owner says so."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

from idc_core.base.config import config
from idc_core.tracing.batch_size import MOST_INPUTS


def is_items(inputs: object) -> bool:
    """Return whether inputs come item by item."""
    return isinstance(inputs, Dataset)


def loaded(items: Dataset[object]) -> tuple[Iterable[object], int | None]:
    """Return the batches of a Dataset in its own order, and how many items it has where that is known.

    ``loaders`` of the config file is the number of processes that read; the order does not depend on it. An iterable
    Dataset has no items by number that could be shared out, so it is read by this process.
    """
    iterable = isinstance(items, IterableDataset)
    # A generator of its own: else a loader would draw from the caller's random numbers.
    loader: DataLoader[object] = DataLoader(
        items, MOST_INPUTS, num_workers=0 if iterable else config().loaders, generator=torch.Generator()
    )
    return loader, None if iterable else len(items)  # type: ignore[arg-type]
