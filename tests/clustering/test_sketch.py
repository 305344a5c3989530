"""Sketches: they merge in any order, and clusters of a sketch lie within their bounds of those of all values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idc_core.clustering import sketch as sketches
from idc_core.clustering.kmeans import cluster
from idc_core.clustering.methods import CLUSTERINGS
from idc_core.clustering.sketch import CELLS, Sketch
from idc_core.clustering.sketched import SketchedPartitions
from idc_core.errors import SettingError
from tests.clustering.test_kmeans import KINDS, draw

KS = (2, 3, 4)
samples = st.builds(draw, st.sampled_from(KINDS), st.integers(1, 400), st.integers(0, 10_000))


@pytest.fixture
def few_cells(monkeypatch):
    """So few cells that small samples already share them."""
    monkeypatch.setattr(sketches, "CELLS", 40)


def equal(one, two):
    """Cells, counts and extremes are equal; sums of float64 up to rounding."""
    exact = all(np.array_equal(getattr(one, name), getattr(two, name)) for name in ("cell", "count", "low", "high"))
    scale = np.abs(one.sum) + one.count * np.maximum(np.abs(one.low), np.abs(one.high))
    return exact and one.exponent == two.exponent and bool((np.abs(one.sum - two.sum) <= 1e-12 * scale).all())


@pytest.mark.usefixtures("few_cells")
class TestMerging:
    @given(a=samples, b=samples, c=samples)
    def test_the_order_of_merging_does_not_matter(self, a, b, c):
        one, two, three = map(Sketch.of, (a, b, c))
        left, right = one.merge(two).merge(three), one.merge(two.merge(three))
        assert equal(left, right)
        assert equal(left, three.merge(two).merge(one))
        assert equal(left, Sketch.of(np.concatenate([c, a, b])))

    @given(values=samples)
    def test_cells_hold_all_values_in_order(self, values):
        found = Sketch.of(values)
        assert found.n_values == len(values)
        assert len(found.cell) <= 40
        assert found.sum.sum() == pytest.approx(values.sum(), abs=1e-9 * (1 + np.abs(values).sum()))
        assert (found.high[:-1] < found.low[1:]).all()
        assert found.low[0] == values.min()
        assert found.high[-1] == values.max()
        assert (found.width <= 2.0**found.exponent * (1 + 1e-9)).all()
        # 2^e < 2 R / (most - 3), unless so few values were distinct that the narrowest cells hold them.
        assert len(found.cell) < 20 or 2.0**found.exponent < 2 * np.ptp(values) / 37
        assert not found.without_zeros().n_values - np.count_nonzero(values)


def test_what_rounds_to_zero_beside_large_values_is_no_zero():
    found = Sketch.of(np.array([1e-300, 0.0, -1e-300, 1e90]))
    assert found.cell.tolist()[:3] == [-1, 0, 1]
    assert found.without_zeros().n_values == 3


def check(values, drop_zeros=False):
    """Compare with exact clusters of the same number, and return how wide the bounds are."""
    partitions = SketchedPartitions.of(values, KS, drop_zeros)
    for k in KS:
        exact, found = cluster(values, (k,), drop_zeros), partitions.choose((k,))
        assert found.k == exact.k
        if found.sketch is None:  # too few values but zeros
            assert (found.centroids, found.k) == (exact.centroids, 1)
            continue
        slack = 1e-9 * (1 + np.abs(values).max())
        assert (np.abs(found.centroids - exact.centroids) <= found.sketch.centroids + slack).all()
        assert (np.abs(found.boundaries - exact.boundaries) <= found.sketch.boundaries + slack).all()
        for tried in exact.silhouettes:
            off = abs(found.silhouettes[tried] - exact.silhouettes[tried])
            assert off <= found.sketch.silhouettes[tried] + 1e-9
            off = abs(found.inertia[tried] - exact.inertia[tried])
            assert off <= found.sketch.inertia[tried] + 1e-9 * (1 + exact.inertia[tried])
        kept = values[values != 0] if drop_zeros else values
        labels = np.searchsorted(found.boundaries, kept, side="left")
        np.testing.assert_array_equal(np.bincount(labels, minlength=found.k), found.counts)
        means = [kept[labels == one].mean(dtype=np.float64) for one in range(found.k)]
        np.testing.assert_allclose(found.centroids, means, rtol=1e-9, atol=1e-9 * np.abs(kept).max())
        assert found.n_values == len(kept)
    return found


@pytest.mark.usefixtures("few_cells")
class TestBounds:
    @settings(max_examples=150)
    @given(values=samples, drop_zeros=st.booleans())
    def test_exact_clusters_lie_within_the_bounds(self, values, drop_zeros):
        distinct = len(np.unique(values[values != 0] if drop_zeros else values))
        if distinct > 4 and distinct > len(Sketch.of(values).cell) > 4:
            check(values, drop_zeros)

    @settings(max_examples=50)
    @given(
        st.lists(st.sampled_from([0.0, 1.0, 1.0 + 2**-20, 6.0, 6.0 - 2**-18, -3.0, 2.5]), min_size=30, max_size=90),
        st.lists(st.floats(-8, 8, width=32), min_size=60, max_size=90, unique=True),
    )
    def test_repeated_values_beside_near_ones(self, repeated, others):
        check(np.array(repeated * 3 + others, np.float32))


@pytest.mark.parametrize("kind", ["normal", "clumps"])
def test_bounds_of_many_values_are_narrow(kind):
    values = draw(kind, 200_000, seed=3).astype(np.float32)
    found = check(values)
    spread = np.ptp(values)
    assert CELLS // 2 < found.sketch.cells <= CELLS
    assert 0 < found.sketch.width < 1.6e-5 * spread
    assert found.sketch.centroids.max() < 1e-4 * spread
    assert found.sketch.boundaries.max() < 1e-4 * spread
    assert found.sketch.silhouettes[4] < 4e-3


def test_few_distinct_values_are_clustered_exactly():
    values = np.repeat(np.arange(7, dtype=np.float32), 1000) ** 2
    exact, found = cluster(values, KS), SketchedPartitions.of(values, KS).choose(KS)
    np.testing.assert_array_equal(found.centroids, exact.centroids)
    assert found.silhouettes == exact.silhouettes
    assert found.sketch.centroids.max() < 1e-12
    assert max(found.sketch.silhouettes.values()) < 1e-12


@pytest.mark.parametrize("name", list(CLUSTERINGS))
def test_the_config_file_says_from_how_many_values_on(name, tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    (tmp_path / "config.toml").write_text("[limits]\nsketch_from = 500\n", encoding="utf-8")
    values, way = draw("clumps", 500, seed=1), CLUSTERINGS[name]
    assert (way.cluster(values).sketch is not None) == (name == "k-means")
    assert way.cluster(values[1:]).sketch is None


@pytest.mark.parametrize("values", [[1.0, np.nan], [np.inf, 0.0], [1e200, 0.0], [[1.0]], ["a"], []])
def test_what_cannot_be_clustered_is_refused_as_without_a_sketch(values):
    with pytest.raises(SettingError) as plain:
        cluster(np.array(values))
    with pytest.raises(SettingError) as sketched:
        SketchedPartitions.of(np.array(values), KS)
    assert str(plain.value) == str(sketched.value)
