"""The study: a ranking that is the truth comes first and one that is noise last, in every design and over networks."""

import numpy as np
import pytest
from scipy import stats

from idc_core.coverage.profiles import Profiles
from idc_core.errors import DataError, SettingError
from idc_core.worth import Yardstick
from idc_core.worth.pooling import correlated, interval, selected, signed_rank
from idc_core.worth.rankings import Ranking, rank_by_diversity, rank_by_profiles, rank_by_values
from idc_core.worth.study import StudySettings, partial, study

POOL, FAULTS = 400, 30
QUICK = StudySettings(budgets=(0.02, 0.05, 0.1), suites=24, draws=60)


def planted(seed):
    """A pool in which each of 30 faults is found by three tests, and 310 tests find nothing."""
    random = np.random.default_rng(seed)
    found = np.zeros((POOL, FAULTS), bool)
    found[random.permutation(POOL)[: 3 * FAULTS], np.repeat(np.arange(FAULTS), 3)] = True
    return Yardstick("planted faults", found)


def rankings(yardstick, seed):
    random = np.random.default_rng(1000 + seed)
    blurred = yardstick.found.any(1) + random.normal(0, 0.8, POOL)
    return [
        rank_by_profiles("noise", Profiles.of_mask(random.random((POOL, 200)) < 0.02)),
        rank_by_values("blurred", blurred),
        rank_by_profiles("truth", Profiles.of_mask(yardstick.found)),
    ]


@pytest.fixture(scope="module")
def records():
    made = {}
    for seed in range(10):
        yardstick = planted(seed)
        made[f"network{seed}"] = study(rankings(yardstick, seed), [yardstick], QUICK)
    return made


def test_the_truth_comes_first_and_noise_last(records):
    for budget in range(3):
        rows = selected(records, "planted faults", budget)
        assert [row.ranking for row in rows] == ["truth", "blurred", "noise"]
        truth, blurred, noise = rows
        assert truth.more.is_certain
        assert truth.above == 1
        assert blurred.more.is_certain
        assert not noise.more.is_certain
        assert noise.more.low <= 0 <= noise.more.high
        assert noise.random == truth.random
    assert truth.found == 1  # 30 of 40 tests find all
    assert truth.more.networks == 10


def test_correlations_know_the_truth_in_every_design(records):
    found = correlated(records, "planted faults")
    for design in ("equal", "stretched", "sizes", "partial"):
        rows = found[design]
        assert rows["truth"].value == pytest.approx(1)
        assert rows["truth"].is_certain
        assert max(rows, key=lambda name: rows[name].value) == "truth"
    assert abs(found["equal"]["noise"].value) < 0.2
    assert not found["equal"]["noise"].is_certain
    # More tests find more and cover more, whatever is covered; with their number held fixed nothing is left.
    assert found["sizes"]["noise"].value > 0.8
    assert abs(found["partial"]["noise"].value) < 0.2
    assert found["sizes"]["size"].value > 0.8


def test_suites_that_are_made_to_differ_do(records):
    for record in records.values():
        for low, high in (record["ranges"][name]["stretched"] for name in ("noise", "truth")):
            assert low < high
        equal, stretched = record["ranges"]["truth"].values()
        assert np.ptp(stretched) > 2 * np.ptp(equal)


def test_a_study_is_the_same_again():
    yardstick = planted(3)
    assert study(rankings(yardstick, 3), [yardstick], QUICK) == study(rankings(yardstick, 3), [yardstick], QUICK)


def test_tests_are_taken_that_add_most_or_least():
    """Slowly: of the tests left one that adds fewest, or most, targets to those before."""
    random = np.random.default_rng(5)
    mask = random.random((60, 25)) < 0.15
    ranking = rank_by_profiles("any", Profiles.of_mask(mask))
    for take, best in ((ranking.least, min), (ranking.first, max)):
        covered, left = np.zeros(25, bool), set(range(60))
        for test in take(40, 2):
            added = {other: int((mask[other] & ~covered).sum()) for other in left}
            assert added[test] == best(added.values())
            covered |= mask[test]
            left.remove(test)
    assert ranking.first(60, 2).tolist() != ranking.first(60, 3).tolist()  # chance decides between equals
    assert ranking.first(60, 2)[:9].tolist() == ranking.first(9, 2).tolist()


def test_diversity_takes_what_raises_the_determinant_most():
    rows = np.random.default_rng(0).normal(size=(40, 5))
    ranking = rank_by_diversity(rows)
    first = ranking.first(12, 0)
    assert ranking.first(40, 0)[:12].tolist() == first.tolist()
    for place in range(1, 12):
        before = list(first[:place])
        scores = {other: ranking.score(np.array([*before, other])) for other in range(40) if other not in before}
        assert first[place] == max(scores, key=scores.get)
    assert ranking.score(first) > ranking.score(ranking.least(12, 0))
    with pytest.raises(DataError, match="no diversity"):
        rank_by_diversity(np.ones((4, 3)))


def test_a_suite_by_values_scores_their_mean():
    ranking = rank_by_values("values", np.array([0.0, 3.0, 1.0, 2.0]))
    assert ranking.first(4, 0).tolist() == [1, 3, 2, 0]
    assert ranking.least(2, 0).tolist() == [0, 2]
    assert ranking.score(np.array([1, 2])) == 2


def test_no_targets_and_no_values_rank_nothing():
    empty = Profiles(np.zeros(4, np.int64), np.zeros(0, np.int32), 0)
    with pytest.raises(DataError, match="nothing ranks"):
        rank_by_profiles("none", empty)


@pytest.mark.parametrize("seed", range(6))
def test_wilcoxons_test_is_exact(seed):
    values = np.random.default_rng(seed).normal(0.3, 1, 11)
    assert signed_rank(values) == pytest.approx(stats.wilcoxon(values, method="exact").pvalue)


def test_wilcoxons_test_counts_ties_over_all_signs():
    values = np.array([1.0, 1.0, -1.0, 2.0, 2.0, 3.0, 0.0])
    magnitudes, ranks = np.abs(values[:-1]), stats.rankdata(np.abs(values[:-1]))
    signs = np.array(np.meshgrid(*[[0, 1]] * 6)).reshape(6, -1)
    sums, seen = ranks @ signs, ranks[values[:-1] > 0].sum()
    assert len(magnitudes) == 6
    assert signed_rank(values) == pytest.approx(min(1, 2 * min((sums >= seen).mean(), (sums <= seen).mean())))
    assert signed_rank(np.zeros(5)) == 1


def test_an_interval_holds_the_mean():
    values = np.arange(12.0)
    low, high = interval(values)
    assert low < values.mean() < high
    assert (low, high) == interval(values)


def test_partial_correlation_is_that_of_what_size_leaves():
    random = np.random.default_rng(1)
    third = random.normal(size=500)
    first, second = third + random.normal(size=500), third + random.normal(size=500)
    both = np.corrcoef(np.stack([first, second, third]))
    left = [values - np.polyval(np.polyfit(third, values, 1), third) for values in (first, second)]
    assert partial(both) == pytest.approx(np.corrcoef(left)[0, 1])
    assert np.isnan(partial(np.ones((3, 3))))


def test_what_does_not_fit_is_refused():
    yardstick = planted(0)
    with pytest.raises(DataError, match="one pool"):
        study([Ranking("short", 3, None, None, None)], [yardstick])
    with pytest.raises(SettingError, match="Budgets"):
        StudySettings(budgets=(0.7,))
    with pytest.raises(SettingError, match="suites=2"):
        StudySettings(suites=2)
    small = Yardstick("few", yardstick.found[:20][:, yardstick.found[:20].any(0)])
    with pytest.raises(DataError, match="more tests"):
        study([rank_by_values("values", np.arange(20.0))], [small])
    with pytest.raises(DataError, match="planted"):
        selected({"one": {"yardsticks": {"planted faults": {}}}}, "others", 0)
