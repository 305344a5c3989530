"""How much is left: against slow versions, and by simulation with known truth, at the cells of real test sets."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from idc_core.errors import DataError, SettingError
from idc_core.evidence.discovery import Discovery, _poisson
from idc_core.evidence.finding import LEVEL

CELLS = json.loads(Path(__file__).with_name("cell_frequencies.json").read_text(encoding="utf-8"))
"""How many cells (LeNet-5, fc2) hold so many inputs, of training inputs and tests pooled, and of the tests."""

SETTINGS = sorted(CELLS)


def counts(setting, which):
    """Return how many inputs each cell holds."""
    return np.repeat([int(held) for held in CELLS[setting][which]], list(CELLS[setting][which].values()))


def inputs_of(setting):
    return 540 if setting.startswith("digits") else 10_000


def incidence(sets, total=None):
    """Return the discovery of inputs that each reach a set of targets."""
    starts = np.cumsum([0, *map(len, sets)])
    targets = np.array([target for reached in sets for target in sorted(reached)], np.int32)
    return Discovery.of_incidence(starts, targets, total)


several = st.lists(st.sets(st.integers(0, 12), max_size=4), min_size=2, max_size=20)


@given(several)
def test_counts_are_those_of_a_slow_count(sets):
    found = incidence(sets)
    holders = {target: [i for i, one in enumerate(sets) if target in one] for target in set().union(*sets)}
    own = [[t for t, held in holders.items() if held == [i]] for i in range(len(sets))]
    shared = {(i, j): [t for t, held in holders.items() if held == [i, j]] for j in range(len(sets)) for i in range(j)}
    assert (found.inputs, found.reached) == (len(sets), len(holders))
    assert found.once == sum(map(len, own))
    assert found.twice == sum(map(len, shared.values()))
    assert found.alone == sum(map(bool, own))
    assert found.pairs == sum(bool(held) and not own[i] and not own[j] for (i, j), held in shared.items())
    assert found.once_squares == sum(len(one) ** 2 for one in own)
    assert found.twice_squares == sum(len(held) ** 2 for held in shared.values())


@given(several)
def test_chance_is_the_share_of_inputs_that_reach_something_new_when_they_come_last(sets):
    last = [bool(one - set().union(*sets[:i], *sets[i + 1 :])) for i, one in enumerate(sets)]
    assert incidence(sets).chance == np.mean(last)


@given(st.lists(st.integers(0, 9), min_size=2, max_size=60))
def test_one_target_per_input_is_the_same_by_either_way(targets):
    by_counts = Discovery.of_counts(np.bincount(targets))
    assert by_counts == incidence([{target} for target in targets])
    assert by_counts.chance == by_counts.once / len(targets)


def test_formulas_by_hand():
    one = Discovery.of_counts(np.array([1] * 27 + [2] * 10 + [5] * 20 + [393]), 192)
    assert (one.inputs, one.reached, one.once, one.twice) == (540, 58, 27, 10)
    assert one.chance == 27 / 540
    width = 1.96 * (27 * (1 - 27 / 540) + 2 * 10) ** 0.5 / 540
    assert (one.low, one.high) == pytest.approx((0.05 - width, 0.05 + width), abs=1e-6)
    unseen = 539 / 540 * 27**2 / 20
    assert one.lower_bound == pytest.approx(58 + unseen)
    for t in (1, 100, 540):
        assert one.new(t).expected == pytest.approx(unseen * (1 - (1 - 27 / (540 * unseen + 27)) ** t))
    # Chao's variance of S + f0 (1987), of which the lower end of a log-normal interval of 90 % is taken.
    ratio, part = 27 / 10, 539 / 540
    variance = 10 * (part / 2 * ratio**2 + part**2 * ratio**3 + part**2 / 4 * ratio**4)
    factor = np.exp(1.6449 * np.sqrt(np.log(1 + variance / unseen**2)))
    assert one.at_least == int(58 + unseen / factor)
    assert Discovery.of_counts(np.array([1, 1, 1, 5])).lower_bound == pytest.approx(4 + 7 / 8 * 3)


@pytest.mark.parametrize("held", [[5, 5], [1, 6], [1, 1, 1], [1, 1, 2, 40], [2, 2, 9], [1] * 9])
def test_few_counts_give_intervals_with_a_width(held):
    one = Discovery.of_counts(np.array(held))
    assert 0 <= one.low <= one.chance <= one.high <= 1
    assert one.high > 0
    assert len(held) <= one.at_least <= max(len(held), one.lower_bound)
    found = [one.new(t) for t in range(1, one.inputs + 1)]
    assert all(new.low <= new.expected <= new.high and new.high > 0 for new in found)
    assert all(a.expected <= b.expected for a, b in pairwise(found))


def test_nothing_is_left_where_every_target_is_reached():
    full = Discovery.of_counts(np.array([1, 4, 5]), 3)
    assert (full.chance, full.low, full.high, full.at_least, full.lower_bound) == (0, 0, 0, 3, 3)
    assert full.new(10) == (0, 0, 0)
    nearly = Discovery.of_counts(np.array([1] * 20), 21)
    assert nearly.new(20).expected == nearly.new(20).high == 1
    assert nearly.at_least <= 21


def test_the_curve_goes_on_where_the_inputs_end():
    one = Discovery.of_counts(np.array([1] * 27 + [2] * 10 + [5] * 20 + [393]), 192)
    inputs, reached = one.curve(5)
    assert inputs.tolist() == [540, 675, 810, 945, 1080]
    assert reached[0].tolist() == [58, 58, 58]
    assert reached[-1].tolist() == [58 + number for number in one.new(540)]
    assert (np.diff(reached, axis=0) >= 0).all()


def test_numbers_far_from_the_expected_are_improbable():
    one = Discovery.of_counts(np.array([1] * 27 + [2] * 10 + [5] * 20 + [393]), 192)
    expected, low, high = one.new(540)
    by_distance = [one.p_of(540, found) for found in (round(expected), high - 1, high + 1, 130)]
    assert by_distance == sorted(by_distance, reverse=True)
    assert by_distance[0] > 0.7
    assert by_distance[1] > 0.04 > 0.001 > by_distance[3]
    assert one.p_of(540, low - 1) < 0.05
    assert one.least_p(540) < 0.001
    never = Discovery.of_counts(np.array([30, 40]))
    assert never.p_of(70, 0) == 1
    assert never.p_of(70, 9) < 0.01


def test_the_range_and_the_probability_are_of_one_distribution():
    """A number outside of the range is less probable than 5 %, and one inside is not."""
    one = Discovery.of_counts(np.array([1] * 27 + [2] * 10 + [5] * 20 + [393]), 192)
    for t in (64, 270, 540):
        _, low, high = one.new(t)
        within = [one.p_of(t, found) > 0.05 for found in range(low, high + 1)]
        assert all(within)
        assert one.p_of(t, high + 1) <= 0.05
        assert low == 0 or one.p_of(t, low - 1) <= 0.05


def test_chances_are_those_of_a_poisson_number_with_an_uncertain_mean():
    mean, variance = 7.0, 4.0
    shape = mean**2 / variance
    pmf = stats.nbinom.pmf(range(401), shape, shape / (shape + 7))
    np.testing.assert_allclose(_poisson(mean, variance, 400), pmf)
    assert _poisson(0.0, 0.0, 5).tolist() == [1, 0, 0, 0, 0, 0]
    assert _poisson(3.0, 1.0, 0).tolist() == [1]


def test_no_prediction_beyond_as_many_inputs_again():
    one = Discovery.of_counts(np.array([1, 4, 5]))
    with pytest.raises(SettingError, match="at most as many more inputs as there are, 10, not for 11"):
        one.new(11)
    with pytest.raises(SettingError, match="t must be a whole number"):
        one.new(0)
    with pytest.raises(DataError, match="at least 2 inputs; got 1"):
        Discovery.of_counts(np.array([1]))


def held(setting, inputs, draws, seed=0):
    """Return the shares of draws: the truth lies in the interval of chance, of new(n), above `at_least`; p <= 5 %."""
    pooled = counts(setting, "pooled")
    shares, rng = pooled / pooled.sum(), np.random.default_rng(seed)
    within = np.zeros(4)
    for now, later in zip(*rng.multinomial(inputs, shares, size=(2, draws)), strict=True):
        one = Discovery.of_counts(now)
        new, found = one.new(inputs), np.count_nonzero((now == 0) & (later > 0))
        within += (
            one.low <= shares[now == 0].sum() <= one.high,
            new.low <= found <= new.high,
            one.at_least <= len(pooled),
            one.p_of(inputs, found) <= LEVEL,
        )
    return within / draws


@pytest.mark.parametrize("setting", SETTINGS)
def test_intervals_hold_at_the_cells_of_real_tests(setting):
    chance, new, least, said = held(setting, inputs_of(setting), 1_000)
    assert 0.93 <= chance <= 0.97
    assert 0.93 <= new <= 0.97
    assert least >= 0.95
    assert 0.03 <= said <= 0.07


@pytest.mark.sampled(5)
@pytest.mark.parametrize("inputs", [20, 50, 100])
@pytest.mark.parametrize("setting", SETTINGS)
def test_intervals_hold_for_few_tests(setting, inputs):
    chance, new, least, _ = held(setting, inputs, 400)
    assert 0.91 <= chance <= 0.98
    assert new >= 0.93
    assert least >= 0.95


def hidden_halves(setting, splits=1_000, seed=0):
    """Predict from one half of the tests how many new cells the other half reaches; return the two, and what held."""
    of_cells, rng = counts(setting, "tests"), np.random.default_rng(seed)
    half = int(of_cells.sum()) // 2
    rows = []
    for first in rng.multivariate_hypergeometric(of_cells, half, size=splits, method="marginals"):
        new, found = Discovery.of_counts(first).new(half), np.count_nonzero(first == 0)
        rows.append((new.expected, found, new.low <= found <= new.high))
    return np.array(rows)


@pytest.mark.parametrize(
    ("setting", "expected", "found", "error"),
    [
        ("digits, m = 6", 18.4, 19.5, 6.9),
        ("digits, m = 8", 27.1, 29.5, 8.7),
        ("digits, m = 12", 53, 57, 11),
        ("mnist, m = 6", 5.8, 5.7, 3.9),
        ("mnist, m = 8", 19.7, 22.1, 7.2),
        ("mnist, m = 12", 131, 140, 20),
    ],
)
def test_new_cells_of_hidden_halves(setting, expected, found, error):
    rows = hidden_halves(setting)
    assert rows[:, 0].mean() == pytest.approx(expected, rel=0.06)
    assert rows[:, 1].mean() == pytest.approx(found, rel=0.06)
    assert np.sqrt(np.mean((rows[:, 0] - rows[:, 1]) ** 2)) == pytest.approx(error, rel=0.2)
    assert rows[:, 2].mean() >= 0.93


def test_intervals_hold_where_inputs_reach_several_targets():
    """Inputs of kinds, some odd: an odd one reaches many targets that few others do, all at once."""
    rng = np.random.default_rng(3)
    rates = np.geomspace(0.2, 0.0005, 120)
    within = np.zeros(2)
    for _ in range(400):
        clumped = np.where(rng.random((400, 1)) < 0.1, 12, 0.3) * rates
        reached = rng.random((400, 120)) < np.clip(clumped, 0, 1)
        now, later = reached[:200], reached[200:]
        one = incidence([set(np.flatnonzero(row).tolist()) for row in now])
        unseen = ~now.any(0)
        # An input reaches none of these independently, given its kind.
        truth = sum(
            part * (1 - np.prod(1 - np.clip(size * rates[unseen], 0, 1))) for part, size in ((0.1, 12), (0.9, 0.3))
        )
        new = one.new(200)
        within += (one.low <= truth <= one.high, new.low <= np.count_nonzero(unseen & later.any(0)) <= new.high)
    assert 0.93 <= within[0] / 400 <= 0.975
    assert within[1] / 400 >= 0.93
