"""The filter of the tests: every condition alone, together, and with what is not there."""

from types import SimpleNamespace

import numpy as np
import pytest

from idc_core.analysis.filtering import Conditions
from idc_core.datasets import Dataset
from idc_core.errors import SettingError
from idc_core.evidence.mistakes import Mistakes, Reason

NAMES = ("a", "b", "c")
TEST = Dataset(
    name="toy",
    split="test",
    inputs=np.zeros((6, 2), np.float32),
    targets=np.array([0, 0, 1, 1, 2, 2]),
    class_names=NAMES,
    task="classification",
    vocabulary=(),
    texts=(),
    ids=np.arange(6),
    fingerprint="toy",
)
ANALYSIS = SimpleNamespace(
    m=2,
    predictions=np.array([0, 1, 1, 1, 0, 2]),
    correct=np.array([True, False, True, True, False, True]),
    confidence=np.array([0.9, 0.5, 0.4, 1.0, 0.8, 0.7], np.float32),
    assignments=np.array([[0, 0], [0, 1], [1, 0], [0, 1], [1, 1], [0, 1]], np.uint8),
)


@pytest.mark.parametrize(
    ("conditions", "passing"),
    [
        ({}, [0, 1, 2, 3, 4, 5]),
        ({"classes": ("a", "c")}, [0, 1, 4, 5]),
        ({"classes": ("d",)}, []),
        ({"predicted": ("b",)}, [1, 2, 3]),
        ({"correct": False}, [1, 4]),
        ({"correct": True}, [0, 2, 3, 5]),
        ({"confidence": (0.5, 0.75)}, [1, 5]),
        ({"confidence": (1.0, 1.0)}, [3]),
        ({"cell": (0, 1)}, [1, 3, 5]),
        ({"cell": (0, 0, 0)}, []),
        ({"classes": ("a", "b"), "predicted": ("b",), "correct": True, "cell": (0, 1)}, [3]),
    ],
)
def test_tests_that_meet_all_conditions_pass(conditions, passing):
    found = Conditions(**conditions).positions(TEST, ANALYSIS, NAMES)
    assert found.dtype == np.int64
    assert found.tolist() == passing


MISTAKES = Mistakes(
    np.array([1, 4]), (Reason.LABEL, Reason.NETWORK), *(np.zeros(2) for _ in range(4)), doubted=1, by_chance=0.1
)


@pytest.mark.parametrize(
    ("conditions", "passing"),
    [
        ({"without": (Reason.LABEL,)}, [0, 2, 3, 4, 5]),
        ({"without": (Reason.OUTSIDE, Reason.AMBIGUOUS)}, [0, 1, 2, 3, 4, 5]),
        ({"without": (Reason.LABEL,), "correct": False}, [4]),
    ],
)
def test_suspects_are_left_out_by_what_they_most_likely_are(conditions, passing):
    chosen = Conditions(**conditions)
    assert chosen.positions(TEST, ANALYSIS, NAMES, MISTAKES).tolist() == passing
    assert "without suspects (" in chosen.words
    with pytest.raises(SettingError, match="mistakes are judged"):
        chosen.positions(TEST, ANALYSIS, NAMES)
