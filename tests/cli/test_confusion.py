"""`python -m idc_core confusion`: what it prints and writes, when it ends with 1, and what it refuses."""

import csv
import json

import numpy as np
import pytest

import idc_core as idc
from idc_core.cli import main
from idc_core.confusion import activation_probability, class_distance, type1_confusion


def run(capsys, *arguments):
    status = main(["confusion", *map(str, arguments)])
    output = capsys.readouterr()
    return status, output.out, output.err


@pytest.fixture
def own(tmp_path):
    """Predictions of which cat and dog activate the neurons alike, and are confused."""
    random = np.random.default_rng(0)
    true = np.repeat(np.arange(4), 60)
    predicted = np.where((true < 2) & (random.random(240) < 0.3), 1 - true, true)
    pattern = np.array([[0.9, 0.1, 0.6], [0.9, 0.1, 0.65], [0.1, 0.9, 0.1], [0.3, 0.2, 0.9]])
    file = tmp_path / "own.npz"
    np.savez(
        file,
        activations=(random.random((240, 3)) < pattern[predicted]) * 1.0,
        predicted=predicted,
        true=true,
        class_names=np.array(["cat", "dog", "car", "ship"]),
    )
    return file


def test_ranked_pairs_of_a_network(capsys, tmp_path):
    status, out, err = run(
        capsys, "--layers", "conv1,fc1", "--threshold", 0.4, "--json", tmp_path / "a.json", "--csv", tmp_path / "a.csv"
    )
    assert (status, err) == (0, "")
    model, data = idc.load_model("lenet5-digits"), idc.load_dataset("digits")
    distance = class_distance(activation_probability(model, data, ["conv1", "fc1"], threshold=0.4))
    document = json.loads((tmp_path / "a.json").read_text())
    assert [one["rank"] for one in document["pairs"]] == list(range(1, 46))
    values = [one["distance"] for one in document["pairs"]]
    assert values == sorted(values)
    names = list(data.class_names)
    for one in document["pairs"]:
        assert one["distance"] == pytest.approx(distance[names.index(one["first"]), names.index(one["second"])])
    first = document["pairs"][0]
    assert f"{first['first']} - {first['second']}" in out
    rows = list(csv.DictReader((tmp_path / "a.csv").open()))
    assert [row["first"] for row in rows] == [one["first"] for one in document["pairs"]]
    assert document["confusion"]["pairs"] == 45
    assert "compared with labels" in out
    assert not any(one["certain"] for one in document["pairs"]), "no pair has more than two confused tests"
    assert len(document["findings"]) == 3
    assert all(sentence in out for sentence in document["findings"])
    assert "Truly confused among the" in out


def test_own_predictions(capsys, own):
    status, out, _ = run(capsys, "--own", own, "--scaled", "--top", 3)
    assert status == 0
    ranked = [line for line in out.splitlines() if " - " in line]
    assert len(ranked) == 3
    assert "cat - dog" in ranked[0]
    assert ranked[0].endswith("confirmed, certain")
    assert "Confused among 120 inputs of cat and dog: " in out
    with np.load(own) as file:
        both = type1_confusion(file["true"], file["predicted"], 4)
    assert f"{(both[0, 1] + both[1, 0]) / 2:.3f}" in ranked[0]


@pytest.mark.parametrize(
    ("limits", "measure", "status"),
    [
        (["cat:dog=0.5"], "suspicion", 1),
        (["dog:cat=99"], "suspicion", 0),
        (["car:ship=0.5"], "suspicion", 0),
        (["car:ship=0.5", "cat:dog=0.1"], "confusion", 1),
        (["cat:dog=0.9"], "confusion", 0),
        (["cat:dog=1"], "bias", 0),
        (["cat:car=0.0001"], "disparity", 1),
    ],
)
def test_a_named_pair_over_its_limit_ends_with_one(capsys, own, limits, measure, status):
    found = run(capsys, "--own", own, "--measure", measure, *(part for one in limits for part in ("--at-most", one)))
    assert found[0] == status
    assert (" is over the limit " in found[1]) == bool(status)


def test_groups(capsys, own):
    status, out, _ = run(capsys, "--own", own, "--groups", "pets: cat, dog")
    assert status == 0
    assert "pets" in out
    assert "cat" not in out


def test_a_class_that_is_never_predicted_is_named(capsys, tmp_path):
    file = tmp_path / "own.npz"
    np.savez(file, activations=np.eye(6), predicted=np.array([0, 1, 3, 0, 1, 3]), class_names=np.array(list("abcd")))
    status, out, _ = run(capsys, "--own", file)
    assert status == 0
    assert "no input is predicted as c: these classes are not analysed" in out
    status, _, err = run(capsys, "--own", file, "--at-most", "a:c=1")
    assert status == 2
    assert "is undefined" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--at-most", "cat=1"], "class:class=number"),
        (["--at-most", "cat:cow=1"], "class:class=number"),
        (["--at-most", "cat:dog=x"], "class:class=number"),
        (["--data", "digits"], "leave it out with --own"),
        (["--kind", "type2"], "several labels"),
        (["--threshold", "2"], "--threshold must be a number from 0 to 1"),
        (["--groups", "pets: cow"], "no class 'cow'"),
        (["--top", "-1"], "--top must be a whole number from 0"),
        (["--json", "/nowhere/at/all.json"], "--json"),
    ],
)
def test_mistakes_get_a_sentence(capsys, own, arguments, words):
    status, out, err = run(capsys, "--own", own, *arguments)
    assert (status, out) == (2, "")
    assert words in err


def test_a_network_without_classes_is_refused(capsys):
    status, _, err = run(capsys, "--model", "lenet5-digits", "--layers", "nowhere")
    assert status == 2
    assert "no layer 'nowhere'" in err
    status, _, err = run(capsys, "--model", "lenet5-digits", "--data", "cifar10")
    assert status == 2


def test_limits_on_truth_need_labels(capsys, tmp_path):
    file = tmp_path / "matrix.csv"
    file.write_text("cat,dog,ship\n0.5,0.4,0\n0.1,0.2,1\n")
    status, out, _ = run(capsys, "--own", file)
    assert status == 0
    assert "compared with labels" not in out
    assert "Confused among" not in out
    status, _, err = run(capsys, "--own", file, "--measure", "confusion", "--at-most", "cat:dog=1")
    assert status == 2
    assert "no confusion here" in err
