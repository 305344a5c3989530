"""Reading both splits of a file, as `load_dataset` does it."""

from contextlib import contextmanager

import pytest

from idc_core.datasets import DATASETS, load_dataset
from idc_core.datasets.preparation import Preparation
from idc_core.datasets.registry import open_data
from idc_core.errors import IdcError


@contextmanager
def entered(path, **preparation):
    """Enter a file, and leave the registry as it was."""
    entry = open_data(path, preparation=Preparation(**preparation))
    try:
        yield entry
    finally:
        del DATASETS[entry.name]


def both(path, **preparation):
    """The training and the test split of a file."""
    with entered(path, **preparation) as entry:
        return load_dataset(entry.name, "train"), load_dataset(entry.name, "test")


def refusal(path, **preparation):
    """The sentence by which a file is refused."""
    with pytest.raises(IdcError) as caught:
        both(path, **preparation)
    said = str(caught.value)
    assert said.endswith("."), said
    assert len(said) < 2_000, said
    return said
