"""Exact one-dimensional clusters against slow, obvious versions and the measured reference values."""

import json
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from idc_core.clustering.kmeans import cluster
from idc_core.coverage.cells import assign
from idc_core.errors import SettingError

KS = (2, 3, 4)


def spread(values):
    return float(np.square(values - np.mean(values)).sum())


def cheapest_by_trying_all(values, k):
    """Every way to cut the sorted values into k parts that are not empty."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    cuts = ((0, *inner, len(ordered)) for inner in combinations(range(1, len(ordered)), k - 1))
    return min(sum(spread(ordered[a:b]) for a, b in pairwise(cut)) for cut in cuts)


def cheapest_by_table(values, k):
    """The textbook recurrence over a full table of costs, without any pruning."""
    ordered = np.sort(np.asarray(values, dtype=np.float64)) - np.mean(values)
    count, total, square = (np.concatenate(([0], np.cumsum(ordered**p))) for p in (0, 1, 2))
    with np.errstate(all="ignore"):
        cost = square - square[:, None] - (total - total[:, None]) ** 2 / (count - count[:, None])
    cost[count <= count[:, None]] = np.inf
    reached = cost[0]
    for _ in range(k - 1):
        reached = (reached[:, None] + cost).min(axis=0)
    return reached[-1]


def silhouette_by_definition(values, labels):
    """Rousseeuw (1987), point by point."""
    scores = []
    for value, label in zip(values, labels, strict=True):
        distances = np.abs(values - value)
        own = labels == label
        if own.sum() == 1:
            scores.append(0.0)
            continue
        a = distances[own].sum() / (own.sum() - 1)
        b = min(distances[labels == other].mean() for other in set(labels) - {label})
        scores.append((b - a) / max(a, b) if max(a, b) else 0.0)
    return float(np.mean(scores))


def labels_of(values, result):
    return np.searchsorted(result.boundaries, values, side="left")


def draw(kind, n, seed):
    random = np.random.default_rng(seed)
    return {
        "normal": lambda: random.normal(size=n),
        "uniform": lambda: random.random(n),
        "relu": lambda: np.maximum(random.normal(size=n), 0),
        "sparse relu": lambda: np.maximum(random.normal(size=n) - 1.5, 0),
        "clumps": lambda: random.normal(size=n) * 0.2 + random.integers(0, 4, n),
        "two clumps": lambda: random.normal(size=n) + 10 * random.integers(0, 2, n),
        "heavy tails": lambda: random.standard_cauchy(n),
        "long tail": lambda: np.exp(3 * random.normal(size=n)),
        "few values": lambda: random.integers(0, 7, n).astype(float),
        "even": lambda: np.linspace(-1, 1, n),
    }[kind]()


KINDS = (
    "normal",
    "uniform",
    "relu",
    "sparse relu",
    "clumps",
    "two clumps",
    "heavy tails",
    "long tail",
    "few values",
    "even",
)
samples = st.builds(draw, st.sampled_from(KINDS), st.integers(20, 400), st.integers(0, 10_000))
without_ties = st.builds(draw, st.sampled_from(KINDS[:8]), st.integers(20, 400), st.integers(0, 10_000))


class TestOptimum:
    @given(st.lists(st.floats(-1000, 1000, width=32) | st.integers(-3, 3), min_size=1, max_size=12).map(np.array))
    def test_equals_the_best_of_all_partitions(self, values):
        for k, inertia in cluster(values).inertia.items():
            best = cheapest_by_trying_all(values, k)
            assert inertia == pytest.approx(best, rel=1e-9, abs=1e-13 * spread(values))

    @pytest.mark.sampled(7)
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("n", [30, 300, 1500])
    def test_equals_the_full_table(self, kind, n):
        values = draw(kind, n, seed=n)
        result = cluster(values, (2, 3, 4, 6))
        for k, inertia in result.inertia.items():
            best = cheapest_by_table(values, k)
            assert inertia == pytest.approx(best, rel=1e-9, abs=1e-12 * spread(values))

    @pytest.mark.parametrize("kind", KINDS)
    def test_is_never_worse_than_scikit_learn(self, kind):
        values = draw(kind, 400, seed=1)
        for k, inertia in cluster(values).inertia.items():
            theirs = KMeans(k, n_init=10, random_state=0).fit(values[:, None]).inertia_
            assert inertia <= theirs * (1 + 1e-9)

    def test_finds_many_clusters(self):
        values = np.repeat(np.arange(300.0), 3) + np.tile([-0.01, 0, 0.01], 300)
        result = cluster(values, (200, 256))
        assert result.inertia[256] == pytest.approx(cheapest_by_table(values, 256), rel=1e-9)
        assert result.inertia[200] == pytest.approx(cheapest_by_table(values, 200), rel=1e-9)

    def test_worked_by_hand(self):
        result = cluster([9.0, 0.0, 1.0, 10.0, 1.0], (2,))
        np.testing.assert_allclose(result.centroids, [2 / 3, 9.5])
        np.testing.assert_allclose(result.boundaries, [(2 / 3 + 9.5) / 2])
        assert result.inertia[2] == pytest.approx(2 / 3 + 0.5)
        assert result.counts.tolist() == [3, 2]
        assert (result.k, result.n_values) == (2, 5)
        # 0: own 1, other 9.5; 1 twice: own 1/2, other 8.5; 9: own 1, other 25/3; 10: own 1, other 28/3
        assert result.silhouettes[2] == pytest.approx((8.5 / 9.5 + 2 * 8 / 8.5 + 22 / 25 + 25 / 28) / 5)


class TestSilhouette:
    @given(samples)
    def test_equals_the_definition(self, values):
        for k, silhouette in cluster(values).silhouettes.items():
            expected = silhouette_by_definition(values, labels_of(values, cluster(values, (k,))))
            assert silhouette == pytest.approx(expected, abs=1e-9)

    @pytest.mark.parametrize("kind", KINDS)
    def test_equals_scikit_learn(self, kind):
        values = draw(kind, 500, seed=2)
        for k in KS:
            result = cluster(values, (k,))
            expected = silhouette_score(values[:, None], labels_of(values, result))
            assert result.silhouettes[k] == pytest.approx(expected, abs=1e-9)

    def test_single_points_score_zero(self):
        assert cluster([0.0, 1.0, 5.0], (3,)).silhouettes == {3: 0.0}

    def test_equal_values_score_one(self):
        assert cluster([0.0, 0.0, 7.0, 7.0, 7.0], (2,)).silhouettes == {2: 1.0}

    def test_best_silhouette_chooses_k(self):
        result = cluster(draw("clumps", 400, seed=0))
        assert result.k == 4 == max(result.silhouettes, key=result.silhouettes.get)

    def test_of_equal_silhouettes_the_larger_k(self):
        # two pairs: (1/2 + 0 + 0 + 1/2) / 4; the middle pair alone: (0 + 1/2 + 1/2 + 0) / 4
        result = cluster([0.0, 2.0, 3.0, 5.0])
        assert result.silhouettes == {2: 0.25, 3: 0.25, 4: 0.0}
        assert result.k == 3


class TestProperties:
    @given(samples, st.randoms(use_true_random=False))
    def test_order_does_not_matter(self, values, random):
        shuffled = values.tolist()
        random.shuffle(shuffled)
        first, second = cluster(values), cluster(np.array(shuffled))
        assert first.silhouettes == second.silhouettes
        assert first.inertia == second.inertia
        np.testing.assert_array_equal(first.centroids, second.centroids)

    @given(samples, st.integers(2, 5))
    def test_repeating_all_values_moves_nothing(self, values, times):
        once, often = cluster(values), cluster(np.repeat(values, times))
        for k, inertia in once.inertia.items():
            assert often.inertia[k] == pytest.approx(times * inertia, rel=1e-9, abs=1e-12 * spread(values))

    @given(samples, st.integers(0, 5))
    def test_a_repeated_value_is_a_weight(self, values, extra):
        repeated = np.concatenate((values, np.full(extra, values[0])))
        for k, inertia in cluster(repeated).inertia.items():
            expected = cheapest_by_table(repeated, k)
            assert inertia == pytest.approx(expected, rel=1e-9, abs=1e-12 * spread(repeated))

    @given(without_ties, st.integers(-1000, 1000), st.sampled_from([-3.0, 0.01, 1.0, 50.0]))
    def test_shift_and_scale(self, values, shift, scale):
        values = np.round(values, 6)  # so that the shift drops no digit that tells two values apart
        first, second = cluster(values), cluster(values * scale + shift)
        assert second.silhouettes == pytest.approx(first.silhouettes, abs=1e-8)
        assert second.inertia == pytest.approx({k: v * scale**2 for k, v in first.inertia.items()}, rel=1e-6)
        expected = np.sort(first.centroids * scale + shift)
        np.testing.assert_allclose(second.centroids, expected, rtol=1e-9, atol=1e-9)

    @given(samples)
    def test_training_values_fall_into_their_own_clusters(self, values):
        result = cluster(values)
        found = np.bincount(assign(values[:, None], [result.centroids])[:, 0], minlength=result.k)
        np.testing.assert_array_equal(found, result.counts)
        assert result.counts.sum() == result.n_values == len(values)

    @pytest.mark.parametrize("kind", KINDS)
    def test_tiny_spread_on_a_large_offset(self, kind):
        steps = np.round(draw(kind, 300, seed=3).clip(-10, 10) * 1000)  # whole: exact in either form
        plain, far = cluster(steps), cluster(2.0**40 + steps)
        assert far.silhouettes == pytest.approx(plain.silhouettes, abs=1e-9)
        assert far.inertia == pytest.approx(plain.inertia, rel=1e-9)
        np.testing.assert_allclose(far.centroids - 2.0**40, plain.centroids, atol=1e-3)

    def test_results_are_plain_numbers(self):
        result = cluster(np.array([0, 1, 5, 6], dtype=np.float32))
        assert {type(v) for v in (*result.silhouettes.values(), *result.inertia.values())} == {float}
        assert result.centroids.dtype == result.boundaries.dtype == np.float64
        assert result.counts.dtype == np.int64


class TestEdges:
    def test_constant_neuron(self):
        result = cluster(np.full(50, 3.25, dtype=np.float32))
        assert result.centroids.tolist() == [3.25]
        assert (result.k, result.boundaries.size, result.silhouettes, result.inertia) == (1, 0, {}, {1: 0.0})
        assert result.counts.tolist() == [50]

    @pytest.mark.parametrize("scale", [1e100, 1e-100, 1e-160, 5e-324])
    def test_the_ends_of_the_range(self, scale):
        result = cluster(np.array([-1.0, 1, -1, 1, 1]) * scale)
        assert result.centroids.tolist() == [-scale, scale]
        assert result.silhouettes == {2: 1.0}

    def test_one_value(self):
        assert cluster([7]).centroids.tolist() == [7.0]

    def test_fewer_different_values_than_clusters(self):
        result = cluster([1.0, 1.0, 2.0, 2.0, 4.0, 4.0])
        assert sorted(result.silhouettes) == [2, 3]
        assert result.centroids.tolist() == [1.0, 2.0, 4.0]

    def test_no_number_of_clusters_is_possible(self):
        result = cluster([5.0, 1.0, 5.0], (3, 4))
        assert result.centroids.tolist() == [1.0, 5.0]
        assert (result.silhouettes, result.inertia) == ({}, {2: 0.0})
        assert result.counts.tolist() == [1, 2]

    def test_numbers_of_clusters_in_any_order_but_not_twice(self):
        values = draw("normal", 100, seed=0)
        assert cluster(values, [4, 2, np.int64(3)]).silhouettes == cluster(values).silhouettes
        with pytest.raises(SettingError, match=r"each once; got \(4, 2, 3, 2\)"):
            cluster(values, [4, 2, np.int64(3), 2])

    def test_dropped_zeros(self):
        values = np.concatenate((np.zeros(100), draw("clumps", 50, seed=0) + 1))
        dropped, alone = cluster(values, drop_zeros=True), cluster(values[100:])
        np.testing.assert_array_equal(dropped.centroids, alone.centroids)
        assert dropped.n_values == 50
        assert cluster(values).n_values == 150

    @pytest.mark.parametrize("left", [0, 1, 9])
    def test_too_few_values_after_dropping_zeros(self, left):
        result = cluster([0.0] * 20 + [1.0 + i for i in range(left)], drop_zeros=True)
        assert result.centroids.tolist() == [0.0]
        assert (result.k, result.n_values, result.counts.tolist()) == (1, left, [left])

    def test_ten_values_after_dropping_zeros_are_clustered(self):
        assert cluster([0.0, *range(1, 11)], drop_zeros=True).k > 1

    @pytest.mark.parametrize(
        ("values", "reason"),
        [
            ([], "got none"),
            ([[1.0, 2.0]], r"shape \(1, 2\)"),
            (["a"], "real numbers"),
            ([1.0, np.nan, np.nan], "2 nan, 0 infinite"),
            ([1.0, np.inf, -np.inf], "0 nan, 2 infinite"),
            ([1.0, 1e200], "1 larger"),
            (np.array([1.0, -np.inf], dtype=np.float32), "1 infinite"),
        ],
    )
    def test_refused_values(self, values, reason):
        with pytest.raises(SettingError, match=reason):
            cluster(values)

    @pytest.mark.parametrize("clusters", [(), (1, 2), (2.0,), (True,), 1, 3.0, True, ("2",), (257,), None])
    def test_refused_numbers_of_clusters(self, clusters):
        with pytest.raises(SettingError, match="whole numbers from 2 to 256"):
            cluster([1.0, 2.0, 3.0], clusters)


@pytest.mark.parametrize("network", ["LeNet1", "LeNet5"])
@pytest.mark.parametrize("zeros", ["dropped", "kept"])
@pytest.mark.parametrize("inputs", ["all1000", pytest.param("correct", marks=pytest.mark.slow)])
def test_reference(reference_folder, network, inputs, zeros):
    folder = reference_folder / "deepimportance"
    layers = json.loads((folder / f"{network}_clusters.json").read_text())["clusters"]
    activations = np.load(folder / f"{network}_activations.npz")
    chosen = activations["train_correct"] if inputs == "correct" else slice(None)
    compared = 0
    for layer, by_set in layers.items():
        values = activations[f"train.{layer}"][chosen]
        for neuron, entry in by_set[f"{inputs}/{zeros}"].items():
            result = cluster(values[:, int(neuron)], drop_zeros=zeros == "dropped")
            assert result.n_values == entry["n_values"]
            if entry["fallback"]:
                assert result.centroids.tolist() == [0.0]
            elif "exact" in entry:
                compare(result, entry["exact"])
                compared += 1
    assert compared >= 16


def compare(result, exact):
    assert result.k == exact["k"]
    for k in KS:
        assert result.silhouettes[k] == pytest.approx(exact["silhouette"][str(k)], abs=1e-8)
        assert result.inertia[k] == pytest.approx(exact["inertia"][str(k)], rel=1e-8)
    np.testing.assert_allclose(result.centroids, exact["centroids"][str(result.k)], rtol=0, atol=1e-5)
