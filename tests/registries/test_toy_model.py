"""A network registered from one file outside the package is found everywhere, with no other file touched."""

import importlib
import sys

import numpy as np
import pytest
import torch

from idc_core.analysis.analysis import analyze
from idc_core.cli import main
from idc_core.datasets import DATASETS, load_dataset
from idc_core.errors import ModelError
from idc_core.models import MODELS, load_model, train
from studio.state.setup import fitting_data, parse

NAME = "toy-net"


@pytest.fixture
def toy():
    """The network and the data set that it takes, registered; gone again afterwards."""
    for file in ("dataset", "model"):
        sys.modules.pop(f"tests.registries.toys.{file}", None)
        importlib.import_module(f"tests.registries.toys.{file}")
    yield NAME
    del MODELS[NAME], DATASETS["toy-squares"]


def test_the_menu_offers_it_with_the_data_that_fit(toy):
    assert fitting_data(MODELS[toy]) == ["toy-squares"]
    chosen = parse({"model": toy})
    assert (chosen.data, chosen.layer) == ("toy-squares", "hidden")
    assert parse({"model": "Toy network", "layer": "scores"}).layer == "scores"


def test_the_command_line_lists_it(toy, capsys):
    assert main(["list", "models"]) == 0
    assert [*capsys.readouterr().out.splitlines()[-1].split()] == ["toy-net", "toy-squares", "[hidden]", "scores"]


def test_it_loads_with_the_weights_that_it_brings(toy, tmp_path):
    model = load_model(toy)
    assert not model.training
    assert (model.card.name, model.card.parameters, model.card.layers) == (toy, 116, ("hidden", "scores"))
    assert model.card.fingerprint == load_model(toy).card.fingerprint
    with pytest.raises(ModelError, match="'toy-net' is not trained here"):
        train(toy, out=tmp_path)


def test_the_whole_method_runs_on_it(toy):
    model = load_model(toy)
    data = [load_dataset("toy-squares", split) for split in ("train", "test")]
    found = analyze(model, *data, "hidden", 3)
    assert 0 < found.covered <= found.total
    with torch.inference_mode():
        wanted = model(torch.from_numpy(data[1].inputs.copy())).argmax(1).numpy()
    np.testing.assert_array_equal(found.predictions, wanted)


def test_the_command_line_analyses_it(toy, capsys):
    assert main(["analyze", "--model", toy, "--m", "3"]) == 0
    assert "Toy network" in capsys.readouterr().out


def test_it_is_gone_afterwards():
    assert NAME not in MODELS
    assert "toy-squares" not in DATASETS
