"""`python -m idc_core experiment`: the printed table, the CSV, and the sentence for each mistake."""

import csv
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import idc_core as idc
from idc_core.cli import main
from idc_core.cli.experiment import EXPERIMENTS
from idc_core.coverage import IDC
from idc_core.datasets import DATASETS, load_dataset
from idc_core.experiments.ablation import ablate
from idc_core.experiments.faithfulness import COMPARED, faithfulness
from idc_core.experiments.rq1 import rq1
from idc_core.models import MODELS, Recipe, load_model

SMALL = ("--limit", "30", "--limit-train", "100")


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))


def run(capsys, *arguments):
    status = main(["experiment", *map(str, arguments)])
    output = capsys.readouterr()
    return status, output.out, output.err


def test_table_and_file_say_what_the_engine_finds(capsys, tmp_path):
    file = tmp_path / "rq1.csv"
    status, out, err = run(
        capsys, "rq1", "--models", "lenet5-digits", "lenet1-digits", "--m", 3, "--seeds", 2, *SMALL, "--out", file
    )
    assert (status, err) == (0, "")
    records = list(csv.DictReader(file.read_text().splitlines()))
    assert [(r["model"], r["unit"]) for r in records] == [
        (model, unit) for model in ("lenet5-digits", "lenet1-digits") for unit in ("activation", "deviations")
    ]
    important = [int(neuron) for neuron in records[0]["important_neurons"].split()]
    found = rq1(load_model("lenet5-digits"), load_dataset("digits", "test", 30), "fc2", important, seeds=2)
    for record, scaled in zip(records[:2], (False, True), strict=True):
        told = found.summary(scaled)
        assert float(record["important"]) == pytest.approx(told.important.mean)
        assert float(record["random_q3"]) == pytest.approx(told.random.q3)
        assert float(record["share_more"]) == pytest.approx(told.share_more)
        assert float(record["random_seed_1"]) == pytest.approx(found.distances(scaled)[1][1].mean())
        assert (record["tests"], record["train"], record["m"], record["neurons"]) == ("30", "100", "3", "84")
    heading, first, *rest = out.splitlines()
    assert heading.split()[:6] == ["MODEL", "LAYER", "TESTS", "M", "UNIT", "IMPORTANT"]
    assert first.split()[:6] == ["lenet5-digits", "fc2", "30", "3", "activation", f"{found.distance.mean():.3f}"]
    assert rest[-1] == f"written to {file}"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiments_name_models_that_exist(name):
    assert set(EXPERIMENTS[name].models) <= set(MODELS)


OWN_TESTS = ("cells", "filling", "finds", "forcing", "replacing", "rq6", "worth")
"""Experiments whose records other tests compare, or that take another network: tests/cli, experiments, and worth."""

LONG = ("deepxplore", "near")
"""Experiments that train or search for long; test_deepxplore looks at what they measure."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.rare if name in LONG else pytest.mark.slow)
        for name in EXPERIMENTS
        if name not in OWN_TESTS
    ],
)
def test_fields_of_every_experiment_are_there(capsys, name):
    status, out, _ = run(capsys, name, "--models", "lenet4-digits", "--cw", 0, "--seeds", 2, *SMALL)
    assert status == 0
    assert len(out.splitlines()) > 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--models", "lenet5-digits", "lenet9"), "There is no model 'lenet9'"),
        (("--models", "lenet1-digits", "--m", 7), "choose m of at most 6"),
        (("--models", "lenet1-digits", "--m", 3, 4), "rq1 takes one number of important neurons"),
        (("--models", "lenet1-digits", "--m", 0), "m must be a whole number"),
        (("--models", "lenet1-digits", "--seeds", 0), "seeds must be"),
        (("--models", "lenet1-digits", "--share", 2), "share must be"),
        (
            ("--models", "lenet1-digits", "--out", "nowhere/rq1.csv"),
            "which cannot be written, for its folder does not exist",
        ),
    ],
)
def test_mistakes_are_explained(capsys, arguments, sentence):
    status, out, err = run(capsys, "rq1", *SMALL, *arguments)
    assert (status, out) == (2, "")
    assert sentence in err


@pytest.mark.slow
def test_claims_are_tested_over_trainings_and_put_in_place_of_what_was_there(capsys, tmp_path, monkeypatch):
    short = Recipe("adamw", 3e-3, batch=32, epochs=1)
    monkeypatch.setitem(MODELS, "lenet1-digits", replace(MODELS["lenet1-digits"], recipe=short))
    page, file = tmp_path / "rq1.md", tmp_path / "rq1.csv"
    page.write_text("# RQ1\n\nWords.\n")
    arguments = ("rq1", "--models", "lenet1-digits", "--m", 3, "--trainings", 3, "--seeds", 2, *SMALL)
    status, out, err = run(capsys, *arguments, "--out", file, "--into", page)
    assert (status, err) == (0, "")
    records = list(csv.DictReader(file.read_text().splitlines()))
    assert [record["training"] for record in records] == ["0", "0", "1", "1", "2", "2"]
    assert len({record["fingerprint"] for record in records}) == 3
    ratios = np.array([float(record["ratio"]) for record in records if record["unit"] == "deviations"])
    told = next(line for line in out.splitlines() if "in each neuron's deviations" in line)
    assert f"{100 * (ratios.mean() - 1):+.2f}" in told
    written = page.read_text()
    assert written.startswith("# RQ1\n\nWords.\n\n<!-- made by: experiment rq1 --models lenet1-digits --trainings 3")
    page.write_text(written.replace("| network |", "| old |"))
    run(capsys, *arguments, "--into", page)
    assert page.read_text() == written


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("ablation", "--protocol", "paper"), "has no other protocol"),
        (("rq6", "--protocol", "paper"), "has no other protocol"),
        (("ablation", "--trainings", 2), "leave --trainings out"),
        (("rq1", "--into", "page.md"), "give --trainings 2 or more"),
    ],
)
def test_what_an_experiment_cannot_do_is_refused(capsys, arguments, sentence):
    status, out, err = run(capsys, *arguments, "--models", "lenet1-digits")
    assert (status, out) == (2, "")
    assert sentence in err


def test_an_unknown_experiment_is_a_usage_error(capsys):
    assert main(["experiment", "rq99"]) == 2
    assert "rq1" in capsys.readouterr().err


def test_ablation_has_a_record_for_each_number_of_silenced_neurons(capsys, tmp_path):
    file = tmp_path / "ablation.csv"
    status, _, err = run(capsys, "ablation", "--models", "lenet5-digits", "--m", 3, "--seeds", 2, *SMALL, "--out", file)
    assert (status, err) == (0, "")
    records = list(csv.DictReader(file.read_text().splitlines()))
    assert [record["silenced"] for record in records] == ["0", "1", "2", "3"]
    test = load_dataset("digits", "test", 30)
    important = [int(neuron) for neuron in records[0]["important_neurons"].split()]
    found = ablate(load_model("lenet5-digits"), test, test.targets, "fc2", important, seeds=2)
    assert [float(record["important"]) for record in records] == found.important.tolist()
    assert [float(record["random"]) for record in records] == found.random_mean.tolist()
    assert {record["unit"] for record in records} == {"accuracy"}


def test_rq2_has_a_row_for_every_suite_and_number_of_neurons(capsys, tmp_path):
    file = tmp_path / "rq2.csv"
    arguments = ("rq2", "--models", "lenet4-digits", "lenet1-digits", "--m", 4, 6, "--seeds", 2, *SMALL, "--out", file)
    status, out, err = run(capsys, *arguments)
    assert (status, err) == (0, "")
    records = list(csv.DictReader(file.read_text().splitlines()))
    assert [(r["model"], r["suite"], r["m"]) for r in records] == [
        (model, suite, m)
        for model in ("lenet4-digits", "lenet1-digits")
        for suite in ("U_O", "U_O+S", "U_O+DI", "U_O+train", "U_O+2S", "U_O+2DI")
        for m in ("4", "6")
    ]
    found = IDC(load_model("lenet4-digits"), "fc1", 6).fit(load_dataset("digits", "train", 100))
    assert float(records[1]["idc"]) == found.update(load_dataset("digits", "test", 30)).score
    assert out.splitlines()[0].split()[:4] == ["MODEL", "SUITE", "M", "INPUTS"]
    assert run(capsys, *arguments)[1] == out  # from what is finished
    assert run(capsys, *arguments, "--fresh")[1] == out


@pytest.mark.slow
def test_what_cannot_be_measured_has_a_row_that_says_so(capsys, tmp_path, data_folder):
    file = tmp_path / "rq3.csv"
    sizes = ("--attacked", 0, "--cw", 0, "--m", 4)
    status, _, err = run(capsys, "rq3", "--models", "lenet4-digits", "dave2-udacity", *sizes, *SMALL, "--out", file)
    assert (status, err) == (0, "")
    records = list(csv.DictReader(file.read_text().splitlines()))
    told = {(r["suite"], r["criterion"]): r["note"] for r in records if r["model"] == "dave2-udacity" and r["note"]}
    assert told[("U_O+FGSM", "")] == "attacks need a classifier"
    assert told[("U_O+S", "dsc")] == "this criterion needs a classifier"
    assert not [r for r in records if r["model"] == "lenet4-digits" and r["note"]]


def test_faithfulness_has_a_record_for_every_method(capsys, tmp_path):
    file = tmp_path / "faithfulness.csv"
    arguments = ("--models", "lenet1-digits", "--seeds", 2, "--limit", 3, "--out", file)
    status, out, err = run(capsys, "faithfulness", *arguments)
    assert (status, err) == (0, "")
    records = {record["method"]: record for record in csv.DictReader(file.read_text().splitlines())}
    assert list(records) == list(COMPARED)
    found = faithfulness(load_model("lenet1-digits"), load_dataset("digits", "test", 3), seeds=2)
    assert float(records["attnlrp"]["between"]) == pytest.approx(found.between()[0].mean())
    assert float(records["random"]["least_first_logit"]) == pytest.approx(found.areas("logit")[-1, 1].mean())
    assert float(records["value-path"]["probability_most_0.500"]) == pytest.approx(found.probability[2, 0, :, 4].mean())
    assert float(records["attnlrp"]["between_seed_1"]) == pytest.approx(found.between()[0, 1])
    refused = records["attention-rollout"]
    assert "none ran" in refused["note"]
    assert (refused["between"], refused["probability_most_0.500"]) == ("", "")
    assert "attention-rollout" in out


def test_layers_of_few_neurons_take_all_of_them(capsys):
    random = np.random.default_rng(0)
    inputs = random.normal(size=(40, 4)).astype(np.float32)
    torch.manual_seed(0)
    small = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    idc.dataset("three-data")(lambda split: (inputs, (inputs[:, 0] > 0).astype(np.int64)))
    idc.network("three", data="three-data")(lambda: small)
    try:
        status, out, err = run(capsys, "ablation", "--models", "three", "--seeds", 2)
        assert (status, err) == (0, "")
        assert [line.split()[4] for line in out.splitlines()[1:5]] == ["0", "1", "2", "3"]
        assert run(capsys, "ablation", "--models", "three", "--m", 6)[0] == 2
    finally:
        del MODELS["three"], DATASETS["three-data"]
