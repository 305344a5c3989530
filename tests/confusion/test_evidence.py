"""Evidence of a network and of a person's own file, groups of classes, and everything found in it."""

import io
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import idc_core as idc
from idc_core.confusion import (
    Evidence,
    average_bias,
    average_disparity,
    class_distance,
    collect_statistics,
    evaluate,
    find_errors,
    network_evidence,
    own_evidence,
    pair_confusion,
    parse_groups,
    type1_confusion,
    type2_confusion,
)
from idc_core.errors import DataError, SettingError

NAMES = ("cat", "dog", "bird", "plane", "ship")


@pytest.fixture(scope="module")
def single():
    random = np.random.default_rng(0)
    true = random.integers(0, 5, 300)
    predicted = np.where(random.random(300) < 0.8, true, random.integers(0, 5, 300))
    values = np.clip(random.random((300, 12)) + 0.3 * np.eye(5, 12)[predicted], 0, 1)
    return Evidence(NAMES, predicted, true, values=values)


@pytest.fixture(scope="module")
def several():
    random = np.random.default_rng(1)
    true = random.random((400, 5)) < 0.4
    predicted = true ^ (random.random((400, 5)) < 0.1)
    return Evidence(NAMES, predicted, true, values=random.random((400, 12)))


def test_everything_found_is_what_its_parts_say(single):
    found = find_errors(single, 0.4, normalise=True, filtered=False, deviations=0.5, share=0.3)
    distance = class_distance(found.probability, True)
    directional = type1_confusion(single.true, single.predicted, 5)
    np.testing.assert_array_equal(found.distance, distance)
    np.testing.assert_array_equal(found.bias, average_bias(distance, filtered=False))
    np.testing.assert_array_equal(found.confusion, pair_confusion(directional))
    np.testing.assert_array_equal(found.disparity, average_disparity(directional))
    # As text: a precision of nothing reported is nan, which equals nothing.
    assert repr(found.confusion_found) == repr(evaluate(distance, found.confusion, deviations=0.5, share=0.3))
    assert repr(found.bias_found) == repr(evaluate(found.bias, found.disparity, "high", deviations=0.5, share=0.3))
    assert found.images.sum() == 300
    assert found.unseen == []


def test_suspicion_counts_standard_deviations(single):
    found = find_errors(single)
    upper = np.triu_indices(5, 1)
    values = found.distance[upper]
    np.testing.assert_allclose(found.suspicion[upper], (values.mean() - values) / values.std())
    reported = {tuple(pair) for pair in found.suspected.tolist() if found.suspicion[tuple(pair)] > 1}
    assert reported == {
        tuple(pair) for pair in found.suspected.tolist() if found.distance[tuple(pair)] < found.confusion_cutoff
    }
    assert len(reported) == found.confusion_found.at_deviations.reported
    assert int(found.truly_confused(found.suspected).sum()) == found.confusion_found.true_pairs
    assert int(found.truly_biased(found.biased).sum()) == found.bias_found.true_pairs


def test_neurons_of_a_pair(single):
    found = find_errors(single)
    both = np.minimum(found.probability[:, 0], found.probability[:, 3])
    others = found.probability[:, [1, 2, 4]].mean(1)
    np.testing.assert_allclose(found.others(0, 3), others, rtol=1e-12)
    shared = found.shared_neurons(0, 3, 4)
    np.testing.assert_allclose((both - others)[shared], sorted(both - others, reverse=True)[:4], rtol=1e-12)
    gap = np.abs(found.probability[:, 0] - found.probability[:, 3])
    assert gap[found.apart_neurons(0, 3, 3)].tolist() == sorted(gap, reverse=True)[:3]


def test_labels_never_enter_a_score(single):
    shuffled = np.random.default_rng(5).permutation(single.true)
    with_labels, without = (
        find_errors(Evidence(NAMES, single.predicted, true, values=single.values)) for true in (shuffled, None)
    )
    np.testing.assert_array_equal(with_labels.distance, without.distance)
    np.testing.assert_array_equal(with_labels.bias, without.bias)
    assert without.confusion is without.directional is without.confusion_found is without.bias_found is None
    assert without.truly_confused(without.suspected) is None


def test_several_labels(several):
    found = find_errors(several)
    np.testing.assert_array_equal(found.directional, type2_confusion(several.true, several.predicted))
    found = find_errors(several, kind="type1")
    np.testing.assert_array_equal(found.directional, type1_confusion(several.true, several.predicted, 5))


def test_groups_are_classes_of_their_own(single, several):
    groups = parse_groups("pets: dog, cat\n\n machines: plane,ship;", NAMES)
    assert groups == {"pets": [1, 0], "machines": [3, 4]}
    found = single.grouped(groups)
    assert found.class_names == ("bird", "pets", "machines")
    new = np.array([1, 1, 0, 2, 2])
    np.testing.assert_array_equal(found.predicted, new[single.predicted])
    np.testing.assert_array_equal(found.true, new[single.true])
    both = several.grouped(groups)
    np.testing.assert_array_equal(both.predicted[:, 1], several.predicted[:, 0] | several.predicted[:, 1])
    np.testing.assert_array_equal(both.predicted[:, 0], several.predicted[:, 2])
    assert single.grouped({}) is single
    # Counted over the union: the mean of the members, weighed by how often each is predicted.
    merged, own = find_errors(found), find_errors(single)
    weighed = own.probability[:, :2] @ own.images[:2] / own.images[:2].sum()
    np.testing.assert_allclose(merged.probability[:, 1], weighed)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pets cat", "Expected a group as"),
        ("pets: cow", "no class 'cow'"),
        ("pets: cat\npets: dog", "there twice"),
        ("pets: cat; others: cat", "in two groups"),
        ("dog: cat", "no other class has"),
        (": cat", "Expected a group as"),
    ],
)
def test_groups_that_make_no_sense_are_refused(single, text, words):
    with pytest.raises(SettingError, match=words):
        single.grouped(parse_groups(text, NAMES))


def test_a_network_of_the_registry():
    model, data = idc.load_model("lenet5-digits"), idc.load_dataset("digits")
    statistics = collect_statistics(model, data, ["conv1", "fc1"])
    evidence = network_evidence(statistics, data, data.class_names)
    np.testing.assert_array_equal(evidence.true, data.targets)
    other = network_evidence(statistics, data, [f"class {i}" for i in range(10)])
    assert other.true is None
    with pytest.raises(DataError, match="expected the 20 tests"):
        network_evidence(statistics, idc.load_dataset("digits", limit=20), data.class_names)
    with pytest.raises(DataError, match="no classes"):
        network_evidence(statistics, data, ())


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def test_own_probability_matrix(single):
    found = find_errors(single)
    own = own_evidence(npz(probability=found.probability, class_names=np.array(NAMES)))
    np.testing.assert_array_equal(find_errors(own).distance, found.distance)
    assert own.class_names == NAMES
    assert find_errors(own).images is None
    labelled = own_evidence(npz(probability=found.probability, predicted=single.predicted, true=single.true))
    assert labelled.class_names == ("0", "1", "2", "3", "4")
    np.testing.assert_array_equal(find_errors(labelled).confusion, found.confusion)
    with pytest.raises(DataError, match="cannot be taken together"):
        own.grouped({"pets": [0, 1]})


@pytest.mark.parametrize("fixture", ["single", "several"])
def test_own_activations(request, fixture):
    evidence = request.getfixturevalue(fixture)
    content = npz(
        activations=evidence.values.astype(np.float32),
        predicted=evidence.predicted,
        true=evidence.true,
        class_names=np.array(NAMES),
    )
    own = own_evidence(content, scaled=True)
    np.testing.assert_array_equal(own.predicted, evidence.predicted)
    np.testing.assert_allclose(find_errors(own).distance, find_errors(evidence).distance, atol=1e-6)


def test_raw_activations_are_scaled_over_each_layer():
    raw = np.array([[1.0, 3, 2, 10, 20], [5, 5, 5, -1, -3]])
    own = own_evidence(npz(activations=raw, predicted=np.array([0, 1]), layer_sizes=np.array([3, 2])))
    np.testing.assert_array_equal(own.values, [[0, 1, 0.5, 0, 1], [0, 0, 0, 1, 0]])
    one = own_evidence(npz(activations=raw, predicted=np.array([0, 1])))
    np.testing.assert_allclose(one.values[0], (raw[0] - 1) / 19)


def table(rows):
    return "\n".join(",".join(map(str, row)) for row in rows).encode()


def test_tables():
    matrix = own_evidence(table([("neuron", "cat", "dog"), (0, 0.5, 1), (1, 0, 0.25)]), "matrix.csv")
    assert matrix.class_names == ("cat", "dog")
    np.testing.assert_array_equal(matrix.probability, [[0.5, 1], [0, 0.25]])
    rows = [("predicted", "a", "b", "true"), ("dog", 0.5, 1, "cat"), ("cat", 0, 2, "cat")]
    one = own_evidence(table(rows), "tests.csv")
    assert one.class_names == ("cat", "dog")
    np.testing.assert_array_equal(one.predicted, [1, 0])
    np.testing.assert_array_equal(one.true, [0, 0])
    np.testing.assert_array_equal(one.values, [[0, 1], [0, 1]])
    many = own_evidence(table([("predicted", "a", "b"), ("2|0", 1, 2), ("", 0, 1)]), "tests.csv")
    assert many.class_names == ("0", "1", "2")
    np.testing.assert_array_equal(many.predicted, [[True, False, True], [False, False, False]])


OWN = pd.DataFrame({
    "one": [0.5, 1.25, -3, 0, 2, 2.5],
    "two": [1, 2, 3, 4, 5, 6],
    "predicted": ["cat", "dog", "cat", "dog", "cat", "dog"],
    "true": ["cat", "cat", "cat", "dog", "dog", "dog"],
})  # fmt: skip
NUMBERED = OWN.replace({"cat": 0, "dog": 3}).infer_objects()
HOW = {
    "plain": (OWN.to_csv(index=False), OWN),
    "with pandas' row numbers": (OWN.to_csv(), OWN),
    "with them twice": (OWN.reset_index(names="Unnamed: 0").to_csv(), OWN),
    "with ids": (OWN.assign(id=range(6)).to_csv(index=False), OWN),
    "semicolons and decimal commas": (OWN.to_csv(index=False, sep=";", decimal=","), OWN),
    "tabs, lines of Windows, a mark": ("\ufeff" + OWN.to_csv(index=False, sep="\t", lineterminator="\r\n"), OWN),
    "UTF-16": (OWN.to_csv(index=False).encode("utf-16"), OWN),
    "y_pred and y_true": (OWN.rename(columns={"predicted": "y_pred", "true": "y_true"}).to_csv(), OWN),
    "Predicted and Label": (OWN.rename(columns={"predicted": "Predicted", "true": "Label"}).to_csv(), OWN),
    "numbers": (NUMBERED.to_csv(), NUMBERED),
    "numbers as floats": (NUMBERED.astype({"true": float}).to_csv(), NUMBERED),
    "truth values": (OWN.replace({"cat": False, "dog": True}).to_csv(), OWN.replace({"cat": "False", "dog": "True"})),
    "zeros in front": (OWN.replace({"cat": "07", "dog": "10"}).to_csv(), OWN.replace({"cat": "07", "dog": "10"})),
    "row numbers by reset_index": (OWN.reset_index().reset_index().to_csv(index=False), OWN),
    "nothing and dates": (OWN.assign(notes="", day="2024-01-02").to_csv(index=False), OWN),
    "files put together": (OWN.to_csv(index=False) * 2, pd.concat([OWN, OWN])),
    "a class called NA": (OWN.replace("cat", "NA").to_csv(), OWN.replace("cat", "NA")),
}


@pytest.mark.parametrize("how", HOW)
def test_tables_of_predictions_are_read_as_data_are(how):
    content, meant = HOW[how]
    own = own_evidence(content if isinstance(content, bytes) else content.encode(), "own.csv", scaled=False)
    raw = meant[["one", "two"]].to_numpy(float)
    span = np.ptp(raw, axis=1, keepdims=True)
    np.testing.assert_allclose(own.values, (raw - raw.min(1, keepdims=True)) / np.where(span, span, 1))
    for column, found in (("predicted", own.predicted), ("true", own.true)):
        assert [own.class_names[place] for place in found] == meant[column].astype(str).tolist()
    left = OWN.columns.tolist() != str(content).splitlines()[0].replace(";", ",").replace("\t", ",").split(",")[:4]
    assert any("left out" in note for note in own.notes) or not left or "neurons, one, two" in str(own.notes)


def test_what_a_table_of_predictions_does_not_say_is_refused():
    gap = OWN.assign(true=["cat", None, "cat", "dog", "dog", "dog"])
    with pytest.raises(DataError, match=r"column 'true' has no class in row 2 \(1 rows\): leave these rows out"):
        own_evidence(gap.to_csv().encode(), "own.csv")
    with pytest.raises(DataError, match="no class is both predicted and true, such as '0' and 'cat'"):
        own_evidence(OWN.assign(predicted=NUMBERED["predicted"]).to_csv().encode(), "own.csv")
    with pytest.raises(DataError, match="expected activations or shares of classes in other columns than"):
        own_evidence(OWN[["predicted", "true"]].to_csv().encode(), "own.csv")


def test_files_of_predictions_that_are_no_tables_are_refused_as_data_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    OWN.to_feather("own.feather")
    with pytest.raises(DataError, match="is of a kind that is not read") as caught:
        own_evidence(tmp_path / "own.feather")
    exec(str(caught.value).partition("one that is: ")[2][:-1], {})  # noqa: S102 (what a sentence says is done)
    assert own_evidence(tmp_path / "own.csv").class_names == ("cat", "dog")
    with pytest.raises(DataError, match=r"is a web page, perhaps an error or a login"):
        own_evidence(b"<!doctype html><p>", "own.csv")
    with pytest.raises(DataError, match=r"expected activations or shares of classes in other columns than true"):
        own_evidence(OWN[["true"]].to_csv(index=False).encode(), "own.csv")


def test_predictions_in_other_tables(tmp_path):
    OWN.to_parquet(tmp_path / "own.parquet")
    OWN.to_json(tmp_path / "own.jsonl", orient="records", lines=True)
    for name in ("own.parquet", "own.jsonl"):
        assert own_evidence(tmp_path / name).true.tolist() == [0, 0, 0, 1, 1, 1]


HUGE = np.array([[3e38, -3e38], [0, 1]], np.float32)
TWO = {"activations": np.zeros((2, 3)), "predicted": np.array([0, 1])}


@pytest.mark.parametrize(
    ("content", "name", "words"),
    [
        (b"not a zip", "own.npz", "not an npz file or a table whose name ends in .csv"),
        (npz(inputs=np.zeros(3)), "own.npz", "expected an array probability, or activations"),
        (npz(probability=np.zeros((2, 2)), **TWO), "own.npz", "expected an array probability, or activations"),
        (npz(activations=np.zeros((2, 3))), "own.npz", "need an array predicted"),
        (
            npz(activations=np.zeros((3, 3)), predicted=np.array([0, 1])),
            "own.npz",
            "found activations of 3, predicted of 2 inputs",
        ),
        (npz(**TWO, true=np.array([0, 1, 1])), "own.npz", "predicted of 2, true of 3 inputs"),
        (npz(**TWO, true=np.array([0, -1])), "own.npz", "classes numbered from 0"),
        (npz(**TWO, class_names=np.array(["a", "a"])), "own.npz", "'a' is there twice"),
        (npz(**TWO, ids=np.array([1, 2]), label_ids=np.array([2, 1])), "own.npz", "of other inputs than the labels"),
        (npz(**TWO, layer_sizes=np.array([2, 2])), "own.npz", "sum to 3"),
        (npz(activations=np.full((2, 3), np.nan), predicted=np.array([0, 1])), "own.npz", "not finite"),
        (npz(activations=np.array([["a"]]), predicted=np.array([0])), "own.npz", "table of numbers"),
        (npz(activations=np.zeros((2, 3)), predicted=np.array([0, 10**9])), "own.npz", "classes numbered from 0"),
        (npz(**TWO, true=np.array([{}, {}])), "own.npz", "Python objects"),
        (
            npz(probability=np.zeros((2, 3)), class_names=np.array(["a", "b"])),
            "own.npz",
            "found probability of 3, class_names of 2 classes",
        ),
        (b"\xff\xfe\x00", "own.csv", "no text but binary"),
        (b"a,b", "own.csv", "at least one row"),
        (b"a,b\n0,1,1\n1,0", "own.csv", "no table with as many values in every row"),
        (b"a,b\n1,x", "own.csv", r"'b' is not all numbers \(row 1 has 'x'\); expected shares"),
        (b"a,b\n1,0_1", "own.csv", r"row 1 has '0_1'"),
        ("a,b\n1,\u0661".encode(), "own.csv", r"row 1 has '\\u0661'"),
        (b"a,b\n1,0.5\n1,nan", "own.csv", "'b': expected a number in every row; row 2 has none that is finite"),
        (b"a,b\n1,0.5\n1,1e999", "own.csv", "row 2 has none that is finite"),
        (b"a,b\n1,7", "own.csv", "shares in 0..1"),
        (b"a,a\n1,1", "own.csv", "'a' is there twice"),
        (b"a,b\x07\n1,1", "own.csv", "characters that can be shown"),
        (b"a,b\n", "own.csv", "at least one row"),
        (b"", "own.csv", "no columns"),
        (b"predicted,a,predicted\n1,1,0", "own.csv", "expected one column with the predicted classes; found"),
        (b"predicted,a,y_pred\n1,1,0", "own.csv", "found 'predicted', 'y_pred'"),
        (b"predicted,true\n1,1", "own.csv", "other columns than predicted, true"),
        (b"predicted,a\n9999,1", "own.csv", "numbered from 0, at most 5,000"),
        (b",".join(b"%d" % i for i in range(5001)) + b"\n0.5" + b",0" * 5000, "own.csv", "there are 5,001"),
        (npz(**TWO, class_names=np.array("ab")), "own.npz", "a list with a text for each class, found <U2 of shape"),
        (npz(**TWO, class_names=np.array([b"a", b"b"])), "own.npz", r"class_names has values of type .*S1"),
        (
            npz(**TWO, class_names=np.array([0.0, np.nan])),
            "own.npz",
            "a list with a text for each class, found float64",
        ),
        (npz(**TWO, class_names=np.array(["a", "\x1b[2J"])), "own.npz", "characters that can be shown"),
        (npz(**TWO, class_names=np.array(["a", ""])), "own.npz", "the class name ''"),
        (npz(**TWO, layer_sizes=np.array([2**63 - 1, 2**63 - 1, 5])), "own.npz", "sum to 3"),
        (npz(**TWO, layer_sizes=np.array([2**64 - 1, 4], np.uint64)), "own.npz", "sum to 3"),
        (npz(**TWO, layer_sizes=np.ones(3)), "own.npz", "whole numbers in one row"),
        (npz(activations=HUGE, predicted=np.array([0, 1])), "own.npz", "too far apart for float32"),
        (npz(probability=np.full((2, 2), 1.5)), "own.npz", "shares in 0..1"),
        (npz(probability=np.zeros((1, 6000))), "own.npz", "at most 5,000 classes.*there are 6,000"),
        (npz(activations=np.zeros((1, 2)), predicted=np.zeros((1, 10**6), bool)), "own.npz", "there are 1,000,000"),
        (npz(activations=np.zeros((1, 10**6)), predicted=np.array([4000])), "own.npz", "comparing 4,001 classes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "file",
)
def test_bad_files_are_refused(content, name, words):
    with pytest.raises(DataError, match=words):
        own_evidence(content, name)


def test_many_classes_of_a_small_table_take_little_memory():
    # Every row with another class: (rows, classes) would be 4,900 times as large as either.
    rows = [("predicted", "a"), *((f"class {i}|x", i) for i in range(4900))]
    content = table(rows)
    tracemalloc.start()
    with pytest.raises(DataError, match=r"comparing 4,901 classes by 1 neurons would take .* bytes of memory"):
        own_evidence(content, "x.csv")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


def test_unknown_names_in_a_table_are_refused():
    with pytest.raises(DataError, match="column 'predicted': row 2 has 'cow', which is none of the classes"):
        own_evidence(table([("predicted", "a"), ("cat", 1), ("cow", 2)]), "x.csv", class_names=("cat", "dog"))
    with pytest.raises(DataError, match=r"lie in 0\.\.1, but these reach"):
        own_evidence(npz(activations=np.full((2, 3), 2.0), predicted=np.array([0, 1])), scaled=True)
    with pytest.raises(DataError, match=r"nowhere\.npz is not there"):
        own_evidence(Path("nowhere.npz"))


def test_what_cannot_be_found(single):
    with pytest.raises(SettingError, match="Type 2 errors need several labels"):
        find_errors(single, kind="type2")
    with pytest.raises(DataError, match="two or more classes; there is 1"):
        find_errors(Evidence(NAMES, np.zeros(4, int), values=np.zeros((4, 2))))
    two = find_errors(Evidence(("a", "b"), np.array([0, 1]), np.array([1, 0]), values=np.eye(2)))
    assert two.bias is None
    assert not two.others(0, 1).any()
    assert two.disparity is None
    assert two.biased.shape == (0, 2)


def test_a_class_without_predictions_is_named(single):
    kept = single.predicted != 2
    found = find_errors(Evidence(NAMES, single.predicted[kept], single.true[kept], values=single.values[kept]))
    assert found.unseen == ["bird"]
    assert found.confusion_found.undefined == 4
    assert not (found.suspected == 2).any()


def _table(rows, label):
    return ("predicted,one\n" + f"{label},0.5\n" * rows).encode()


def _npz(**arrays):
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    return content.getvalue()


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (_table(20_000, 99_999), "own.csv"),
        ((",".join(map(str, range(6_000))) + "\n" + ",".join("0" * 6_000) + "\n").encode(), "own.csv"),
        (_npz(probability=np.zeros((1, 100_000), np.float32)), "own.npz"),
        (_npz(activations=np.zeros((2, 1)), predicted=np.zeros((2, 100_000), bool)), "own.npz"),
        (_npz(activations=np.zeros((2, 1)), predicted=np.array([0, 10**9])), "own.npz"),
    ],
    ids=["numbered labels", "heading", "probability matrix", "several labels", "labels"],
)
def test_too_many_classes_are_refused_before_every_two_are_compared(content, name):
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"5,000"):
            own_evidence(content, name)
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
    finally:
        tracemalloc.stop()
