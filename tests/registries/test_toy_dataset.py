"""A data set registered from one file outside the package is found everywhere, with no other file touched."""

import dataclasses
import importlib
import sys

import numpy as np
import pytest

from idc_core.cli import main
from idc_core.datasets import DATASETS, load_dataset
from idc_core.errors import DataError
from idc_core.models import MODELS
from studio.state.setup import fitting_data

NAME = "toy-squares"


@pytest.fixture
def toy():
    """The data set, registered; gone again afterwards."""
    sys.modules.pop("tests.registries.toys.dataset", None)
    importlib.import_module("tests.registries.toys.dataset")
    yield NAME
    del DATASETS[NAME]


def test_it_loads_like_any_other(toy):
    train, test = load_dataset(toy, "train"), load_dataset(toy)
    assert (train.inputs.shape, test.inputs.shape) == ((200, 1, 4, 4), (200, 1, 4, 4))
    assert train.class_names == ("dark", "bright")
    assert train.fingerprint != test.fingerprint
    assert not train.inputs.flags.writeable
    np.testing.assert_array_equal(load_dataset(toy, limit=7).inputs, test.inputs[:7])
    with pytest.raises(DataError, match="toy-squares"):
        load_dataset("nothing")


def test_the_command_line_lists_it(toy, capsys):
    assert main(["list", "data"]) == 0
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith(toy)]
    assert row.split("  ")[0] == toy
    assert row.endswith("Pictures of 4 x 4, dark or bright.")


def test_the_menu_offers_it_to_networks_that_take_its_shape(toy):
    entry = MODELS["lenet5-digits"]
    assert toy not in fitting_data(entry)
    assert fitting_data(dataclasses.replace(entry, dataset=toy)) == [toy]


def test_it_is_gone_afterwards():
    assert NAME not in DATASETS
    assert all(entry.dataset != NAME for entry in MODELS.values())
