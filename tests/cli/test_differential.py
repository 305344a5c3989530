"""`python -m idc_core differential`: what it prints and writes, the same every time, also with a person's weights."""

import csv
import shutil
from contextlib import chdir
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from idc_core.cli import main
from idc_core.datasets import load_dataset
from idc_core.generation import differential_search, rounded
from idc_core.models import load_model
from idc_core.models.card import WEIGHTS_FOLDER
from idc_core.models.weights import fingerprint
from idc_core.work import EXECUTORS
from idc_core.work.local import ByBlocks

FEW = ("--seeds", "12", "--iterations", "15")


def run(capsys, *arguments):
    status = main(["differential", *map(str, arguments)])
    output = capsys.readouterr()
    return status, output.out, output.err


def test_text_and_files_say_what_the_engine_finds(capsys, tmp_path):
    names = ["lenet5-digits", "lenet1-digits", "lenet4-digits"]
    npz, table = tmp_path / "finds.npz", tmp_path / "finds.csv"
    status, out, err = run(
        capsys, *FEW, "--constraint", "linf", "--set", "epsilon=0.2", "--out", npz, "--csv", table, "--seed", 4
    )
    assert status == 0
    assert "disagreements per second" in err
    with np.load(npz, allow_pickle=False) as file:
        found = {name: file[name] for name in file.files}
    tests = load_dataset("digits", "test")
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert [int(row["seed"]) for row in rows] == found["seed_ids"].tolist()
    made = sum(int(row["steps"]) > 0 for row in rows)
    agreed = 12 - (len(rows) - made)
    assert out.startswith(f"{made} of {agreed} seeds led to an input on which the models disagree within 15 steps.")
    assert np.abs(found["inputs"] - found["seeds"]).max() <= 0.2 + 1e-6
    with torch.no_grad():
        answers = [load_model(name)(torch.tensor(found["inputs"])).argmax(1).tolist() for name in names]
    assert [[int(row[name]) for row in rows] for name in names] == answers
    positions = found["seed_ids"]
    np.testing.assert_array_equal(tests.targets[positions], found["seed_targets"])
    assert float(rows[0]["linf"]) == pytest.approx(np.abs(found["inputs"][0] - found["seeds"][0]).max(), abs=1e-6)


def test_same_settings_same_bytes(capsys, tmp_path):
    texts = []
    for name in ("one", "two"):
        status, out, _ = run(capsys, *FEW, "--csv", tmp_path / name)
        assert status == 0
        texts.append((out.replace(name, ""), (tmp_path / name).read_bytes()))
    assert texts[0] == texts[1]


@pytest.fixture
def own(tmp_path):
    """A person's own weights: those of a network here, a little off, with their card."""
    model = load_model("lenet5-digits")
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.2 * weight.abs().mean() * torch.randn(weight.shape))
    path = tmp_path / "mine.safetensors"
    save_file(model.state_dict(), path)
    card = replace(model.card, fingerprint=fingerprint(model))
    path.with_suffix(".json").write_text(card.to_json())
    return path


def test_a_persons_own_weights(capsys, own):
    mine = load_model("lenet5-digits", weights=own)
    status, out, _ = run(capsys, *FEW, "--models", "lenet5-digits", f"lenet5-digits={own}", "--constraint", "linf")
    assert status == 0
    seeds = load_dataset("digits", "test").inputs[np.random.default_rng(0).permutation(540)[:12]]
    found = differential_search([load_model("lenet5-digits"), mine], seeds, "linf", iterations=15)
    assert len(found) > 0
    assert out.startswith(found.message)
    assert str(own) in out


class Elsewhere(ByBlocks):
    """Works in another folder than the command."""

    def run(self, *work, **options):
        with chdir("/"):
            return super().run(*work, **options)


def test_workers_find_weights_that_a_relative_path_names(capsys, own, monkeypatch):
    monkeypatch.setitem(EXECUTORS, "local", replace(EXECUTORS["local"], open=lambda _: Elsewhere()))
    monkeypatch.chdir(own.parent)
    words = (*FEW, "--models", f"lenet5-digits={own.name}", "lenet5-digits", "--constraint", "linf")
    outs = []
    for number, engine in enumerate(((), ("--engine", "local"))):
        monkeypatch.setenv("IDC_HOME", str(own.parent / str(number)))  # where the other one is not kept
        status, out, _ = run(capsys, *words, *engine)
        assert status == 0
        outs.append(out)
    assert outs[0] == outs[1]


def test_models_that_agree_everywhere_are_told_so(capsys, tmp_path):
    copy = tmp_path / "copy.safetensors"
    for ending in (".safetensors", ".json"):
        shutil.copy((WEIGHTS_FOLDER / "lenet5-digits").with_suffix(ending), copy.with_suffix(ending))
    status, out, _ = run(
        capsys, *FEW, "--models", "lenet5-digits", f"lenet5-digits={copy}", "--csv", tmp_path / "none.csv"
    )
    assert status == 0
    assert out.startswith("No difference found: the models agree on every input seen within 15 steps, from 12 seeds.")
    assert (tmp_path / "none.csv").read_text() == "seed\n"


def test_coarser_copies_seeds_near_a_cell_and_guidance_by_cells(capsys):
    arguments = ("--models", "lenet4-digits", "lenet4-digits:3", "--choose", "cell", "--guide", "idc")
    status, out, _ = run(capsys, *FEW, *arguments, "--constraint", "occlusion", "--set", "height=8", "width=6")
    assert status == 0
    assert "lenet4-digits:3" in out
    model = load_model("lenet4-digits")
    assert any((a != b).any() for a, b in zip(model.parameters(), rounded(model, 3).parameters(), strict=True))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--models", "lenet5-digits"), "at least two models"),
        (("--models", "lenet5-digits", "lenet5-digits:few"), "whole number of bits"),
        (("--models", "lenet5-digits", "lenet9"), "There is no model 'lenet9'"),
        (("--constraint", "fog"), "Unknown constraint"),
        (("--set", "limit"), "NAME=VALUE with a number"),
        (("--set", "limit=2"), "limit of Light must be a number from"),
        (("--set", "height=2"), "has no parameter 'height'"),
        (("--choose", "luck"), "way to choose seeds"),
        (("--guide", "tknp"), "can guide a search"),
        (("--models", "lenet5-digits", "convnet-cifar10"), "one task"),
        (("--out", "nowhere/finds.npz"), "does not exist"),
    ],
)
def test_mistakes_are_told_in_a_sentence(capsys, arguments, sentence):
    status, out, err = run(capsys, *FEW, *arguments)
    assert (status, out) == (2, "")
    assert sentence in err
    assert "Traceback" not in err
