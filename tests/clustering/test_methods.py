"""Every way to cluster: the same results, measured the same way, and the partition that scikit-learn finds."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import DBSCAN, AgglomerativeClustering
from sklearn.metrics import silhouette_score
from sklearn.mixture import GaussianMixture

from idc_core.clustering.kmeans import cluster, partition
from idc_core.clustering.methods import CLUSTERINGS, _dense_labels, _density_rule
from idc_core.clustering.points import Points
from idc_core.coverage.cells import assign
from idc_core.errors import SettingError

NAMES = list(CLUSTERINGS)


def draw(kind, n, seed):
    random = np.random.default_rng(seed)
    return {
        "normal": lambda: random.normal(size=n),
        "relu": lambda: np.maximum(random.normal(size=n), 0),
        "clumps": lambda: random.normal(size=n) * 0.2 + random.integers(0, 4, n),
        "wide and narrow": lambda: np.where(random.random(n) < 0.5, random.normal(size=n) * 9, random.normal(size=n)),
        "long tail": lambda: np.exp(2 * random.normal(size=n)),
        "few values": lambda: random.integers(0, 5, n).astype(float),
        "zeros and a bump": lambda: np.where(random.random(n) < 0.5, 0, random.normal(6, 1, n)),
        "constant": lambda: np.full(n, 3.25),
    }[kind]()


KINDS = ("normal", "relu", "clumps", "wide and narrow", "long tail", "few values", "zeros and a bump", "constant")
samples = st.builds(draw, st.sampled_from(KINDS), st.integers(1, 200), st.integers(0, 10_000))


def labels_of(values, found):
    return np.searchsorted(found.boundaries, values, side="left")


def same_partition(one, other):
    """Whether two labellings part in the same way, whatever their numbers."""
    pairs = set(zip(one.tolist(), other.tolist(), strict=True))
    return len(pairs) == len(set(one.tolist())) == len(set(other.tolist()))


class TestSameResults:
    @pytest.mark.parametrize("name", NAMES)
    @given(values=samples)
    def test_every_way_keeps_the_contract(self, name, values):
        found = CLUSTERINGS[name].cluster(values)
        labels = labels_of(values, found)
        assert (np.diff(found.centroids) > 0).all()
        assert len(found.boundaries) == found.k - 1
        assert (found.centroids[:-1] <= found.boundaries).all()
        assert (found.boundaries < found.centroids[1:]).all()
        np.testing.assert_array_equal(np.bincount(labels, minlength=found.k), found.counts)
        assert (found.counts > 0).all()
        assert found.counts.sum() == found.n_values == len(values)
        means = [values[labels == k].mean() for k in range(found.k)]
        np.testing.assert_allclose(found.centroids, means, rtol=1e-9, atol=1e-9)
        spread = sum(np.square(values[labels == k] - means[k]).sum() for k in range(found.k))
        assert found.inertia[found.k] == pytest.approx(spread, rel=1e-6, abs=1e-9)
        if found.k in found.silhouettes and found.k < len(values):
            expected = silhouette_score(values[:, None], labels)
            assert found.silhouettes[found.k] == pytest.approx(expected, abs=1e-6)
        assert found.silhouettes.get(found.k, -1) == max(found.silhouettes.values(), default=-1)
        assert found.centroids.dtype == found.boundaries.dtype == np.float64
        assert found.counts.dtype == np.int64

    @pytest.mark.parametrize("name", NAMES)
    @given(values=samples, kind=st.sampled_from([np.float32, np.float64]))
    def test_tests_are_sorted_by_the_boundaries(self, name, values, kind):
        values = values.astype(kind)
        found = CLUSTERINGS[name].cluster(values)
        sorted_in = assign(values[:, None], [found.centroids], [found.boundaries])[:, 0]
        np.testing.assert_array_equal(np.bincount(sorted_in, minlength=found.k), found.counts)

    @pytest.mark.parametrize("name", NAMES)
    @given(values=samples, random=st.randoms(use_true_random=False))
    def test_order_does_not_matter(self, name, values, random):
        shuffled = values.tolist()
        random.shuffle(shuffled)
        first, second = (CLUSTERINGS[name].cluster(given) for given in (values, np.array(shuffled)))
        np.testing.assert_array_equal(first.centroids, second.centroids)
        assert first.silhouettes == second.silhouettes

    @pytest.mark.parametrize("name", [name for name in NAMES if CLUSTERINGS[name].takes_k])
    @pytest.mark.parametrize("k", range(2, 9))
    def test_number_by_hand(self, name, k):
        assert CLUSTERINGS[name].cluster(draw("clumps", 400, 1), (k,)).k == k

    @pytest.mark.parametrize("name", NAMES)
    def test_dropped_zeros(self, name):
        values = draw("zeros and a bump", 300, 2)
        dropped, alone = (
            CLUSTERINGS[name].cluster(v, drop_zeros=d) for v, d in ((values, True), (values[values != 0], 0))
        )
        np.testing.assert_array_equal(dropped.centroids, alone.centroids)
        assert dropped.n_values < len(values)
        few = CLUSTERINGS[name].cluster([0.0] * 30 + [1.0] * 9, drop_zeros=True)
        assert few.centroids.tolist() == [0.0]

    @given(values=samples)
    def test_choosing_from_many_numbers_is_trying_the_chosen_ones(self, values):
        parted = partition(values, range(2, 9))
        for numbers in ((2, 3, 4), (5,), (8,), (2, 8)):
            one, other = parted.choose(numbers), cluster(values, numbers)
            np.testing.assert_array_equal(one.centroids, other.centroids)
            np.testing.assert_array_equal(one.boundaries, other.boundaries)
            assert one.silhouettes == other.silhouettes


class TestHierarchical:
    @pytest.mark.parametrize("kind", KINDS[:5])
    @pytest.mark.parametrize("k", range(2, 9))
    def test_equals_ward_without_neighbourhood(self, kind, k):
        values = draw(kind, 250, seed=k)
        theirs = AgglomerativeClustering(k, linkage="ward").fit_predict(values[:, None])
        found = CLUSTERINGS["hierarchical"].cluster(values, (k,))
        assert same_partition(labels_of(values, found), theirs)

    def test_differs_from_k_means_where_early_joins_bind(self):
        values = draw("normal", 500, 0)
        ours = CLUSTERINGS["hierarchical"].cluster(values, (3,))
        assert ours.inertia[3] > cluster(values, (3,)).inertia[3] * 1.001


class TestDensity:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("seed", range(5))
    def test_labels_equal_those_of_scikit_learn(self, kind, seed):
        values = draw(kind, 300, seed)
        for reach, least in ((0.1, 4), (0.3, 10), (1.0, 30), _density_rule(Points.of(np.sort(values)))):
            distinct, weight = np.unique(values, return_counts=True)
            theirs = DBSCAN(eps=reach, min_samples=least).fit(distinct[:, None], sample_weight=weight).labels_
            np.testing.assert_array_equal(_dense_labels(distinct, weight, reach, least), theirs)

    def test_the_rule_worked_by_hand(self):
        values = np.array([0.0] * 16 + [2.0] * 16)  # 32 values, deviation 1: 32^(-1/5) is 1/2
        assert _density_rule(Points.of(values)) == (pytest.approx(0.53), 10)  # 32 * 1.06 / sqrt(12) is 9.8
        assert _density_rule(Points.of(np.arange(5.0)))[1] == 4

    def test_noise_goes_to_the_nearest_mean(self):
        values = np.concatenate((np.zeros(50), np.full(50, 10.0), [4.0, 6.5]))
        found = CLUSTERINGS["dbscan"].cluster(values)
        assert found.k == 2
        assert found.counts.tolist() == [51, 51]

    def test_finds_more_clusters_than_k_means_is_asked_for(self):
        values = np.repeat(np.arange(7.0), 300) * 10
        assert CLUSTERINGS["dbscan"].cluster(values).k == 7

    def test_an_even_spread_holds_the_threshold(self):
        reach, least = _density_rule(Points.of(np.arange(1000.0)))
        assert least == pytest.approx(2 * reach, abs=2)

    def test_one_crowd_is_one_state(self):
        found = CLUSTERINGS["dbscan"].cluster(draw("normal", 2000, 0))
        assert (found.k, found.silhouettes) == (1, {})

    def test_a_number_by_hand_is_refused(self):
        with pytest.raises(SettingError, match="finds the number of clusters itself"):
            CLUSTERINGS["dbscan"].cluster([1.0, 2.0, 3.0], (3,))


class TestMixture:
    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("k", [2, 3, 4])
    def test_equals_scikit_learn_where_the_curves_are_apart(self, seed, k):
        random = np.random.default_rng(seed)
        values = random.normal(size=600) * random.uniform(0.2, 0.6, k)[random.integers(0, k, 600)]
        values = values + 3 * random.integers(0, k, 600)
        theirs = GaussianMixture(k, n_init=5, random_state=0).fit(values[:, None]).predict(values[:, None])
        found = CLUSTERINGS["gaussian-mixture"].cluster(values, (k,))
        agree = np.argsort([values[theirs == label].mean() for label in range(k)]).argsort()[theirs]
        assert np.mean(labels_of(values, found) == agree) > 0.99

    def test_boundary_is_where_the_odds_are_even(self):
        random = np.random.default_rng(3)
        values = np.concatenate((random.normal(0, 0.3, 4000), random.normal(4, 1.5, 4000)))
        boundary = CLUSTERINGS["gaussian-mixture"].cluster(values, (2,)).boundaries[0]
        theirs = GaussianMixture(2, random_state=0).fit(values[:, None])
        np.testing.assert_allclose(theirs.predict_proba([[boundary]])[0], 0.5, atol=0.05)
        assert boundary < cluster(values, (2,)).boundaries[0] - 0.3, "a narrow state ends before the middle"

    def test_a_component_without_values_is_left_out(self):
        found = CLUSTERINGS["gaussian-mixture"].cluster(draw("wide and narrow", 3000, 0), (8,))
        assert 2 <= found.k <= 8


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["normal", "relu"])
def test_memory_is_linear(name, kind):
    values = draw(kind, 2500, 0).astype(np.float32)
    CLUSTERINGS[name].cluster(values[:100])  # imports scikit-learn
    tracemalloc.start()
    CLUSTERINGS[name].cluster(values, (2,) if CLUSTERINGS[name].takes_k else (2, 3))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1500 * len(values), "2,500 values squared would be 50 MB"


def test_unknown_name():
    with pytest.raises(SettingError, match="Unknown clustering 'x': expected one of k-means, hierarchical"):
        CLUSTERINGS["x"]


@pytest.mark.parametrize("name", NAMES)
def test_bad_values_are_refused_by_every_way(name):
    with pytest.raises(SettingError, match="1 nan"):
        CLUSTERINGS[name].cluster([1.0, np.nan])
    with pytest.raises(SettingError, match="whole numbers from 2 to 256"):
        CLUSTERINGS[name].cluster([1.0, 2.0], (2, 1))
