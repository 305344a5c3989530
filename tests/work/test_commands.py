"""`--engine` and `--address` of the commands, without Ray: the same documents, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from idc_core import store
from idc_core.cli import main
from idc_core.confusion import ClassErrors
from idc_core.opening import setup_files
from idc_core.store.values import pack
from idc_core.work import EXECUTORS, class_errors
from idc_core.work.local import ByBlocks

SETUP = """
import torch
import idc_core as idc

@idc.network("mine", data="digits")
def build():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 12), torch.nn.ReLU(), torch.nn.Linear(12, 10))
"""


def document(folder, *words):
    """What a command writes, but for how long it took."""
    file = Path(folder) / "found.json"
    assert main([*words, "--json", str(file)]) == 0
    found = json.loads(file.read_text(encoding="utf-8"))
    found.pop("seconds", None)
    return found


def test_analyze_finds_the_same(tmp_path):
    words = ("analyze", "--fresh", "--layer", "fc1", "--limit-train", "700")
    here, there = document(tmp_path, *words), document(tmp_path, *words, "--engine", "local")
    assert there.pop("importance") == pytest.approx(here.pop("importance"), rel=1e-6)
    for found in (here, there):
        for neuron in found["neurons"]:
            neuron.pop("importance")
    assert there == here


def test_what_an_engine_found_is_kept_for_every_engine(capsys, tmp_path, monkeypatch):
    opened = []
    one = replace(EXECUTORS["ray"], open=lambda address: opened.append(address) or ByBlocks())
    monkeypatch.setitem(EXECUTORS, "ray", one)
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    words, there = ("analyze", "--layer", "fc2", "--limit-train", "300"), ("--engine", "ray", "--address", "10.0.0.1:1")
    made = document(tmp_path, *words, *there)
    assert "is kept" not in capsys.readouterr().out
    for again in (there, (), ("--engine", "local")):
        assert document(tmp_path, *words, *again) == made
        assert "made before and is kept" in capsys.readouterr().out
    assert opened == ["10.0.0.1:1"]
    assert main(("runs",)) == 0
    assert "lenet5-digits" in capsys.readouterr().out


@pytest.mark.parametrize("groups", [(), ("--groups", "even: 0, 2, 4; round: 6, 8, 9")])
def test_confusion_finds_the_same_and_keeps_it(tmp_path, monkeypatch, groups):
    words = ("confusion", "--threshold", "0.4", *groups)
    made, kept = [], []
    for number, engine in enumerate(((), ("--engine", "local"))):
        home = tmp_path / str(number)
        monkeypatch.setenv("IDC_HOME", str(home))  # where the other one is not kept
        made.append(document(tmp_path, *words, *engine))
        found = {file.name: store.find(file) for file in (home / "results").glob("*.safetensors")}
        kept.append({name: pack(one) for name, one in found.items() if isinstance(one, ClassErrors)})
    assert made[0] == made[1]
    assert len(kept[0]) == 1
    np.testing.assert_equal(kept[1], kept[0])
    monkeypatch.setattr(class_errors, "count_classes", None)
    assert document(tmp_path, *words, "--engine", "local") == made[0]


def test_inspect_prints_the_same(capsys, tmp_path, monkeypatch):
    words = ("inspect", "lenet5-digits", "--layers", "fc2", "--measures", "pearson")
    assert main(words) == 0
    here = capsys.readouterr().out
    monkeypatch.setenv("IDC_HOME", str(tmp_path))  # where the first one is not kept
    assert main((*words, "--engine", "local")) == 0
    assert capsys.readouterr().out == here


@pytest.mark.rare
def test_verify_prints_the_same(capsys):
    words, outs = ("verify", "charlstm-sql", "is a digit", "--limit", "200", "--pairs", "20", "--sets", "9"), []
    for engine in ((), ("--engine", "local")):
        assert main((*words, *engine)) == 0
        outs.append(capsys.readouterr().out)
    assert outs[0] == outs[1]


@pytest.mark.rare
@pytest.mark.parametrize("models", [("lenet5-digits", "lenet1-digits"), ("lenet5-digits", "lenet5-digits:4")])
def test_differential_writes_the_same(capsys, tmp_path, monkeypatch, models):
    words = ("differential", "--models", *models, "--seeds", "40", "--constraint", "linf", "--guide", "tknc", "--csv")
    written = []
    for number, engine in enumerate(((), ("--engine", "local"))):
        monkeypatch.setenv("IDC_HOME", str(tmp_path / str(number)))  # where the other one is not kept
        file = tmp_path / f"{number}.csv"
        assert main((*words, str(file), *engine)) == 0
        written.append((file.read_text(encoding="utf-8"), capsys.readouterr().out.replace(str(file), "")))
    assert written[0] == written[1]
    assert len(written[0][0].splitlines()) > 2


@pytest.mark.rare
@pytest.mark.parametrize(("rule", "runs"), [("epsilon", 2), ("z", 3)])
def test_report_writes_the_same(tmp_path, monkeypatch, rule, runs):
    opened, local = [], EXECUTORS["local"]
    monkeypatch.setitem(EXECUTORS, "local", replace(local, open=lambda address: opened.append(1) or ByBlocks()))
    monkeypatch.chdir(tmp_path)
    words = ("report", "--layer", "fc2", "--m", "3", "--limit-train", "500", "--rule", rule)
    here, there = tmp_path / "here", tmp_path / "there"
    for home, engine in ((here, ()), (there, ("--engine", "local"))):
        monkeypatch.setenv("IDC_HOME", str(home))  # where the other one is not kept
        assert main((*words, *engine, "--json", f"{home}.json")) == 0
    assert len(opened) == runs
    assert Path(f"{there}.json").read_text(encoding="utf-8") == Path(f"{here}.json").read_text(encoding="utf-8")
    assert main((*words, "--engine", "local")) == 0
    assert len(opened) == runs  # everything is kept


def test_workers_open_the_setup_files_of_the_command(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(SETUP, encoding="utf-8")
    words = ("analyze", "--setup", str(file), "--model", "mine", "--layer", "1", "--engine", "local")
    try:
        found = document(tmp_path, *words)
    finally:
        setup_files._close_all()
    assert found["model"]["name"] == "mine"
    assert found["covered"] > 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("analyze", "--address", "10.0.0.1:6379"), "add --engine ray"),
        (("analyze", "--engine", "spark"), "expected one of local, ray"),
        (("inspect", "lenet5-digits", "--engine", "local", "--error", "0.1"), "--error"),
        (("inspect", "lenet5-digits", "--engine", "local", "--measures", "logistic"), "groups of units"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(capsys, words, said):
    assert main(words) == 2
    assert said in capsys.readouterr().err
