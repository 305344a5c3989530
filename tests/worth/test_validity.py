"""What additions are worth, beside sets of targets."""

import numpy as np
import pytest

from idc_core.coverage.profiles import Profiles
from idc_core.errors import SettingError
from idc_core.worth import valid_gain

RANDOM = np.random.default_rng(0)


def test_the_gain_is_that_of_sets_and_valid_where_one_valid_input_reaches_it():
    for _ in range(20):
        tests, added = RANDOM.random((6, 12)) < 0.2, RANDOM.random((8, 12)) < 0.3
        p = RANDOM.choice([0.01, 0.05, 0.051, 1.0], 8)
        known = {target for row in tests for target in np.flatnonzero(row).tolist()}
        gained = {target for row in added for target in np.flatnonzero(row).tolist()} - known
        valid = {
            target
            for row, value in zip(added, p, strict=True)
            if value > 0.05
            for target in np.flatnonzero(row).tolist()
        }
        found = valid_gain(Profiles.of_mask(tests), Profiles.of_mask(added), p)
        assert (found.gained, found.invalid) == (len(gained), len(gained - valid))
        order = RANDOM.permutation(8)
        assert valid_gain(Profiles.of_mask(tests), Profiles.of_mask(added[order]), p[order]) == found


def test_cells_are_the_same_ones_in_both():
    tests, added = Profiles.of_names(np.array([7, 9, 7]), 20), Profiles.of_names(np.array([9, 3, 4, 3]), 20)
    found = valid_gain(tests, added, np.array([1.0, 0.0, 0.0, 0.5]))
    assert (found.gained, found.invalid, found.share) == (2, 1, 0.5)
    with pytest.raises(SettingError, match="no share"):
        _ = valid_gain(tests, tests, np.ones(3)).share
    with pytest.raises(SettingError, match="each of 4"):
        valid_gain(tests, added, np.ones(3))
