"""The training loop and the command around it."""

import argparse
import dataclasses

import numpy as np
import pytest
import torch

from idc_core.base import devices
from idc_core.cli import train as command
from idc_core.datasets import Dataset, load_dataset
from idc_core.errors import CancelledError, ModelError, SettingError
from idc_core.models import MODELS, load_model, train
from idc_core.models.training import fit, measure

NAME = "lenet1-digits"


@pytest.fixture
def short(monkeypatch):
    """The registry with one epoch instead of many."""
    entry = MODELS[NAME]
    recipe = dataclasses.replace(entry.recipe, epochs=1)
    monkeypatch.setitem(MODELS, NAME, dataclasses.replace(entry, recipe=recipe))


def tiny(inputs, targets, task="classification"):
    ids = np.arange(len(inputs))
    return Dataset("tiny", "test", inputs, targets, (), task, (), (), ids, "")


@pytest.mark.slow
def test_the_command_trains_a_network_that_recognises_digits(tmp_path, capsys):
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    assert command.run(parser.parse_args(["train", NAME, "--out", str(tmp_path)])) == 0
    assert "test accuracy: 0.9" in capsys.readouterr().out
    network = load_model(NAME, weights=tmp_path / f"{NAME}.safetensors")
    assert network.card.seed == 0
    assert measure(network, load_dataset("digits", "test"))["accuracy"] >= 0.97
    assert sorted(file.name for file in tmp_path.iterdir()) == [f"{NAME}.json", f"{NAME}.safetensors"]


@pytest.mark.usefixtures("short")
def test_the_seed_fixes_the_weights(tmp_path):
    torch.manual_seed(5)
    first = train(NAME, out=tmp_path, seed=3)
    torch.manual_seed(6)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        second = train(NAME, out=tmp_path, seed=3)
        assert torch.get_num_threads() == 2, "training changed the number of threads"
    finally:
        torch.set_num_threads(threads)
    assert first == second
    assert train(NAME, out=tmp_path, seed=4).fingerprint != first.fingerprint


@pytest.mark.usefixtures("short")
def test_training_leaves_the_random_numbers_of_others_alone(tmp_path):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train(NAME, out=tmp_path)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.usefixtures("short")
def test_progress_counts_to_the_end(tmp_path):
    seen = []
    train(NAME, out=tmp_path, on_progress=lambda done, total, label: seen.append((done, total, label)))
    steps = [(done, total) for done, total, label in seen if label.startswith("Training")]
    assert steps == [(step, 39) for step in range(1, 40)]  # 1,257 images in batches of 32
    assert "epoch 1 of 1" in seen[-1][2]


def test_stopping_writes_nothing(tmp_path):
    with pytest.raises(CancelledError):
        train(NAME, out=tmp_path, on_progress=lambda done, total, label: not label.startswith("Training"))
    assert list(tmp_path.iterdir()) == []


def test_folder_that_cannot_be_made_is_said_before_training(tmp_path):
    (tmp_path / "taken").write_text("", encoding="utf-8")
    seen = []
    with pytest.raises(ModelError, match="taken cannot be made"):
        train(NAME, out=tmp_path / "taken", on_progress=lambda *step: seen.append(step))
    assert seen == []


def test_settings_that_make_no_sense_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "available", lambda: ("cpu",))
    with pytest.raises(SettingError, match=r"must be one of auto, cpu, .* not 'tpu'"):
        train(NAME, out=tmp_path, device="tpu")
    with pytest.raises(SettingError, match="not -1"):
        train(NAME, out=tmp_path, seed=-1)
    with pytest.raises(ModelError, match="published"):
        train("deepxplore-model1", out=tmp_path)
    with pytest.raises(ModelError, match="no model 'nothing'"):
        train("nothing", out=tmp_path)


def test_divergence_is_named():
    entry = MODELS[NAME]
    data = tiny(np.full((64, 1, 28, 28), np.nan, np.float32), np.zeros(64, np.int64))
    with pytest.raises(ModelError, match="Training it diverged: loss nan at step 1 of"):
        fit(entry.build(), data, entry.recipe, seed=0, label="it")


def test_fewer_inputs_than_a_batch_are_enough():
    entry = MODELS[NAME]
    network = entry.build()
    before = network.logits.bias.detach().clone()
    inputs = np.random.default_rng(0).random((5, 1, 28, 28), np.float32)
    fit(network, tiny(inputs, np.arange(5)), entry.recipe, seed=0)
    assert not torch.equal(network.logits.bias, before)


class Constant(torch.nn.Module):
    def __init__(self, row):
        super().__init__()
        self.row = torch.tensor(row)

    def forward(self, inputs):
        assert not self.training
        return self.row.expand(len(inputs), -1)


def test_measures_by_hand():
    inputs = np.zeros((600, 1), np.float32)
    inputs.setflags(write=False)
    classes = np.arange(600) % 3
    network = Constant([0.0, 0.0, 1.0]).train()
    assert measure(network, tiny(inputs, classes))["accuracy"] == pytest.approx(1 / 3)
    assert network.training
    angles = np.where(classes == 0, 0.5, 0.0).astype(np.float32)
    expected = np.sqrt((0.25 + 1 + 1) / 3)
    assert measure(Constant([-1.0]).eval(), tiny(inputs, angles - 2, "regression"))["rmse"] == pytest.approx(
        np.sqrt(np.mean((angles - 1) ** 2))
    )
    assert np.sqrt(np.mean((angles - 1) ** 2)) == pytest.approx(expected)


def test_without_some_inputs_batches_lack_them_and_nothing_else_changes():
    inputs, targets = np.random.default_rng(0).random((50, 4), np.float32), np.arange(50)

    def batches(**how):
        seen = []

        def loss(scores, some):
            seen.append(some.tolist())
            return scores.sum()

        network = torch.nn.Linear(4, 2)
        recipe = dataclasses.replace(MODELS[NAME].recipe, epochs=2, batch=8)
        fit(network, tiny(inputs, targets), recipe, seed=3, loss_of=loss, **how)
        return seen

    every = batches()
    assert batches(without=7) == [[one for one in batch if one < 43] for batch in every]
    assert sum(map(len, every)) == 2 * 48
