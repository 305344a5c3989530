"""A library of one test alone, and small files to add to it."""

import io

import numpy as np
import pytest

from idc_core import library
from idc_core.datasets import DATASETS
from idc_core.datasets.dataset import Items
from idc_core.datasets.formats import DATA_FORMATS, DataFormat
from idc_core.models import MODELS
from tests.library.small_files import digits_onnx


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty folder for what is kept; the registries are as before at the end."""
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "home"))
    before = dict(MODELS), dict(DATASETS)
    yield tmp_path / "home"
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "none"))
    library.enter_all()
    assert (dict(MODELS), dict(DATASETS)) == before


@pytest.fixture
def toy_data(monkeypatch):
    """A format of data whose reader counts how often it is called: noise of the shape of the digits."""
    calls = []

    def read(path, preparation, split, limit, on_progress):
        calls.append(split)
        count = len(path.read_bytes())
        return Items(np.random.default_rng(0).random((count, 1, 28, 28), np.float32), np.arange(count) % 10)

    monkeypatch.setitem(DATA_FORMATS, ".toy", DataFormat(".toy", "toy", read))
    return calls


@pytest.fixture
def network(home):
    """An uploaded network that was read and has its data."""
    entry = library.understand(library.add_upload(io.BytesIO(digits_onnx()), "my net.onnx", "network"))
    return library.connect(entry, library.NetworkSettings("digits"))
