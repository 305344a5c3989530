"""A small network with few tests, and a folder for its finished units."""

import pytest

from idc_core.datasets import load_dataset
from idc_core.models import load_model
from idc_core.store.cache import records_folder


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    """Finished units and attacked blocks of one test alone."""
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def finished():
    """How many units of a kind are on disk."""
    return lambda kind: len(list((records_folder() / kind).glob("*.json")))


@pytest.fixture(scope="session")
def digits():
    """LeNet-4 on digits, 200 training inputs and 40 tests."""
    return load_model("lenet4-digits"), load_dataset("digits", "train", 200), load_dataset("digits", "test", 40)
