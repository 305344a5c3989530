"""Orders of tests: uncertainty, greedy coverage, and how early mistakes come; and the profiles they are read from."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from idc_core.coverage.prioritisation import (
    UNCERTAINTIES,
    Order,
    _additional_first,
    apfd,
    detect_faults,
    earliest,
    most_first,
)
from idc_core.coverage.profiles import Profiles
from idc_core.errors import DataError, SettingError
from idc_core.evidence.finding import Verdict

masks = arrays(bool, st.tuples(st.integers(1, 12), st.integers(1, 9)))
SCORES = np.random.default_rng(0).normal(size=(30, 4)) * 5


class TestUncertainties:
    def test_by_definition(self):
        powers = np.exp(SCORES)
        probabilities = powers / powers.sum(1, keepdims=True)
        for row, scores in zip(probabilities, SCORES, strict=True):
            best, second = sorted(row)[::-1][:2]
            expected = {
                "deepgini": 1 - sum(p * p for p in row),
                "entropy": -sum(p * np.log(p) for p in row),
                "margin": 1 - (best - second),
            }
            expected["confidence"] = 1 - best
            found = {name: entry(scores[None])[0] for name, entry in UNCERTAINTIES.items() if not entry.dropout}
            assert found == pytest.approx(expected)

    def test_of_passes_with_dropout(self):
        passes = 3 * np.random.default_rng(1).normal(size=(7, 30, 4))
        probabilities = np.exp(passes) / np.exp(passes).sum(2, keepdims=True)

        def entropy(row):
            return -sum(p * np.log(p) for p in row)

        for place in range(30):
            of = probabilities[:, place]
            votes = [row.argmax() for row in of]
            commonest = max(votes.count(label) for label in range(4))
            expected = {
                "variation-ratio": 1 - commonest / 7,
                "mutual-information": entropy(of.mean(0)) - np.mean([entropy(row) for row in of]),
            }
            some = passes[:, place : place + 1]
            assert {name: UNCERTAINTIES[name](some)[0] for name in expected} == pytest.approx(expected)
        same = np.repeat(passes[:1], 5, axis=0)
        for name in ("variation-ratio", "mutual-information"):
            assert UNCERTAINTIES[name](same) == pytest.approx(np.zeros(30), abs=1e-12)
            with pytest.raises(DataError, match=r"\(passes, n, classes\).*got shape \(30, 4\)"):
                UNCERTAINTIES[name](SCORES)

    def test_ends_of_the_range(self):
        sure, unsure = np.array([[900.0, 0, 0]]), np.array([[7.0, 7, 7]])
        for name, most in (("deepgini", 2 / 3), ("entropy", np.log(3)), ("margin", 1)):
            assert UNCERTAINTIES[name](sure) == 0
            assert UNCERTAINTIES[name](unsure) == pytest.approx(most)

    def test_entries_say_what_they_are(self):
        for name, entry in UNCERTAINTIES.items():
            assert entry.name == name == name.lower()
            assert entry.label
            assert entry.citation
            assert entry.help.endswith(".")

    @pytest.mark.parametrize("scores", [np.ones((3, 1)), np.ones(3), np.array([[1.0, np.nan]])])
    def test_what_has_no_uncertainty(self, scores):
        with pytest.raises(DataError, match="two classes"):
            UNCERTAINTIES["entropy"](scores)


class TestProfiles:
    @given(masks, st.randoms(use_true_random=False))
    def test_equal_a_boolean_array(self, mask, random):
        profiles = Profiles.of_mask(mask)
        np.testing.assert_array_equal(profiles.dense, mask)
        np.testing.assert_array_equal(profiles.counts, mask.sum(1))
        order = random.sample(range(len(mask)), random.randint(0, len(mask)))
        covered = [0, *(int(mask[order[: i + 1]].any(0).sum()) for i in range(len(order)))]
        np.testing.assert_array_equal(profiles.gains(np.array(order, int)), np.diff(covered))
        assert profiles.covered(np.array(order, int)) == covered[-1]
        assert profiles.coverage() == mask.any(0).mean()

    @given(masks, st.integers(0, 12))
    def test_joined_parts_are_the_whole(self, mask, cut):
        parts = [Profiles.of_mask(part) for part in (mask[:cut], mask[cut:])]
        np.testing.assert_array_equal(Profiles.joined(parts).dense, mask)

    def test_codes(self):
        values = np.array([0.5, 1.5, 9.0])
        profiles = Profiles.of_codes(np.array([[0, 3], [-1, 2], [-1, -1]]), None, values)
        assert profiles.dense.tolist() == [[1, 0, 0, 1], [0, 0, 1, 0], [0, 0, 0, 0]]
        assert profiles.coverage() == 3
        assert Profiles.joined([profiles, profiles]).values.tolist() == [0.5, 1.5, 9.0] * 2


class TestOrders:
    def test_most_first(self):
        assert most_first(np.array([1.0, 3.0, 1.0, np.inf, 3.0])).tolist() == [3, 1, 4, 0, 2]
        with pytest.raises(DataError, match="nan"):
            most_first(np.array([1.0, np.nan]))

    @given(masks)
    def test_additional_first_is_greedy(self, mask):
        order, covered, left = [], np.zeros(mask.shape[1], bool), list(range(len(mask)))
        while left:
            gains = [int((mask[i] & ~covered).sum()) for i in left]
            if max(gains) == 0:
                left.sort(key=lambda i: (-mask[i].sum(), i))
                order += left
                break
            best = left.pop(int(np.argmax(gains)))
            order.append(best)
            covered |= mask[best]
        assert _additional_first(Profiles.of_mask(mask)).tolist() == order

    def test_apfd_by_hand(self):
        wrong = np.array([False, True, False, True, False])
        assert apfd(np.array([1, 3, 0, 2, 4]), wrong) == pytest.approx(1 - 3 / 10 + 0.1)
        assert apfd(np.array([0, 2, 4, 1, 3]), wrong) == pytest.approx(1 - 9 / 10 + 0.1)

    def test_apfd_of_what_has_none(self):
        with pytest.raises(DataError, match="right on all"):
            apfd(np.arange(3), np.zeros(3, bool))
        for order in ([0, 1], [0, 0, 1], [0, 1, 3]):
            with pytest.raises(SettingError, match="3 inputs"):
                apfd(np.array(order), np.ones(3, bool))


class TestEarliest:
    def test_the_best_order_is_one_of_several_looks(self):
        random, wrong = np.random.default_rng(0), np.arange(300) < 12
        orders = [Order(str(number), "uncertainty", random.permutation(300)) for number in range(30)]
        labels = {order.key: f"order {order.name}" for order in orders}
        found = detect_faults(orders, wrong)
        chance = earliest(found, wrong, labels)
        best = max(found.apfd, key=lambda key: found.apfd[key])
        assert chance.claim.endswith(f"(APFD) by order {best}, the best of 30 orders")
        assert (chance.number, chance.looks, chance.verdict) == (found.apfd[best], 30, Verdict.AS_EXPECTED)
        assert chance.control.value == pytest.approx(0.5, abs=0.01)
        # Places of 12 of 300 at random, drawn without replacement.
        spread = 1.96 * ((300 - 12) * 301 / (12 * 12)) ** 0.5 / 300
        assert (chance.control.low, chance.control.high) == pytest.approx((0.5 - spread, 0.5 + spread), abs=0.02)
        first = Order("first", "uncertainty", np.arange(300))
        early = earliest(detect_faults([*orders, first], wrong), wrong, labels | {"first": "the first"})
        assert early.verdict is Verdict.STANDS_OUT
        assert " by the first, the best of 31 orders: 98.0 %, and 5" in early.sentence

    def test_a_draw_has_the_value_of_its_order(self):
        wrong = np.zeros(7, bool)
        wrong[[1, 4]] = True
        order = np.array([4, 0, 1, 2, 3, 5, 6])
        assert apfd(order, wrong) == pytest.approx(1 - np.mean([1, 3]) / 7 + 1 / 14)
