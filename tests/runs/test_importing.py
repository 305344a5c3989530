"""Results from elsewhere: good ones are taken as they are, all others refused in a sentence."""

import json
import os
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import idc_core as idc
from idc_core import store
from idc_core.cli import main
from idc_core.errors import DataError
from idc_core.runs import RUN_KINDS, PlannedAnalysis, find_runs, import_runs
from idc_core.runs.agreement import _CHECKS
from idc_core.store import result_file
from tests.runs.conftest import analysis, keep, told


@pytest.fixture
def elsewhere(home, monkeypatch, tmp_path):
    """Two runs and parts of results of another computer, and an empty home here."""
    keep((1,))
    keep((2,), analysis(1))
    for kind in ("heatmaps", "class-errors", "searches"):  # those of a person's own predictions are no run
        store.kept(kind, (1,), lambda: np.zeros(3))
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "here"))
    return home


def test_a_folder_is_taken_and_a_second_time_known(elsewhere, capsys):
    assert main(["import-run", str(elsewhere)]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("taken: 2, here already: 0, refused: 0, left out, as they are parts")
    assert said.out.endswith(": 3\n")
    assert said.err == ""
    found = find_runs()
    assert len(found) == 2
    for run in found:
        name = f"{run.id}{store.ENDING}"
        assert (store.results_folder() / name).read_bytes() == (elsewhere / "results" / name).read_bytes()
    again = import_runs([elsewhere / "results"])
    assert len(again.known) == 2
    assert main(["runs", "--json"]) == 0
    assert [one["id"] for one in json.loads(capsys.readouterr().out)] == [run.id for run in found]
    assert main(["runs", "--kind", "analysis", "--text", "net"]) == 0
    assert "IDC" in capsys.readouterr().out
    assert main(["runs", "--kind", "nonsense"]) == 2


def rewritten(path, **texts):
    """Write a file of other texts with a checksum that fits, as a forger would."""
    arrays = load_file(path)
    with result_file.safe_open(path, framework="numpy") as file:
        held = file.metadata() | texts
    held.pop("checksum")
    save_file(arrays, path, held | {"checksum": result_file._checksum(held, arrays)})


def with_facts(path, **changes):
    facts = vars(store.read_facts(path))
    rewritten(path, facts=json.dumps(facts | changes))


def with_tree(path, change):
    with result_file.safe_open(path, framework="numpy") as file:
        tree = json.loads(file.metadata()["tree"])
    rewritten(path, tree=json.dumps(change(tree)))


def field(name, value):
    def change(tree):
        tree["object"][1][name] = value
        return tree

    return change


def with_settings(path, **settings):
    with_facts(path, settings=told(**settings))


def with_array(path, name, change):
    """Change one array, in a file whose checksum fits."""
    with result_file.safe_open(path, framework="numpy") as file:
        place = json.loads(file.metadata()["tree"])["object"][1][name]["array"]
    arrays = load_file(path)
    arrays[place] = np.ascontiguousarray(change(arrays[place]))
    with result_file.safe_open(path, framework="numpy") as file:
        held = file.metadata()
    held.pop("checksum")
    save_file(arrays, path, held | {"checksum": result_file._checksum(held, arrays)})


def other_score(path):
    with_tree(path, field("score", 0.125))
    with_facts(path, scores=store.read_facts(path).scores | {"idc": 0.125})


WRONG = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-9]),
    "one bit": lambda path: path.write_bytes(path.read_bytes()[:-1] + bytes([path.read_bytes()[-1] ^ 1])),
    "pickle": lambda path: path.write_bytes(b"\x80\x04cos\nsystem\n(S'true'\ntR."),
    "empty": lambda path: path.write_bytes(b""),
    "another kind": lambda path: with_facts(path, kind="model"),
    "version": lambda path: with_facts(path, version="../../etc"),
    "made": lambda path: with_facts(path, made="yesterday"),
    "no network": lambda path: with_facts(path, settings={"layer": "fc"}),
    "settings in depth": lambda path: with_facts(path, settings={"network": {"a": 1}, "tests": "t", "layer": "l"}),
    "long setting": lambda path: with_facts(path, settings={"network": "n" * 3000, "tests": "t", "layer": "l"}),
    "other figures": lambda path: with_facts(path, scores={"idc": 1.0}),
    "a text": lambda path: with_tree(path, lambda tree: "hello"),
    "another class": lambda path: with_tree(
        path, lambda tree: {"object": ["idc_core.store.marks:Mark", {"name": "x", "pinned": True}]}
    ),
    "the program itself": lambda path: with_tree(path, lambda tree: {"object": ["idc_core.__main__:main", {}]}),
    "a class of Python": lambda path: with_tree(path, lambda tree: {"object": ["subprocess:Popen", {"args": "true"}]}),
    "a function": lambda path: with_tree(path, lambda tree: {"object": ["idc_core.base.files:sweep", {}]}),
    "another type": lambda path: with_tree(path, field("assignments", "cells")),
    "no array": lambda path: with_tree(path, field("codes", None)),
    "a huge array": lambda path: with_tree(path, field("codes", {"items": ["|O", [10**15], []]})),
    "long texts": lambda path: with_tree(path, field("codes", {"items": ["<U1000000000", [1], ["a"]]})),
    "deep": lambda path: rewritten(path, tree="[" * 100_000 + "]" * 100_000),
    "missing field": lambda path: with_tree(path, lambda tree: {"object": [tree["object"][0], {}]}),
    "a class that no run has": lambda path: with_tree(
        path,
        field("seconds", {"dict": [["all", {"object": ["idc_core.models.network_file:NetworkFile", {"path": "/"}]}]]}),
    ),
    "not numbers": lambda path: with_array(path, "test_activations", lambda values: values * np.nan),
    "infinite": lambda path: with_array(path, "importance", lambda values: values + np.inf),
    "other types": lambda path: with_array(path, "codes", lambda values: values.astype(np.uint8)),
    "flattened": lambda path: with_array(path, "assignments", lambda values: values.reshape(-1)),
    "fewer tests": lambda path: with_array(path, "predictions", lambda values: values[:-1]),
    "clusters that there are not": lambda path: with_array(path, "assignments", lambda values: values + np.uint8(200)),
    "neurons that there are not": lambda path: with_array(path, "important", lambda values: values + 1000),
    "cells of other tests": lambda path: with_array(path, "codes", lambda values: values[::-1]),
    "another layer": lambda path: with_tree(path, field("layer", "javascript:alert(1)")),
    "no settings": lambda path: with_tree(path, field("settings", {"dict": []})),
    "no seconds": lambda path: with_tree(path, field("seconds", {"dict": [["all", "long"]]})),
    "many neurons": lambda path: with_tree(path, field("m", 10**9)),
    "many neurons, as its settings say": lambda path: with_settings(path, m=10**9),
    "a layer that is a list": lambda path: with_settings(path, layer=["fc"]),
    "more tests in its settings": lambda path: with_settings(path, test_inputs=61),
    "an address that runs": lambda path: with_settings(path, address="javascript:alert(1)"),
    "an address elsewhere": lambda path: with_settings(path, address="//example.org/?m=3"),
    "another score": other_score,
    "name": lambda path: path.rename(path.with_name(f"run{store.ENDING}")),
    "pipe": lambda path: (path.unlink(), os.mkfifo(path)),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_hostile_file_is_refused_in_a_sentence_and_leaves_nothing(elsewhere, tmp_path, wrong):
    source = next(path for path in (elsewhere / "results").glob("*") if store.read_facts(path).kind == "analysis")
    folder = tmp_path / "copied"
    folder.mkdir()
    shutil.copy(source, folder)
    WRONG[wrong](folder / source.name)
    found = import_runs([folder])
    assert found.taken == []
    (sentence,) = found.refused
    assert "is refused" in sentence
    assert ".partial" not in sentence
    assert len(sentence) < 700
    assert not list((tmp_path / "here").rglob("*.safetensors"))
    assert not list((tmp_path / "here").rglob("*.partial"))


def test_a_run_under_the_name_of_another_is_found_out(home, capsys):
    """A file's name is a digest that cannot be checked: what lies under it is compared when it is asked for."""
    data = {split: idc.load_dataset("digits", split, 100) for split in ("train", "test")}
    plan = PlannedAnalysis(idc.load_model("lenet1-digits").card, data["train"], data["test"], "conv2", 3)
    here = store.place("analysis", plan.key)
    other = store.place("analysis", ("other",))
    keep(("other",), analysis(tests=60))
    other.rename(here)
    with pytest.raises(DataError, match=r"is not of 'conv2', m = 3, 100 and 100 inputs: it was imported or changed\."):
        plan.planned(plan.sources(lambda: None)).found()


def test_every_kind_is_looked_through():
    assert set(_CHECKS) == {*RUN_KINDS, "trace"}


def test_runs_of_another_version_are_taken_and_places_without_results_are_not(elsewhere, tmp_path):
    old = next(path for path in (elsewhere / "results").glob("*") if store.read_facts(path).kind == "analysis")
    facts = {"edition" if name == "version" else name: value for name, value in vars(store.read_facts(old)).items()}
    rewritten(old, facts=json.dumps(facts | {"edition": "0" * 16}))  # as before November 2026
    assert import_runs([old]).taken == [old.stem]
    assert [run.is_current for run in find_runs()] == [False]
    for wrong in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(DataError):
            import_runs([wrong])
