"""Rivals of DeepInspect's distances: slow versions, the published counts of MODE to the pair, and chance."""

import csv
from itertools import combinations
from math import comb

import numpy as np
import pytest

from idc_core.confusion import average_bias, by_chance, coincidence, evaluate, told_apart, weight_distance
from idc_core.datasets import load_dataset
from idc_core.errors import DataError
from idc_core.experiments.class_errors import class_error_rivals, rivals
from idc_core.models import load_model


def test_weights_lie_apart_by_euclid_and_labels_coincide_by_their_union():
    weights = np.random.default_rng(0).normal(size=(4, 7))
    labels = np.random.default_rng(1).integers(0, 2, (30, 4))
    labels[:, 3] = 0
    distance, together = weight_distance(weights), coincidence(labels)
    for one in range(4):
        for other in range(4):
            assert distance[one, other] == pytest.approx(np.linalg.norm(weights[one] - weights[other]))
            either = sum(row[one] or row[other] for row in labels)
            both = sum(row[one] and row[other] for row in labels)
            assert together[one, other] == pytest.approx(both / either if either else np.nan, nan_ok=True)
    with pytest.raises(DataError, match="two classes"):
        weight_distance(weights[0])
    with pytest.raises(DataError, match="several"):
        coincidence(labels[:, 0])


@pytest.mark.parametrize("setting", ["cifar100", "robust_cifar10_small", "coco"])
def test_last_layer_weights_give_the_published_counts_of_mode(reference_folder, setting):
    with (reference_folder / "papers" / "deepinspect-table3.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if (row["setting"], row["method"]) == (setting, "mode")]
    with (reference_folder / "papers" / "deepinspect-aucec.csv").open(encoding="utf-8") as file:
        gains = {(row["setting"], row["errors"]): row["gain_over_mode_percent"] for row in csv.DictReader(file)}
    kind = "type2" if setting == "coco" else "type1"
    with np.load(reference_folder / "deepinspect" / f"{setting}.npz", allow_pickle=False) as file:
        truth, weights, distance = (file[name] for name in (f"{kind}_pair", "final_layer_weight", "napvd"))
        given = {name: file[name] for name in (f"avg_cd_artefact_{kind}", f"{kind}_directional")}
    found = evaluate(weight_distance(weights), truth)
    for row, at in zip(rows, (found.at_deviations, found.at_share), strict=False):
        expected = (int(row["true_positives_pairs"]), int(row["false_positives_pairs"]))
        assert (at.true_positives, at.false_positives) == expected
    ratio = (1 + evaluate(distance, truth).gain_artefact) / (1 + found.gain_artefact)
    assert 100 * (ratio - 1) == pytest.approx(float(gains[setting, "confusion"]), abs=0.05)
    if setting == "coco":
        bias = average_bias(weight_distance(weights), "artefact", directional=given["type2_directional"])
        biased = evaluate(bias, given["avg_cd_artefact_type2"], "high", "artefact")
        assert (biased.at_deviations.true_positives, biased.at_deviations.false_positives) == (145, 324)
        assert (biased.at_share.true_positives, biased.at_share.false_positives) == (12, 20)


def test_labels_that_coincide_tell_coco_confusion_better_than_activations(reference_folder):
    with np.load(reference_folder / "deepinspect" / "coco.npz", allow_pickle=False) as file:
        together, distance, truth = coincidence(file["true_multi_hot"]), file["napvd"], file["type2_pair"]
    (row,) = rivals("confusion", together, {"distance": distance})[:1]
    assert row.spearman == pytest.approx(-0.621, abs=1e-3)  # printed is +0.96
    rows = rivals("confusion", truth, {"distance": distance, "coincidence": 1 - together})
    assert [(one.method, round(one.spearman, 2)) for one in rows[:2]] == [("distance", -0.55), ("coincidence", -0.74)]


def test_random_pairs_are_those_of_all_draws():
    chosen = list(combinations(range(7), 3))
    counts = [sum(pair < 4 for pair in draw) for draw in chosen]
    found = by_chance(7, 4, 3)
    assert found.mean == pytest.approx(np.mean(counts))
    shares = [comb(4, hits) * comb(3, 3 - hits) / comb(7, 3) for hits in range(4)]
    assert np.cumsum(shares)[found.low] >= 0.025 > (np.cumsum(shares)[found.low - 1] if found.low else 0)
    assert np.cumsum(shares)[found.high] >= 0.975


def slow_kruskal(values, classes):
    """Kruskal and Wallis's H without ties."""
    rank = {value: place for place, value in enumerate(sorted(values), 1)}
    n, total = len(values), 0.0
    for one in set(classes):
        own = [rank[value] for value, other in zip(values, classes, strict=True) if other == one]
        total += sum(own) ** 2 / len(own)
    return 12 / (n * (n + 1)) * total - 3 * (n + 1)


def test_classes_are_told_apart_by_rank_and_by_effect():
    random = np.random.default_rng(3)
    classes = np.repeat(np.arange(4), 200)
    # Deviation 1: the effects are about 0, 0.1, 0.35, 0.65 and 1 by the differences of the means.
    values = random.normal(size=800) + np.array([0, 0.05, 0.4, 1.4])[classes]
    found = told_apart(values, classes)
    assert found.statistic == pytest.approx(slow_kruskal(values.tolist(), classes.tolist()))
    assert found.p < 1e-6
    sizes = []
    for one, other in combinations(range(4), 2):
        first, second = values[classes == one], values[classes == other]
        sizes.append(abs(first.mean() - second.mean()) / np.sqrt((first.var(ddof=1) + second.var(ddof=1)) / 2))
    edges = {"negligible": (0, 0.2), "small": (0.2, 0.5), "medium": (0.5, 0.8), "large": (0.8, 99)}
    assert found.sizes == {
        name: pytest.approx(100 * np.mean([low <= size < high for size in sizes]))
        for name, (low, high) in edges.items()
    }
    with pytest.raises(DataError, match="differ"):
        told_apart(np.ones(800), classes)


def test_rivals_are_compared_on_one_truth_with_as_many_random_pairs():
    truth = np.zeros((5, 5))
    truth[0, 1] = truth[1, 0] = 1.0
    score, other = 1 - truth, np.random.default_rng(0).random((5, 5))
    rows = rivals("confusion", truth, {"a": score, "b": other + other.T})
    assert [(row.method, row.reported, row.true_pairs) for row in rows] == [
        ("a", 1, 1),
        ("b", rows[1].reported, 1),
        ("random pairs", 1, 1),
    ]
    assert (rows[0].found, rows[0].spearman) == (1, pytest.approx(-1))
    assert (rows[2].found, rows[2].low, rows[2].high) == (pytest.approx(0.1), 0, 1)


def test_a_network_is_compared_with_its_own_last_layer():
    model, test = load_model("lenet1-digits"), load_dataset("digits", "test")
    result = class_error_rivals(model, test)
    assert [(row.errors, row.method) for row in result.rows] == [
        (errors, method)
        for errors in ("confusion", "bias")
        for method in ("activations", "last-layer weights", "random pairs")
    ]
    assert sum(result.coverage.sizes.values()) == pytest.approx(100)
