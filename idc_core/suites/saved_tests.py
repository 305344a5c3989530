"""Saved suites as data sets, so that they can be chosen as the tests of a network like any other."""

from __future__ import annotations

import re
import zlib
from functools import partial

import numpy as np

from idc_core.base.progress import Progress
from idc_core.datasets import DATASETS, load_dataset
from idc_core.datasets.dataset import Items
from idc_core.datasets.entry import DatasetEntry
from idc_core.errors import DataError
from idc_core.suites.saved_suites import SAVED, SavedSuite, open_saved

_MARKUP = re.compile(r"[\\`*_\[\]<>&$~|:]")


def enter_saved(own: DatasetEntry, asker: str | None = None) -> list[str]:
    """Put the saved suites that fit the networks of a data set into `DATASETS`; return the names that `asker` may see.

    They have tests alone. A suite that was deleted is not returned any more; what was read of it stays valid.
    """
    form = (own.input_shape, own.class_names, own.task)
    fitting = [
        saved
        for saved in SAVED.listed(asker).values()
        if (saved.form.shape, saved.form.class_names, saved.form.task) == form
    ]
    for saved in fitting:
        DATASETS[saved.name] = _entry(saved, own)
    return [saved.name for saved in fitting]


def _entry(saved: SavedSuite, own: DatasetEntry) -> DatasetEntry:
    label = " ".join(_MARKUP.sub(" ", saved.label).split()) or saved.name
    return DatasetEntry(
        name=saved.name,
        label=label,
        help=f"{saved.inputs:,} tests that you saved.",
        task=own.task,
        class_names=own.class_names,
        input_shape=own.input_shape,
        citation="",
        licence="",
        load=partial(_read, saved.name, own.name),
        quantity=own.quantity,
        # The same tests read for networks of other data have other words.
        edition=zlib.crc32(own.name.encode()),
    )


def _read(name: str, own: str, split: str, limit: int | None, on_progress: Progress | None) -> Items:
    """Read a saved suite; the words of texts and the names of features are those of the network's own data."""
    if split != "test":
        label = DATASETS[name].label
        raise DataError(f"The saved suite {label!r} holds tests alone: choose another data set to learn from.")
    suite = open_saved(name)
    inputs = suite.take(np.arange(len(suite) if limit is None else min(limit, len(suite))))
    targets = suite.targets[: len(inputs)]
    if len(suite.shape) == 3:
        return Items(inputs, targets)
    like = load_dataset(own, "test", 1, on_progress=on_progress)
    return Items(inputs, targets, like.vocabulary, special=like.special, naming=like.naming)
