import numpy as np
import pytest

from idc_core.errors import SettingError
from idc_core.worth import Yardstick

FOUND = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1]], bool)


def test_the_share_is_that_of_targets_found_by_any_of_the_tests():
    yardstick = Yardstick("mutants", FOUND)
    assert yardstick.targets == 3
    assert yardstick.share(np.array([0])) == 1 / 3
    assert yardstick.share(np.array([0, 1])) == 2 / 3
    assert yardstick.share(np.array([], np.int64)) == 0
    assert yardstick.share(np.arange(3)) == 1


def test_what_is_no_yardstick_is_refused():
    with pytest.raises(SettingError, match="2 of 'mutants' by none"):
        Yardstick("mutants", FOUND[:1])
    with pytest.raises(SettingError, match=r"got int64 \(3, 3\)"):
        Yardstick("mutants", FOUND.astype(np.int64))
    with pytest.raises(SettingError, match="no share"):
        Yardstick("mutants", np.zeros((3, 0), bool)).share(np.array([0]))
