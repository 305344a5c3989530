"""Weights kept between the epochs of a training: which, where, whole, and without changing what is trained."""

import argparse
import dataclasses
import json

import pytest
import torch

from idc_core.cli import train as command
from idc_core.datasets import load_dataset
from idc_core.errors import CancelledError, ModelError, SettingError
from idc_core.models import MODELS, CheckpointRecorder, load_model, train
from idc_core.models.checkpoints import (
    SHIPPED_FOLDER,
    _chosen_epochs,
    _usual_epochs,
    all_series,
    kept_folder,
    read_series,
    untrained,
    whole,
)
from idc_core.models.training import measure
from idc_core.models.weights import fingerprint

NAME = "lenet1-digits"
SHIPPED = ("lenet1-digits", "lenet4-digits", "lenet5-digits", "charlstm-sql")


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "home"))


@pytest.fixture
def short(monkeypatch):
    """The registry with two epochs instead of many."""
    entry = MODELS[NAME]
    recipe = dataclasses.replace(entry.recipe, epochs=2, batch=256)
    monkeypatch.setitem(MODELS, NAME, dataclasses.replace(entry, recipe=recipe))


def weights(network):
    return next(network.parameters()).detach()


def test_usual_epochs_by_hand():
    assert _usual_epochs(1) == (0, 1)
    assert _usual_epochs(6) == (0, 1, 2, 3, 4, 5, 6)
    assert _usual_epochs(10) == tuple(range(11))
    assert _usual_epochs(16) == (0, 1, 2, 4, 8, 16)
    assert _usual_epochs(20) == (0, 1, 2, 4, 8, 16, 20)
    assert _chosen_epochs(6, (4, 1, 2)) == (0, 1, 2, 4, 6)
    assert _chosen_epochs(2, ()) == (0, 1, 2)
    with pytest.raises(SettingError, match=r"epochs 0 to 6, not 7, -1\."):
        _chosen_epochs(6, (7, 3, -1))


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("small", [False, True])
def test_recorder_changes_nothing_and_each_epoch_opens_as_it_was(tmp_path, small):
    plain = train(NAME, out=tmp_path, seed=3)
    kept = train(NAME, out=None, seed=3, recorder=CheckpointRecorder(tmp_path / "kept", small=small))
    assert kept == plain
    series = read_series(NAME, tmp_path / "kept")
    assert (series.epochs, series.complete) == ((0, 1, 2), True)
    assert series.checkpoints[-1].trained == plain.fingerprint
    assert torch.equal(weights(series.open(0)), weights(untrained(NAME, 3)))
    last = load_model(NAME, weights=tmp_path / f"{NAME}.safetensors")
    assert (series.open(2).card.fingerprint == last.card.fingerprint) is not small
    assert torch.allclose(weights(series.open(2)), weights(last), atol=1e-3)
    assert [one.stored for one in series.checkpoints] == (["seed", "float16", "float16"] if small else ["float32"] * 3)
    test = load_dataset("digits", "test")
    for one in series.checkpoints:
        network = series.open(one.epoch)
        assert not network.training
        assert fingerprint(network) == network.card.fingerprint
        assert network.card.metrics == {"test_accuracy": round(measure(network, test)["accuracy"], 5)}
    files = {file.name: file.stat().st_size for file in (tmp_path / "kept").iterdir()}
    assert len(files) == (5 if small else 6)
    assert (files["epoch-001.safetensors"] < 20_000) is small
    with pytest.raises(ModelError, match="no checkpoint of lenet1-digits at epoch 5; there are 0, 1, 2"):
        series.open(5)


@pytest.mark.usefixtures("short")
def test_a_stopped_training_leaves_its_finished_epochs_and_goes_on_in_the_same_folder():
    folder = kept_folder(NAME)
    with pytest.raises(CancelledError):
        train(
            NAME,
            out=None,
            recorder=CheckpointRecorder(folder),
            on_progress=lambda done, total, label: "epoch 2" not in label,
        )
    series = read_series(NAME, folder)
    assert (series.epochs, series.complete, series.own) == ((0, 1), False, False)
    joined = whole(NAME, series)
    assert joined.epochs == (0, 1, 2)
    assert joined.open(1).card == series.open(1).card
    assert joined.open(2).card == load_model(NAME).card
    train(NAME, out=None, recorder=CheckpointRecorder(folder))
    assert read_series(NAME, folder).complete
    seen = []
    with pytest.raises(ModelError, match=r"training with the seed 0, not 1: move that folder away, or delete it"):
        train(NAME, out=None, seed=1, recorder=CheckpointRecorder(folder), on_progress=lambda *step: seen.append(step))
    assert seen == [], "refused before any work"


def test_damaged_checkpoints_are_told_in_a_sentence(tmp_path):
    folder = kept_folder(NAME)
    folder.mkdir(parents=True)
    for file in (SHIPPED_FOLDER / NAME).iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    values, text = folder / "epoch-002.safetensors", folder / "epoch-002.json"
    whole, told = values.read_bytes(), text.read_text(encoding="utf-8")
    series = read_series(NAME, folder)
    values.write_bytes(whole[:-9])
    with pytest.raises(ModelError, match=r"epoch-002\.safetensors is not a complete safetensors file"):
        series.open(2)
    values.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(ModelError, match=r"should give lenet1-digits at epoch 2 with the fingerprint \w+, but gives"):
        series.open(2)
    values.unlink()
    with pytest.raises(ModelError, match="does not exist"):
        series.open(2)
    content = json.loads(told)
    for wrong in (
        "{",
        "[]",
        json.dumps({**content, "epoch": 3}),
        json.dumps({**content, "stored": "int4"}),
        json.dumps({**content, "card": {}}),
        json.dumps({**content, "epoch": None}),
        json.dumps({"epoch": 2}),
    ):
        text.write_text(wrong, encoding="utf-8")
        with pytest.raises(ModelError, match=r"epoch-002\.json"):
            read_series(NAME, folder)
    text.write_text(told.replace(NAME, "lenet4-digits"), encoding="utf-8")
    with pytest.raises(ModelError, match="should hold checkpoints of lenet1-digits, but one is of lenet4-digits"):
        read_series(NAME, folder)


@pytest.mark.usefixtures("short")
def test_what_a_disk_damaged_is_told_by_its_checksum():
    folder = kept_folder(NAME)
    train(NAME, out=None, recorder=CheckpointRecorder(folder, epochs=(1,)))
    path = folder / "epoch-001.json"
    text = path.read_text(encoding="utf-8")
    assert read_series(NAME, folder).epochs == (0, 1, 2)
    assert json.loads(text)["content"]["epoch"] == 1, "any program reads it"
    path.write_text(text.replace('"epochs": 2', '"epochs": 3'), encoding="utf-8")
    with pytest.raises(ModelError, match=r"epoch-001\.json is damaged: .*checksum.* Delete it, or train again"):
        read_series(NAME, folder)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_checkpoints_lead_to_the_shipped_weights(name):
    (series,) = all_series(name)
    assert series.own
    assert series.complete
    assert series.epochs == ((0, 1, 2, 4, 6) if name == "charlstm-sql" else (0, 1, 2, 4, 8, 16, 20))
    assert series.open(series.epochs[-1]).card.fingerprint == load_model(name).card.fingerprint
    reached = [one.card.metrics["test_accuracy"] for one in series.checkpoints]
    assert reached[0] < 0.2 < 0.4 < reached[1] < reached[-1]
    between = series.open(series.epochs[2])
    assert between.card.recipe == load_model(name).card.recipe
    assert torch.isfinite(weights(between)).all()


def test_the_folder_of_checkpoints_is_small():
    files = [file for folder in SHIPPED_FOLDER.iterdir() for file in folder.iterdir()]
    assert {folder.name for folder in SHIPPED_FOLDER.iterdir()} == set(SHIPPED)
    assert sum(file.stat().st_size for file in files) < 10_000_000


@pytest.mark.usefixtures("short")
def test_of_several_trainings_the_one_of_the_own_weights_comes_first():
    train(NAME, out=None, seed=4, recorder=CheckpointRecorder(kept_folder(NAME)))
    assert [one.own for one in all_series(NAME)] == [True, False]


def test_without_checkpoints_there_is_before_and_after():
    assert all_series("lenet1-mnist") == ()
    series = whole("lenet1-mnist")
    assert (series.epochs, series.own) == ((0, 10), True)
    assert torch.equal(weights(series.open(0)), weights(untrained("lenet1-mnist", 0)))
    assert series.open(10).card == load_model("lenet1-mnist").card
    with pytest.raises(ModelError, match="no model 'nothing'"):
        all_series("nothing")


@pytest.mark.usefixtures("short")
def test_the_command_keeps_them_where_the_studio_looks(capsys):
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    own = load_model(NAME).card
    assert command.run(parser.parse_args(["train", NAME, "--seed", "2", "--checkpoints", "1"])) == 0
    assert f"epochs 0, 1, 2 are in {kept_folder(NAME)}" in capsys.readouterr().out
    assert read_series(NAME, kept_folder(NAME)).checkpoints[0].card.seed == 2
    assert load_model(NAME).card == own, "the project's own weights stay as they are"


def test_an_untrained_network_follows_its_seed_and_leaves_torchs_numbers_alone():
    before = torch.random.get_rng_state()
    one, same, other = (untrained(NAME, seed) for seed in (0, 0, 1))
    assert torch.equal(before, torch.random.get_rng_state())
    assert torch.equal(weights(one), weights(same))
    assert not torch.equal(weights(one), weights(other))
    assert not one.training
