"""Every published and derived value of the DeepInspect reference, within its stated tolerance."""

import json

import numpy as np
import pytest
import torch
from torch import nn

from idc_core.confusion import (
    activation_probability,
    average_bias,
    average_disparity,
    class_distance,
    collect_statistics,
    count_again,
    cutoff,
    evaluate,
    near_cutoff,
    pair_confusion,
    type1_confusion,
    type2_confusion,
)

SETTINGS = {"cifar100": ("type1",), "robust_cifar10_small": ("type1",), "coco": ("type1", "type2")}
CASES = [(name, kind) for name, kinds in SETTINGS.items() for kind in kinds]


@pytest.fixture(scope="module")
def load(reference_folder):
    read = {}

    def opened(name):
        if name not in read:
            with np.load(reference_folder / "deepinspect" / f"{name}.npz", allow_pickle=False) as file:
                read[name] = dict(file)
        return read[name]

    return opened


@pytest.fixture(scope="module")
def expected(reference_folder):
    return json.loads((reference_folder / "deepinspect" / "expected_metrics.json").read_text(encoding="utf-8"))


def labels_of(data):
    if "true_labels" in data:
        return data["true_labels"], data["predicted_labels"]
    return data["true_multi_hot"], data["predicted_multi_hot"]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_confusion_is_recounted_from_labels(load, name, kind):
    data = load(name)
    true, predicted = labels_of(data)
    found = (
        type1_confusion(true, predicted, len(data["class_names"]))
        if kind == "type1"
        else type2_confusion(true, predicted)
    )
    published = data[f"{kind}_directional"]
    np.testing.assert_array_equal(np.isnan(found), np.isnan(published))
    np.testing.assert_allclose(found, published, rtol=0, atol=1e-12)
    np.testing.assert_allclose(pair_confusion(published), data[f"{kind}_pair"], rtol=0, atol=1e-10)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_disparity(load, name, kind):
    data = load(name)
    for form in ("equation", "artefact"):
        found = average_disparity(data[f"{kind}_directional"], form)
        np.testing.assert_allclose(found, off_diagonal(data[f"avg_cd_{form}_{kind}"]), rtol=0, atol=1e-10)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_bias(load, name, kind):
    data = load(name)
    found = average_bias(data["napvd"], "artefact", directional=data[f"{kind}_directional"])
    np.testing.assert_allclose(found, off_diagonal(data[f"avg_bias_artefact_{kind}"]), rtol=0, atol=1e-10)
    for filtered, key in ((True, "filtered"), (False, "unfiltered")):
        found = average_bias(data["napvd"], filtered=filtered)
        np.testing.assert_allclose(found, off_diagonal(data[f"avg_bias_equation_{key}"]), rtol=0, atol=1e-10)


def off_diagonal(matrix):
    matrix = matrix.copy()
    np.fill_diagonal(matrix, np.nan)
    return matrix


def check_reported(found, wanted):
    assert found.true_positives == wanted["tp"]
    assert found.false_positives == wanted["fp"]
    assert found.reported == wanted["n_reported"]
    assert found.precision == pytest.approx(wanted["precision"], abs=1e-12)
    assert found.recall == pytest.approx(wanted["recall"], abs=1e-12)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_confusion_metrics(load, expected, name, kind):
    data, wanted = load(name), expected[name]["confusion"][kind]
    found = evaluate(data["napvd"], data[f"{kind}_pair"])
    assert (found.pairs, found.true_pairs, found.undefined) == (wanted["n_pairs"], wanted["n_true_pairs"], 0)
    assert found.truth_cutoff == pytest.approx(wanted["gt_threshold"], abs=1e-6)
    assert found.score_cutoff == pytest.approx(wanted["napvd_threshold"], abs=1e-6)
    assert cutoff(data["napvd"]) == found.score_cutoff
    check_reported(found.at_deviations, wanted["at_mean_minus_1std"])
    if wanted["at_top_1pct"] is None:
        assert found.at_share.reported == 0
    else:
        check_reported(found.at_share, wanted["at_top_1pct"])
    assert found.spearman == pytest.approx(wanted["spearman_napvd_vs_confusion"], abs=1e-6)
    aucec = wanted["aucec"]
    assert found.gain_artefact == pytest.approx(aucec["gain_over_random_artefact_40pt_sum"], abs=1e-6)
    assert found.gain_at_points == pytest.approx(aucec["gain_over_random_40pt_trapezoid"], abs=1e-6)
    assert found.gain == pytest.approx(aucec["gain_over_random_every_pair"], abs=1e-6)
    assert found.optimal_gain == pytest.approx(aucec["optimal_gain_over_random_every_pair"], abs=1e-6)


@pytest.mark.parametrize("name", SETTINGS)
def test_confusion_at_other_thresholds(load, expected, name):
    data, kind = load(name), expected[name]["error_type_used_by_published_evaluation"]
    for text, wanted in expected[name]["threshold_sweep"].items():
        (place,) = np.flatnonzero(np.isclose(data["napvd_thresholds"], float(text)))
        found = evaluate(data["napvd_by_threshold"][place], data[f"{kind}_pair"])
        assert found.score_cutoff == pytest.approx(wanted["napvd_threshold"], abs=1e-6)
        check_reported(found.at_deviations, wanted["at_mean_minus_1std"])
        if wanted["at_top_1pct"] is not None:
            check_reported(found.at_share, wanted["at_top_1pct"])
        assert found.spearman == pytest.approx(wanted["spearman_napvd_vs_confusion"], abs=1e-6)


@pytest.mark.parametrize("name", SETTINGS)
def test_rival_baseline_of_last_layer_weights(load, expected, name):
    data, kind = load(name), expected[name]["error_type_used_by_published_evaluation"]
    weights = data["final_layer_weight"].astype(np.float64)
    distance = np.sqrt(((weights[:, None] - weights[None]) ** 2).sum(2))
    wanted = expected[name]["final_layer_weight_baseline"]
    found = evaluate(distance, data[f"{kind}_pair"])
    assert found.score_cutoff == pytest.approx(wanted["napvd_threshold"], abs=1e-6)
    check_reported(found.at_deviations, wanted["at_mean_minus_1std"])
    assert found.spearman == pytest.approx(wanted["spearman_napvd_vs_confusion"], abs=1e-6)


FORMS = {
    "artefact": ("artefact", True, True),
    "artefact_without_ground_truth_gate": ("artefact", True, False),
    "equation_filtered_label_free": ("equation", True, False),
    "equation_unfiltered_label_free": ("equation", False, False),
}


@pytest.mark.parametrize(("name", "kind"), CASES)
@pytest.mark.parametrize("form", FORMS)
def test_bias_metrics(load, expected, name, kind, form):
    data, wanted = load(name), expected[name]["bias"][kind][form]
    way, filtered, gated = FORMS[form]
    directional = data[f"{kind}_directional"]
    score = average_bias(data["napvd"], way, filtered, directional if gated else None)
    found = evaluate(score, average_disparity(directional, way), errors="high")
    assert found.pairs == wanted["n_pairs"]
    assert found.truth_cutoff == pytest.approx(wanted["avg_cd_threshold"], abs=1e-6)
    assert found.score_cutoff == pytest.approx(wanted["avg_bias_threshold"], abs=1e-6)
    assert cutoff(score, "high") == found.score_cutoff
    assert found.true_pairs == wanted["strict"]["n_true_pairs"]
    check_reported(found.at_deviations, wanted["strict"]["at_mean_plus_1std"])
    check_reported(found.at_share, wanted["strict"]["at_top_1pct"])
    assert found.spearman == pytest.approx(wanted["spearman_avg_cd_vs_avg_bias"], abs=1e-6)
    assert found.gain == pytest.approx(wanted["aucec"]["gain_over_random_every_pair"], abs=1e-6)
    assert found.optimal_gain == pytest.approx(wanted["aucec"]["optimal_gain_over_random_every_pair"], abs=1e-6)
    if "near_cutoff_full_matrix" in wanted or "near_cutoff_pairs" in wanted:
        near = wanted.get("near_cutoff_full_matrix", wanted.get("near_cutoff_pairs"))
        assert near_cutoff(data["napvd"], way) == pytest.approx(near, abs=1e-6)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_bias_in_the_artefacts_own_arithmetic(load, expected, name, kind):
    """The published tables count pairs by way of a percentile; the paper's Table IV comes out to the pair."""
    data, wanted = load(name), expected[name]["bias"][kind]["artefact_counts_scipy_1_4_arithmetic"]
    directional = data[f"{kind}_directional"]
    score = average_bias(data["napvd"], "artefact", directional=directional)
    found = evaluate(score, average_disparity(directional, "artefact"), "high", "artefact")
    assert found.true_pairs == wanted["n_true_pairs"]
    check_reported(found.at_deviations, wanted["at_mean_plus_1std"])
    check_reported(found.at_share, wanted["at_top_1pct"])
    assert found.gain_at_points == pytest.approx(wanted["aucec_gain_over_random_40pt_trapezoid"], abs=1e-6)


class Published(nn.Module):
    """The authors' small robust CIFAR-10 network."""

    def __init__(self, data):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 4, stride=2, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 4, stride=2, padding=1)
        self.fc1 = nn.Linear(2048, 100)
        self.fc2 = nn.Linear(100, 10)
        self.load_state_dict(
            {
                f"{layer}.{part}": torch.as_tensor(data[f"{layer}_{part}"])
                for layer in LAYERS
                for part in ("weight", "bias")
            }
        )

    def forward(self, images):
        hidden = torch.relu(self.conv2(torch.relu(self.conv1(images)))).flatten(1)
        return self.fc2(torch.relu(self.fc1(hidden)))


LAYERS = ("conv1", "conv2", "fc1", "fc2")


@pytest.fixture(scope="module")
def published(load):
    data = load("robust_cifar10_small_end_to_end")
    mean = np.float32([0.485, 0.456, 0.406])[:, None, None]
    images = (data["images"].astype(np.float32) / 255 - mean) / np.float32(0.225)
    return data, Published(data).eval(), images


@pytest.fixture(scope="module")
def statistics(published):
    _, model, images = published
    return collect_statistics(model, images, LAYERS)


def test_network_to_statistics(published, statistics):
    data = published[0]
    assert statistics.sizes == tuple(data["layer_sizes"])
    np.testing.assert_allclose(statistics.scores, data["logits"], rtol=0, atol=1e-4)
    np.testing.assert_allclose(statistics.values, data["channel_stat"], rtol=0, atol=1e-4)
    np.testing.assert_array_equal(statistics.predictions, data["predicted_labels"])
    np.testing.assert_array_equal(statistics.predictions, data["published_predicted_labels"])


def test_statistics_to_counts_at_every_threshold(published, statistics):
    data = published[0]
    for place, threshold in enumerate(data["thresholds"]):
        sure = np.abs(data["channel_stat"] - threshold) >= 1e-4
        np.testing.assert_array_equal(
            (statistics.values > np.float32(threshold))[sure], (data["channel_stat"] > np.float32(threshold))[sure]
        )
        found = count_again(statistics.values, statistics.predictions, 10, float(threshold))
        np.testing.assert_array_equal(found.images, data["class_count"])
        unsure = np.stack([(~sure)[data["predicted_labels"] == c].sum(0) for c in range(10)], axis=1)
        assert (np.abs(found.active - data["active_count"][place]) <= unsure).all()
        exact = count_again(data["channel_stat"], data["predicted_labels"], 10, float(threshold))
        np.testing.assert_array_equal(exact.active, data["active_count"][place])


def test_network_to_probability_in_double_precision(published):
    """In float64 not one activation differs from the published program's."""
    data, model, images = published
    for place, threshold in enumerate(data["thresholds"]):
        found = activation_probability(
            Published(data).double().eval(), images.astype(np.float64), LAYERS, threshold=float(threshold)
        )
        np.testing.assert_allclose(found, data["probability_matrix"][place], rtol=0, atol=1e-7)
    found = activation_probability(model, images, LAYERS, data["predicted_labels"], 0.5)
    np.testing.assert_allclose(found, activation_probability(model, images, LAYERS), rtol=0, atol=0)


@pytest.mark.parametrize(("normalise", "key"), [(False, "equation"), (True, "artefact")])
def test_counts_to_distances(load, normalise, key):
    data = load("robust_cifar10_small_end_to_end")
    for place in range(len(data["thresholds"])):
        wanted = data[f"napvd_{key}"][place]
        exact = data["active_count"][place] / data["class_count"]
        np.testing.assert_allclose(class_distance(exact, normalise), wanted, rtol=0, atol=1e-12)
        np.testing.assert_allclose(
            class_distance(data["probability_matrix"][place], normalise), wanted, rtol=0, atol=1e-7
        )
        approximate = data["approx_active_count"][place] / data["approx_class_count"]
        np.testing.assert_allclose(
            class_distance(approximate, normalise), data[f"approx_napvd_{key}"][place], rtol=0, atol=1e-12
        )


def test_approximate_distances_are_close_to_the_published_tables(load):
    whole, part = load("robust_cifar10_small"), load("robust_cifar10_small_end_to_end")
    for threshold, distances in zip(whole["napvd_thresholds"], whole["napvd_by_threshold"], strict=True):
        (place,) = np.flatnonzero(np.isclose(part["thresholds"], threshold))
        exact = part["approx_active_count"][place] / part["approx_class_count"]
        np.testing.assert_allclose(class_distance(exact, True), distances, rtol=0, atol=0.01)


@pytest.mark.parametrize("name", SETTINGS)
def test_what_the_files_say_twice(load, name):
    data = load(name)
    (place,) = np.flatnonzero(np.isclose(data["napvd_thresholds"], 0.5))
    np.testing.assert_array_equal(data["napvd_by_threshold"][place], data["napvd"])
    _, predicted = labels_of(data)
    classes = len(data["class_names"])
    counted = predicted.sum(0) if predicted.ndim == 2 else np.bincount(predicted, minlength=classes)
    np.testing.assert_array_equal(
        count_again(np.zeros((len(predicted), 1)), predicted, classes).images, data["predicted_count"]
    )
    np.testing.assert_array_equal(counted, data["predicted_count"])
