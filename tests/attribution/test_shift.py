"""How relevance moved: against values worked out by hand and a slow rank correlation."""

import numpy as np
import pytest

from idc_core.attribution.shift import shift
from idc_core.errors import SettingError


def spot(row, column, value=1.0, shape=(5, 7)):
    found = np.zeros((1, 1, *shape), np.float32)
    found[0, 0, row, column] = value
    return found


def test_a_spot_that_moves():
    moved = shift(spot(1, 2), spot(4, 6))
    np.testing.assert_allclose(moved.before, [[1, 2]])
    np.testing.assert_allclose(moved.after, [[4, 6]])
    np.testing.assert_allclose(moved.distance, [5])
    np.testing.assert_allclose(moved.cosine, [0])


def test_only_positive_relevance_has_a_centre():
    before = spot(0, 0, 3) + spot(0, 4, 1) + spot(3, 3, -9)
    moved = shift(before, spot(2, 2, -1))
    np.testing.assert_allclose(moved.before, [[0, 1]])
    assert np.isnan(moved.after).all()
    assert np.isnan(moved.distance).all()


def test_channels_are_summed():
    two = np.concatenate([spot(1, 1, 2), spot(1, 1, -2) + spot(3, 3)], axis=1)
    np.testing.assert_allclose(shift(two, two).before, [[3, 3]])


def test_the_same_map_is_like_itself_and_its_negative_the_opposite():
    maps = np.random.default_rng(0).normal(size=(3, 2, 6, 6)).astype(np.float32)
    same, opposite = shift(maps, 2 * maps), shift(maps, -maps)
    np.testing.assert_allclose(same.cosine, 1)
    np.testing.assert_allclose(same.rank, 1)
    np.testing.assert_allclose(same.distance, 0)
    np.testing.assert_allclose(opposite.cosine, -1)
    np.testing.assert_allclose(opposite.rank, -1)


def test_rank_correlation_is_that_of_scipy():
    from scipy.stats import spearmanr

    random = np.random.default_rng(1)
    # Whole numbers, so that many are equal.
    first, second = (random.integers(-3, 4, (4, 1, 5, 5)).astype(np.float32) for _ in range(2))
    expected = [spearmanr(a.ravel(), b.ravel()).statistic for a, b in zip(first, second, strict=True)]
    np.testing.assert_allclose(shift(first, second).rank, expected)


def test_nothing_can_be_said_of_an_empty_map():
    moved = shift(spot(0, 0), 0 * spot(0, 0))
    assert np.isnan(moved.cosine).all()
    assert np.isnan(moved.rank).all()


def test_maps_of_other_shapes_are_refused():
    with pytest.raises(SettingError, match="the same pictures twice"):
        shift(np.zeros((1, 1, 3, 3)), np.zeros((1, 1, 3, 4)))
    with pytest.raises(SettingError, match="the same pictures twice"):
        shift(np.zeros((1, 9)), np.zeros((1, 9)))
