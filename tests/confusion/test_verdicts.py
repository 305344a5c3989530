"""How surely labels confirm a pair: counts and intervals by hand, and intervals that hold what they promise."""

import numpy as np
import pytest

from idc_core.base.statistics import wilson
from idc_core.confusion import Evidence, find_errors, pair_confusion, type1_confusion
from idc_core.confusion.ground_truth import inputs_behind
from idc_core.confusion.verdicts import judge


def test_wilson_as_printed():
    """R. G. Newcombe, Two-sided confidence intervals for the single proportion, 1998, table I, method 3."""
    low, high = wilson(np.array([81, 15, 0, 1]) / [263, 148, 20, 29], np.array([263, 148, 20, 29]))
    np.testing.assert_allclose(low, [0.2553, 0.0624, 0, 0.0061], atol=5e-5)
    np.testing.assert_allclose(high, [0.3662, 0.1605, 0.1611, 0.1718], atol=5e-5)


def test_a_verdict_by_hand():
    """Of 50 inputs of the first class 4 are predicted as the second, of 40 of the second none as the first."""
    true = np.repeat([0, 1, 2], [50, 40, 30])
    predicted = true.copy()
    predicted[:4] = 1
    directional = type1_confusion(true, predicted, 3)
    pairs = np.array([[0, 1], [1, 2]])
    found = judge(directional, inputs_behind(true, 3), pairs, 0.02)
    assert found.confused.tolist() == [4, 0]
    assert found.inputs.tolist() == [90, 70]
    np.testing.assert_array_equal(found.rate, pair_confusion(directional)[tuple(pairs.T)])
    low, high = wilson(np.array([0.08, 0.0]), np.array([50.0, 40.0]))
    assert found.low[0] == pytest.approx(0.04 - np.hypot(0.08 - low[0], 0) / 2)
    assert found.high[0] == pytest.approx(0.04 + np.hypot(high[0] - 0.08, high[1]) / 2)
    assert found.confirmed.tolist() == [True, False]


@pytest.mark.parametrize(("rates", "sizes"), [((0.02, 0.01), (60, 50)), ((0.2, 0.05), (80, 100))])
def test_intervals_hold_the_true_rate_as_often_as_they_say(rates, sizes):
    random = np.random.default_rng(0)
    hits = 0
    for _ in range(500):
        said = np.full((2, 2), np.nan)
        said[0, 1], said[1, 0] = random.binomial(sizes, rates) / np.array(sizes)
        found = judge(said, np.repeat(np.array(sizes, float)[:, None], 2, 1), np.array([[0, 1]]), 0.0)
        hits += found.low[0] <= np.mean(rates) <= found.high[0]
    assert 0.9 < hits / 500 < 0.99


def test_one_direction_stands_alone_and_none_is_undefined():
    directional = np.array([[np.nan, 0.1, np.nan], [np.nan, np.nan, np.nan], [np.nan, np.nan, np.nan]])
    inputs = np.array([[0.0, 40, 3], [2, 0, 4], [1, 2, 0]])
    found = judge(directional, inputs, np.array([[0, 1], [1, 2]]), 0.05)
    low, high = wilson(np.array([0.1]), np.array([40.0]))
    assert (found.confused[0], found.inputs[0], found.rate[0]) == (4, 40, 0.1)
    assert (found.low[0], found.high[0]) == (pytest.approx(low[0]), pytest.approx(high[0]))
    assert np.isnan([found.rate[1], found.low[1], found.high[1]]).all()
    assert not found.confirmed[1]


def test_several_labels_count_the_inputs_with_one_class_and_without_the_other():
    random = np.random.default_rng(1)
    true = random.random((300, 4)) < 0.4
    predicted = true ^ (random.random((300, 4)) < 0.1)
    evidence = Evidence(("a", "b", "c", "d"), predicted, true, values=random.random((300, 9)))
    for kind in ("type1", "type2"):
        found = find_errors(evidence, kind=kind)
        verdict = found.verdicts(np.array([[0, 2]]))
        alone = [true[:, a] & ~true[:, b] for a, b in ((0, 2), (2, 0))]
        wrong = [
            rows & predicted[:, b] & (predicted[:, a] == (kind == "type2"))
            for rows, (a, b) in zip(alone, ((0, 2), (2, 0)), strict=True)
        ]
        assert verdict.inputs[0] == sum(rows.sum() for rows in alone)
        assert verdict.confused[0] == sum(rows.sum() for rows in wrong)
        assert verdict.rate[0] == found.confusion[0, 2]
        assert verdict.confirmed[0] == found.truly_confused(np.array([[0, 2]]))[0]


def test_without_labels_there_is_no_verdict():
    evidence = Evidence(("a", "b", "c"), np.arange(30) % 3, values=np.random.default_rng(0).random((30, 5)))
    found = find_errors(evidence)
    assert found.verdicts(found.suspected) is None
    assert found.disparity_of((0, 1)) is None
