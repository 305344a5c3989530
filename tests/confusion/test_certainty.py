"""Which pairs are confused for certain: exact probabilities, and how rarely chance is taken for confusion."""

import itertools
import math

import numpy as np
import pytest

from idc_core.confusion import Evidence, PairCounts, class_table, evaluate, find_errors, type1_confusion
from idc_core.confusion.disparity import judge_disparity
from idc_core.confusion.findings import least_recalled, most_confused, pair_finding, report_finding
from idc_core.confusion.ground_truth import average_disparity, inputs_behind
from idc_core.confusion.matrix import share_interval
from idc_core.evidence.finding import LEVEL, Verdict
from tests.confusion import slow_confusion as slow


def drawn(random, rates, sizes):
    """True and predicted classes of a test set; `rates` (classes, classes) are shares off the diagonal."""
    answers = rates.copy()
    np.fill_diagonal(answers, 0)
    np.fill_diagonal(answers, 1 - answers.sum(1))
    predicted = [random.choice(len(rates), size, p=row) for size, row in zip(sizes, answers, strict=True)]
    return np.repeat(np.arange(len(rates)), sizes), np.concatenate(predicted)


def counted(true, predicted, classes):
    return PairCounts.of(type1_confusion(true, predicted, classes), inputs_behind(true, classes))


def equal(classes, rate):
    return np.full((classes, classes), rate)


def test_chances_are_those_of_drawing_without_replacement():
    true, predicted = drawn(np.random.default_rng(0), equal(4, 0.05), (30, 25, 40, 20))
    counts = counted(true, predicted, 4)
    pairs = np.array(list(itertools.combinations(range(4), 2)))
    p, least = counts.chances(pairs)
    wrong, total = int((true != predicted).sum()), 3 * len(true)
    assert counts.total == (wrong, total)
    assert counts.looks == 6
    for (a, b), chance, smallest in zip(pairs, p, least, strict=True):
        own = sum(((true == x) & (predicted == y)).sum() for x, y in ((a, b), (b, a)))
        behind = np.isin(true, (a, b)).sum()
        assert chance == pytest.approx(slow.as_many_by_chance(own, behind, wrong, total))
        assert smallest == pytest.approx(slow.as_many_by_chance(min(wrong, behind), behind, wrong, total))
    for pair in pairs:
        needed = counts.needed(tuple(pair))
        behind = np.isin(true, pair).sum()
        enough = [slow.as_many_by_chance(k, behind, wrong, total) * 6 <= LEVEL for k in range(wrong + 1)]
        assert needed == enough.index(True)


def test_one_pair_has_no_others_and_no_confusion_is_too_few():
    true = np.repeat([0, 1], 20)
    predicted = true.copy()
    predicted[0] = 1
    counts = counted(true, predicted, 2)
    assert not counts.certain(np.array([[0, 1]])).any()
    assert counts.needed((0, 1)) is None
    assert pair_finding(("a", "b"), counts, (0, 1)) is None
    assert most_confused(("a", "b"), counts) is None
    three = np.repeat([0, 1, 2], 20)
    right = counted(three, three, 3)
    assert pair_finding(("a", "b", "c"), right, (0, 1)).verdict is Verdict.TOO_FEW
    assert right.needed((0, 1)) is None
    assert least_recalled(("a", "b", "c"), class_table(three, three, ("a", "b", "c")).recall) is None


def test_a_finding_says_counts_and_the_rate_of_the_others():
    true = np.repeat(np.arange(5), 100)
    predicted = true.copy()
    predicted[:12] = 1
    predicted[200] = 3
    names = ("a", "b", "c", "d", "e")
    counts = counted(true, predicted, 5)
    finding = pair_finding(names, counts, (0, 1))
    assert (finding.number, finding.looks) == (12, 10)
    assert finding.control.value == pytest.approx(200 * 1 / 1800)
    assert finding.sentence == (
        "Confused among 200 tests of a and b: 12, and 0.11 (0 to 1) at the rate of the other pairs."
    )
    assert finding.low > 0
    assert most_confused(names, counts) == finding
    recall = least_recalled(names, class_table(true, predicted, names).recall)
    expected = "Misclassified among 100 tests of a: 12, and 0.25 (0 to 2) at the rate of the other classes."
    assert recall.sentence == expected
    rare = pair_finding(names, counts, (2, 3))
    assert rare.verdict is Verdict.AS_EXPECTED
    assert rare.sentence.endswith("at the rate of the other pairs, as expected.")


def test_matrix_recall_and_precision_by_hand():
    random = np.random.default_rng(2)
    true, predicted = drawn(random, equal(4, 0.1), (12, 9, 0, 7))
    table = class_table(true, predicted, ("a", "b", "c", "d"))
    for a, b in itertools.product(range(4), range(4)):
        assert table.counts[a, b] == sum(t == a and p == b for t, p in zip(true, predicted, strict=True))
    np.testing.assert_allclose(table.row_shares[0], table.counts[0] / 12)
    assert np.isnan(table.row_shares[2]).all()
    assert np.isnan([table.recall.share[2], *(end[2] for end in table.recall.interval)]).all()
    said = (predicted == 1).sum()
    assert (table.precision.count[1], table.precision.inputs[1]) == (((predicted == 1) & (true == 1)).sum(), said)
    several = np.eye(4, dtype=bool)[true] | (random.random((28, 4)) < 0.2)
    answers = np.eye(4, dtype=bool)[predicted]
    many = class_table(several, answers, ("a", "b", "c", "d"))
    assert many.counts is many.row_shares is None
    assert many.recall.count.tolist() == [(several[:, c] & answers[:, c]).sum() for c in range(4)]
    assert many.precision.inputs.tolist() == answers.sum(0).tolist()


@pytest.mark.parametrize("inputs", [30, 54, 200, 1000])
def test_intervals_of_shares_hold_for_every_true_share(inputs):
    counts = np.arange(inputs + 1)
    low, high = share_interval(counts, np.full(inputs + 1, inputs))
    assert (low <= counts / inputs).all()
    assert (counts / inputs <= high).all()
    held = []
    for share in np.linspace(0.001, 0.999, 400):
        chances = [slow.binomial(k, inputs, share) for k in counts.tolist()]
        held.append(sum(c for c, a, b in zip(chances, low, high, strict=True) if a <= share <= b))
    assert min(held) > 0.93
    assert 0.95 < np.mean(held) < 0.97


def test_reported_pairs_beside_pairs_drawn_at_random():
    reported, certain = np.zeros(45, bool), np.zeros(45, bool)
    reported[:9], certain[[0, 1, 2, 3, 20, 30]] = True, True
    finding = report_finding(reported, certain)
    assert finding.number == 4
    assert finding.control.value == pytest.approx(1.2)
    hits = [slow.drawn_at_random(k, 45, 6, 9) for k in range(7)]
    assert finding.p == pytest.approx(sum(p for k, p in enumerate(hits) if abs(k - 1.2) >= 2.8))
    assert finding.least_p == pytest.approx(hits[6])
    assert sum(hits[: int(finding.control.high) + 1]) >= 0.975 > sum(hits[: int(finding.control.high)])
    assert finding.sentence == (
        "Truly confused among the 9 pairs reported without labels, of 6 in all: 4, and 1.20 (0 to 3) among as many "
        "random pairs."
    )
    none = report_finding(reported, np.zeros(45, bool))
    assert none.verdict is Verdict.TOO_FEW
    assert none.sentence.endswith("0, and 0 among as many random pairs, too few to tell.")
    assert report_finding(np.zeros(0, bool), np.zeros(0, bool)).verdict is Verdict.TOO_FEW


@pytest.mark.sampled(3)
@pytest.mark.parametrize("rate", [0.001, 0.01, 0.05])
@pytest.mark.parametrize("sizes", [(54,) * 10, (20, 200, 50, 100, 400, 30, 60, 80, 90, 110)])
def test_equal_rates_seldom_make_a_pair_certain(rate, sizes):
    """At most one test set in twenty has a pair that is said to be truly confused; without more, six of 45 pairs."""
    random = np.random.default_rng(4)
    pairs = np.array(list(itertools.combinations(range(10), 2)))
    found, published = 0, []
    for _ in range(200):
        true, predicted = drawn(random, equal(10, rate), sizes)
        found += counted(true, predicted, 10).certain(pairs).any()
        confusion = type1_confusion(true, predicted, 10)
        pair = (confusion + confusion.T) / 2
        published.append(evaluate(pair, pair).true_pairs)
    assert found / 200 <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 200)
    assert np.mean(published) > 3


def test_a_planted_pair_is_certain():
    random = np.random.default_rng(5)
    rates = equal(10, 0.002)
    rates[3, 8] = 0.15
    found = 0
    for _ in range(50):
        true, predicted = drawn(random, rates, (54,) * 10)
        finding = most_confused(tuple("0123456789"), counted(true, predicted, 10))
        found += finding.verdict is Verdict.STANDS_OUT and finding.where == (("pair", "3-8"),)
    assert found >= 45


def test_truly_confused_is_certain_and_above_the_papers_cutoff():
    random = np.random.default_rng(6)
    rates = equal(10, 0.004)
    rates[1, 7], rates[2, 5] = 0.1, 0.04
    true, predicted = drawn(random, rates, (100,) * 10)
    evidence = Evidence(tuple("0123456789"), predicted, true, values=random.random((1000, 20)))
    found = find_errors(evidence)
    pairs = found.suspected
    certain, published = found.certainly_confused(pairs), found.truly_confused(pairs)
    assert (certain <= published).all()
    assert pairs[certain].tolist() == [[1, 7]]
    assert published.sum() > 1
    assert found.report_finding.control.value == pytest.approx(found.confusion_found.at_deviations.reported / 45)
    assert found.confusion_found.true_pairs == published.sum(), "the published count stays"
    bare = find_errors(Evidence(evidence.class_names, predicted, values=evidence.values))
    assert bare.certainly_confused(pairs) is bare.report_finding is bare.most_confused() is None
    assert bare.pair_finding((0, 1)) is bare.disparity_finding((0, 1)) is None


def test_a_disparity_beside_equal_rates_by_hand():
    random = np.random.default_rng(7)
    rates = equal(5, 0.02)
    rates[0, 2:] = 0.12
    true, predicted = drawn(random, rates, (150,) * 5)
    directional, inputs = type1_confusion(true, predicted, 5), inputs_behind(true, 5)
    found = judge_disparity(directional, inputs, (0, 1))
    assert found.value == pytest.approx(average_disparity(directional)[0, 1])
    assert found.confused == (((true < 2) != (predicted < 2)) & (true != predicted)).sum()
    mean, low, high = slow.disparity_of_equal_rates(directional, inputs, (0, 1), 3000)
    assert found.expected == pytest.approx(mean, rel=0.05)
    assert (found.expected_low, found.expected_high) == (pytest.approx(low, rel=0.15), pytest.approx(high, rel=0.1))
    assert 0 < found.low < found.value - found.expected < found.high
    assert found.p == found.least_p
    right = type1_confusion(true, true, 5)
    assert judge_disparity(right, inputs, (0, 1)) is None, "no input is confused"


_THIRDS = {
    "equal": np.ones(8),
    "all": np.full(8, 1.5),
    "one": np.r_[3, np.ones(7)],
    "both ways": np.r_[1.7, 0.3, 1.6, 0.5, 1, 1.2, 0.7, 1],
}
_SETTINGS = [(0.005, 200), (0.02, 54), (0.05, 54), (0.1, 200)]


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize(("rate", "size"), _SETTINGS)
@pytest.mark.parametrize("kind", list(_THIRDS))
def test_an_interval_of_a_disparity_holds(kind, rate, size):
    """The first class is confused with third ones as often as the second, times these factors.

    With 1,000 draws the intervals hold as often as docs/results/evidence-class-errors.md says.
    """
    random = np.random.default_rng(8)
    factors = _THIRDS[kind]
    ends = np.stack([rate * factors, rate * (2 - factors if kind == "all" else np.ones(8))])
    excess = np.subtract(*(mean_disparity(random, one, size) for one in (ends, np.broadcast_to(ends.mean(0), (2, 8)))))
    held = 0
    for number in range(150):
        directional = np.full((10, 10), np.nan)
        directional[:2, 2:] = random.binomial(size, ends) / size
        directional[2:, :2] = (random.binomial(size, ends) / size).T
        found = judge_disparity(directional, np.full((10, 10), float(size)), (0, 1), seed=number)
        held += found is not None and found.low <= excess <= found.high
    assert held / 150 > 0.95 - 2.5 * math.sqrt(0.95 * 0.05 / 150)


def mean_disparity(random, ends, size):
    """Mean disparity of test sets with these rates of two classes (2, third classes) in both directions."""
    rates = random.binomial(size, np.stack([ends, ends]), (20_000, 2, *ends.shape)) / size
    confusion = rates.mean(1)
    return np.abs(confusion[:, 0] - confusion[:, 1]).mean()


@pytest.mark.slow
def test_equal_rates_seldom_make_a_disparity_stand_out():
    random = np.random.default_rng(9)
    out = 0
    for number in range(150):
        true, predicted = drawn(random, equal(10, 0.01), (100,) * 10)
        found = judge_disparity(type1_confusion(true, predicted, 10), inputs_behind(true, 10), (0, 1), seed=number)
        out += found is not None and found.p <= LEVEL
    assert out / 150 <= 0.05
