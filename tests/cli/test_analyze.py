"""`python -m idc_core analyze`: what it prints and writes, and the sentence for each mistake."""

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from idc_core.cli import main
from idc_core.cli.analyze import render
from idc_core.datasets import load_dataset
from idc_core.models import load_model

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((Path(__file__).parent / "analysis.schema.json").read_text())
SMALL = ("--limit-train", "400", "--limit-test", "150")


def run(capsys, *arguments):
    status = main(["analyze", *map(str, arguments)])
    output = capsys.readouterr()
    return status, output.out, output.err


@pytest.fixture
def analyse(capsys, tmp_path):
    """Run the command on a few digits and return what it wrote and what it printed."""

    def analyse(*arguments):
        file = tmp_path / "result.json"
        status, out, err = run(capsys, *SMALL, *arguments, "--json", file)
        assert (status, err) == (0, "")
        document = json.loads(file.read_text())
        jsonschema.validate(document, SCHEMA)
        return document, out

    return analyse


def test_document_agrees_with_itself_and_with_the_network(analyse):
    document, _ = analyse()
    neurons = document["neurons"]
    assert len(neurons) == 6
    assert [entry["rank"] for entry in neurons] == [1, 2, 3, 4, 5, 6]
    best = np.argsort(-np.array(document["importance"]), kind="stable")[:6]
    assert [entry["neuron"] for entry in neurons] == best.tolist()
    for entry in neurons:
        assert entry["importance"] == document["importance"][entry["neuron"]]
        assert len(entry["centroids"]) == len(entry["counts"]) == entry["clusters"]
        centroids = np.array(entry["centroids"])
        assert np.allclose(entry["boundaries"], (centroids[1:] + centroids[:-1]) / 2)
        assert sum(entry["counts"]) == document["train"]["inputs"] == 400
    assert document["total"] == math.prod(entry["clusters"] for entry in neurons)
    assert 0 < document["covered"] <= document["test"]["inputs"] == 150
    assert document["idc"] == pytest.approx(document["covered"] / document["total"])

    model, test = load_model("lenet5-digits"), load_dataset("digits", "test", 150)
    import torch

    with torch.no_grad():
        predicted = model(torch.from_numpy(test.inputs.copy())).argmax(1).numpy()
    assert document["accuracy"] == pytest.approx(float((predicted == test.targets).mean()))
    assert document["rmse"] is None
    assert document["model"]["fingerprint"] == model.card.fingerprint
    assert document["test"]["fingerprint"] == test.fingerprint


def test_printed_text_says_what_the_document_holds(analyse):
    document, out = analyse("--m", 3)
    assert "LeNet-5" in out
    assert f"layer {document['settings']['layer']}, m = 3" in out
    assert f"accuracy {100 * document['accuracy']:.2f} %" in out
    covered, total = document["covered"], document["total"]
    assert f"covered {covered:,} of {total:,} cells: IDC {100 * document['idc']:.2f} %" in out
    lines = out.splitlines()
    table = lines.index(next(line for line in lines if line.startswith("RANK"))) + 1
    for entry, line in zip(document["neurons"], lines[table : table + 3], strict=True):
        assert line.split()[:2] == [str(entry["rank"]), str(entry["neuron"])]
        assert line.split()[3:] == [str(entry["clusters"]), *(f"{value:.4g}" for value in entry["centroids"])]
    for step in document["seconds"]:
        assert any(line.startswith(f"{step} ") for line in lines)


def test_regression_is_judged_by_its_error(analyse):
    document, _ = analyse("--m", 2)
    assert "tests of digits: RMSE 0.1235\n" in render(document | {"accuracy": None, "rmse": 0.123456})


def test_tests_with_other_classes_have_no_accuracy(analyse, monkeypatch):
    import idc_core.datasets

    def load(name, split, limit, **options):
        loaded = load_dataset(name, split, limit, **options)
        return replace(loaded, class_names=tuple("abcdefghij")) if split == "test" else loaded

    monkeypatch.setattr(idc_core.datasets, "load_dataset", load)
    document, out = analyse("--m", 2)
    assert document["accuracy"] is None
    assert "there is no accuracy" in out
    assert document["covered"] > 0


@pytest.mark.parametrize(
    ("arguments", "settings"),
    [
        (("--layer", "conv2", "--m", "4"), {"layer": "conv2", "m": 4}),
        (("--rule", "gamma"), {"rule": "gamma"}),
        (("--epsilon", "0.25"), {"epsilon": 0.25}),
        (("--clusters", "3"), {"clusters": [3]}),
        (("--priority", "absolute"), {"priority": "absolute"}),
        (("--drop-zeros",), {"drop_zeros": True}),
        (("--clustering", "hierarchical"), {"clustering": "hierarchical"}),
        (("--original",), {"original": True}),
    ],
)
def test_every_option_reaches_the_engine(analyse, arguments, settings):
    plain, _ = analyse()
    document, _ = analyse(*arguments)
    assert document["settings"] == plain["settings"] | settings
    results = ("importance", "neurons", "covered", "total")
    assert [document[key] for key in results] != [plain[key] for key in results]


def test_alone_it_works_offline_on_digits(tmp_path):
    """With no arguments, no data folder, an empty cache and no way to the network."""
    environment = {key: value for key, value in os.environ.items() if key not in ("IDC_DATA", "PYTHONPATH")}
    nowhere = "http://127.0.0.1:9"
    environment |= {"IDC_HOME": str(tmp_path), "http_proxy": nowhere, "https_proxy": nowhere}
    done = subprocess.run(
        [sys.executable, "-m", "idc_core", "analyze"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "540 tests of digits" in done.stdout
    assert "IDC" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--model", "lenet9"), ("'lenet9'", "lenet5-digits")),
        (("--data", "emnist"), ("'emnist'", "digits")),
        (("--layer", "fc9"), ("'fc9'", "fc2")),
        (("--m", "0"), ("m", "0")),
        (("--m", "1000"), ("1000", "84")),
        (("--rule", "delta"), ("'delta'", "epsilon")),
        (("--epsilon", "-1"), ("epsilon", "-1")),
        (("--clusters", "1"), ("1", "2")),
        (("--clustering", "x"), ("'x'", "k-means, hierarchical, dbscan, gaussian-mixture")),
        (("--clustering", "dbscan", "--clusters", "3"), ("DBSCAN", "finds the number of clusters itself")),
        (("--limit-train", "0"), ("'0'", "from 1 to")),
        (("--limit-test", "-5"), ("'-5'", "from 1 to")),
        (("--data", ""), ("''", "digits")),
        (("--data", "cifar10"), ("cifar10", "(1, 28, 28)", "(3, 32, 32)", "fashion-mnist")),
        (("--data", "20newsgroups"), ("20newsgroups", "(1, 28, 28)", "digits")),
        (("--json", "no/such/folder/result.json"), ("no/such/folder", "--json")),
    ],
)
def test_mistakes_get_a_sentence(capsys, arguments, words):
    status, out, err = run(capsys, *SMALL, *arguments)
    assert status == 2
    assert out == ""
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1
    assert err.strip().endswith(".")
    for word in words:
        assert word in err


@pytest.mark.parametrize("clusters", ["2,x", "", "2,,3"])
def test_clusters_must_be_whole_numbers(capsys, clusters):
    status, _, err = run(capsys, "--clusters", clusters)
    assert status == 2
    assert "such as 2,3,4" in err


def test_file_is_replaced_whole(capsys, tmp_path):
    file = tmp_path / "result.json"
    file.write_text("an older result")
    status, out, _ = run(capsys, *SMALL, "--json", file)
    assert status == 0
    assert f"written to {file}" in out
    jsonschema.validate(json.loads(file.read_text()), SCHEMA)
    assert list(tmp_path.iterdir()) == [file]


def test_file_that_cannot_be_written(capsys, tmp_path):
    status, _, err = run(capsys, *SMALL, "--json", tmp_path)
    assert status == 2
    assert "cannot be written" in err
    assert list(tmp_path.iterdir()) == []


def test_a_sketch_is_told_with_its_bounds_and_never_stands_for_the_exact_result(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    exact = run(capsys, *SMALL)[1]
    assert "sketch" not in exact
    (tmp_path / "config.toml").write_text("[limits]\nsketch_from = 20\n", encoding="utf-8")
    status, out, _ = run(capsys, *SMALL, "--json", tmp_path / "result.json")
    document = json.loads((tmp_path / "result.json").read_text())
    jsonschema.validate(document, SCHEMA)
    assert status == 0
    assert document["sketch"] in out
    assert "Proven bounds on the distance to exact k-means: centroids" in out
    for neuron in document["neurons"]:
        assert len(neuron["sketch"]["centroids"]) == neuron["clusters"]
        assert neuron["sketch"]["cells"] <= document["train"]["inputs"]
    (tmp_path / "config.toml").write_text("[limits]\nmemory_mib = 1024\n", encoding="utf-8")
    again = run(capsys, *SMALL)[1]
    assert "is kept" in again
    assert "sketch" not in again
