"""Figures of searches: the magnified difference, the triplet, and seeds with a disagreement by steps."""

import numpy as np
import pytest

from idc_core.errors import SettingError
from idc_core.figures.differential import disagreements_by_step, triplet
from idc_core.figures.input_images import GAP

SEED = np.full((1, 4, 4), 0.25, np.float32)


def test_triplet_holds_seed_find_and_difference():
    find = 1 - SEED
    tile, factor = triplet(SEED, find, 8)
    assert tile.shape == (8, 3 * 8 + 2 * GAP, 4)
    assert factor == 2
    starts = [0, 8 + GAP, 16 + 2 * GAP]
    assert [tile[0, start, 0] for start in starts] == [64, 191, 255]
    assert (tile[:, 8 : 8 + GAP, 3] == 0).all()
    assert (tile[:, :8, 3] == 255).all()


def test_small_differences_are_magnified_around_grey():
    find = SEED.copy()
    find[0, 0, 0] = 0.29
    tile, factor = triplet(SEED, find, 4)
    assert factor == 20
    assert abs(int(tile[0, 8 + 2 * GAP, 0]) - 255 * (0.5 + 10 * 0.04)) <= 1
    assert tile[3, -1, 0] == 128


def test_colour_pictures_keep_their_channels():
    colour = np.zeros((3, 4, 4), np.float32)
    find = colour.copy()
    find[2] = 1
    tile, _ = triplet(colour, find, 4)
    assert tile[0, 4 + GAP].tolist() == [0, 0, 255, 255]
    assert tile[0, 8 + 2 * GAP].tolist() == [128, 128, 255, 255]


@pytest.mark.parametrize("dark", [False, True])
def test_curve_counts_finds_after_so_many_steps(dark):
    figure = disagreements_by_step(np.array([0, 2, 2, 5]), 8, 6, "Title", dark=dark)
    (curve,) = figure.data
    assert list(curve.x) == [0, 1, 2, 3, 4, 5, 6]
    assert list(curve.y) == [12.5, 12.5, 37.5, 37.5, 37.5, 50, 50]
    assert list(curve.customdata) == [1, 1, 3, 3, 3, 4, 4]
    assert figure.layout.title.text == "Title"


def test_curve_without_finds_lies_at_zero():
    assert set(disagreements_by_step(np.zeros(0, np.int64), 3, 4, "None").data[0].y) == {0}
    with pytest.raises(SettingError, match="at most one disagreement per seed"):
        disagreements_by_step(np.array([1, 2]), 1, 4, "Too many")
