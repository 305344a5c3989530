"""Several criteria on the same tests: scores of parts and subsets, rank correlation, and who meets mistakes first."""

import itertools
from typing import ClassVar

import numpy as np
import pytest
import scipy.stats
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch import nn

from idc_core import CRITERIA, IDC
from idc_core.analysis.analysis import analyze
from idc_core.coverage import agreement, prioritisation
from idc_core.coverage.prioritisation import UNCERTAINTIES
from idc_core.coverage.profiles import Profiles
from idc_core.coverage.streamed import measure
from idc_core.datasets import load_dataset
from idc_core.errors import CancelledError, DataError, SettingError
from idc_core.models import load_model
from idc_core.tracing.trace import collect
from idc_core.tracing.traces import Traces
from tests.lrp.networks import Written, numbers, settle

IMAGES = numbers(130, 1, 6, 6, seed=3)
TRAIN, TESTS = IMAGES[:80], 1.3 * IMAGES[80:]


def forward(net, x):
    return net.out(F.elu(net.fc(x.flatten(1))))


NETWORK = settle(Written(forward, fc=nn.Linear(36, 7), out=nn.Linear(7, 3)), seed=5)
PARTS = {"all": np.arange(50), "even": np.arange(0, 50, 2), "one": np.array([17]), "twice": np.array([3, 3, 4])}
SUBSETS = agreement.random_subsets(50, sizes=4, orders=3, seed=1)


def make(names=tuple(CRITERIA)):
    return [CRITERIA[name](NETWORK, "fc", **({"m": 3} if name == "idc" else {})) for name in names]


@pytest.fixture(scope="module")
def readings():
    return dict(zip(CRITERIA, agreement.evaluate_criteria(make(), TRAIN, TESTS, PARTS), strict=True))


class TestEvaluate:
    # Clusters of a part by itself are other ones than those that all tests make.
    @pytest.mark.parametrize("name", [name for name, kind in CRITERIA.items() if not kind.card.order_matters])
    def test_parts_and_subsets_score_as_if_measured_alone(self, readings, name):
        for part, positions in PARTS.items():
            (alone,) = measure(make([name]), TRAIN, TESTS[positions])
            assert readings[name].scores[part] == pytest.approx(alone, rel=1e-6), part  # traces hold 32 bits
        for order, row in zip(SUBSETS.orders, readings[name].growth(SUBSETS), strict=True):
            for size, score in zip(SUBSETS.sizes, row, strict=True):
                (alone,) = measure(make([name]), TRAIN, TESTS[order[:size]])
                assert score == pytest.approx(alone, rel=1e-6)

    def test_clusters_of_a_part_are_those_of_all_tests(self, readings):
        (alone,) = measure(make(["cc"]), TRAIN, TESTS)
        assert readings["cc"].scores["all"] == readings["cc"].growth(SUBSETS)[0, -1] == alone
        profiles = readings["cc"].profiles
        even = set(itertools.chain(*(profiles.targets[slice(*profiles.starts[i : i + 2])] for i in PARTS["even"])))
        assert readings["cc"].scores["even"] == len(even) < alone

    def test_nlc_says_what_each_test_adds_to_all(self, readings):
        (nlc,) = make(["nlc"])
        nlc.update(TESTS)
        before = nlc.score
        nlc.update(TESTS[[8]])
        assert readings["nlc"].profiles.values[8] == pytest.approx(nlc.score - before)

    def test_traces_and_inputs_read_the_same(self, readings):
        names = [name for name in CRITERIA if name != "idc"]
        traces = collect(NETWORK, TRAIN, ["fc"]), collect(NETWORK, TESTS, ["fc"])
        for name, one in zip(names, agreement.evaluate_criteria(make(names), *traces, PARTS), strict=True):
            assert one.scores == pytest.approx(readings[name].scores), name
            assert one.growth(SUBSETS) == pytest.approx(readings[name].growth(SUBSETS)), name

    def test_one_pass_each(self):
        seen = []
        handle = NETWORK.register_forward_pre_hook(lambda _, inputs: seen.append(len(inputs[0])))
        agreement.evaluate_criteria(make([name for name in CRITERIA if name != "idc"]), TRAIN, TESTS, PARTS)
        handle.remove()
        assert sum(seen) == pytest.approx(len(TRAIN) + len(TESTS), abs=2)  # the shape of an output may be asked for

    @pytest.mark.parametrize("name", ["kmnc", "nlc"])
    def test_stops_when_asked(self, name):
        with pytest.raises(CancelledError):
            agreement.evaluate_criteria(make([name]), TRAIN, TESTS, PARTS, on_progress=lambda *_: False)

    def test_growth_stops_when_asked(self, readings):
        with pytest.raises(CancelledError):
            readings["nlc"].growth(SUBSETS, on_progress=lambda *_: False)


def test_joined_traces_are_those_of_all_inputs():
    parts = [collect(NETWORK, inputs, ["fc"]) for inputs in (TESTS[:13], TESTS[13:])]
    both, whole = Traces.joined(*parts), collect(NETWORK, TESTS, ["fc"])
    assert both.scores == pytest.approx(whole.scores)
    assert both.activations["fc"] == pytest.approx(whole.activations["fc"])
    assert both.only([20]).scores == pytest.approx(whole.scores[[20]])


class TestSubsets:
    def test_rows_are_orders_and_sizes_end_with_all(self):
        found = agreement.random_subsets(103, sizes=5, orders=4, seed=2)
        assert found.sizes.tolist() == [21, 42, 62, 83, 103]
        assert (np.sort(found.orders, axis=1) == np.arange(103)).all()
        assert len(np.unique(found.orders[:, 0])) > 1

    def test_few_tests_have_fewer_sizes(self):
        assert agreement.random_subsets(3, sizes=12).sizes.tolist() == [1, 2, 3]

    def test_seed_decides(self):
        one, same, other = (agreement.random_subsets(20, seed=seed).orders for seed in (4, 4, 5))
        assert (one == same).all()
        assert (one != other).any()

    @pytest.mark.parametrize("wrong", [{"tests": 0}, {"tests": 5, "sizes": 0}, {"tests": 5, "orders": 0}])
    def test_refuses_nothing(self, wrong):
        with pytest.raises(SettingError, match="at least 1"):
            agreement.random_subsets(**wrong)


def test_comparison_scores_every_suite_by_every_criterion():
    names = ("idc", "nc", "kmnc", "cc", "nlc", "dsc")
    suites = (TESTS[:20], TESTS[20:], TESTS)
    found = agreement.score_suites(make(names), TRAIN, suites)
    assert found.shape == (len(names), len(suites))
    for column, tests in enumerate(suites):
        assert found[:, column] == pytest.approx(measure(make(names), TRAIN, tests))


def test_fresh_criteria_share_what_they_learned_and_nothing_they_saw():
    for one in make():
        one.fit(TRAIN).update(TESTS)
        before = one.score
        again = one.fresh()
        assert again.score == 0
        few = again.update(TESTS[:3]).score
        assert few == pytest.approx(one.fresh().update(TESTS[:3]).score)
        assert one.score == before
        assert one.fresh().update(TESTS).score == pytest.approx(before)


def test_cells_by_known_clusters_are_those_of_the_criterion():
    model, train, test = load_model("lenet5-digits"), load_dataset("digits", "train"), load_dataset("digits", "test")
    analysis = analyze(model, train, test, "fc2", 4)
    profiles = analysis.cell_profiles(collect(model, test, ["fc2"]).activations["fc2"])
    expected = IDC(model, "fc2", 4).fit(train.inputs).profile(test.inputs)
    assert profiles.targets.tolist() == expected.targets.tolist()
    assert (profiles.total, profiles.covered()) == (analysis.total, analysis.covered)


class TestCorrelation:
    values = arrays(np.float64, (3, 8), elements=st.integers(0, 4).map(float))

    @pytest.mark.parametrize(("method", "slow"), [("spearman", "spearmanr"), ("kendall", "kendalltau")])
    @given(values=values)
    def test_as_scipy(self, method, slow, values):
        found = agreement.correlations(values, method)
        for i, j in itertools.product(range(3), repeat=2):
            if len(set(values[i])) == 1 or len(set(values[j])) == 1:
                assert np.isnan(found[i, j])
            else:
                assert found[i, j] == pytest.approx(getattr(scipy.stats, slow)(values[i], values[j]).statistic)

    @pytest.mark.parametrize("method", ["spearman", "kendall"])
    def test_planted_agreement_and_opposition(self, method):
        scores = np.array([0.2, 0.9, 0.4, 0.5])
        found = agreement.correlations(np.stack([scores, 100 * scores**3, -scores, np.ones(4)]), method)
        assert found[0, 1] == pytest.approx(1)
        assert found[0, 2] == found[1, 2] == pytest.approx(-1)
        assert np.isnan(found[3]).all()

    def test_over_all_subsets_or_those_of_one_size(self):
        """Two criteria that both grow, and at every size say the opposite of each other."""
        base, random = np.arange(5)[None, :] * 10.0, np.random.default_rng(0).permutation(6)[:, None]
        growth = np.stack([base + random, base - random])
        growth[:, :, -1] = 50.0  # all tests: every order ends at the same score
        assert agreement.subset_correlations(growth)[0, 1] > 0.8
        assert agreement.subset_correlations(growth, same_size=True)[0, 1] == pytest.approx(-1)
        assert agreement.subset_correlations(growth, "kendall", same_size=True)[0, 1] == pytest.approx(-1)

    def test_sizes_at_which_a_criterion_is_constant_are_left_out(self):
        growth = np.zeros((2, 4, 3))
        growth[0, :, 1] = growth[1, :, 1] = [1, 2, 3, 4]
        assert agreement.subset_correlations(growth, same_size=True)[0, 1] == pytest.approx(1)
        assert np.isnan(agreement.subset_correlations(np.zeros((2, 4, 3)), same_size=True)).all()

    def test_refuses_unknown_methods(self):
        with pytest.raises(SettingError, match="spearman, kendall"):
            agreement.correlations(np.zeros((2, 3)), "pearson")


class TestOrders:
    PROFILES: ClassVar = {
        "targets": Profiles.of_mask(np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1], [0, 0, 0]], bool)),
        "both": Profiles.of_codes(np.array([[0], [-1], [0], [1]]), 2, np.array([0.5, np.inf, 0.1, 2.0])),
        "values": Profiles(np.zeros(5, np.int64), np.zeros(0, np.int32), 0, np.array([3.0, 1.0, 4.0, 1.0])),
    }

    def test_by_targets_values_and_uncertainty(self):
        scores = np.array([[9.0, 0], [0.2, 0], [0, 5.0], [3.0, 0]])
        found = {order.key: order.positions.tolist() for order in prioritisation.orders_by(self.PROFILES, scores)}
        assert found == {
            "targets": [1, 2, 0, 3],
            "targets-total": [1, 0, 2, 3],
            "both": [0, 3, 2, 1],
            "both-total": [0, 2, 3, 1],
            "both-value": [1, 3, 0, 2],
            "values-value": [2, 0, 1, 3],
            "deepgini": [1, 3, 2, 0],
            "entropy": [1, 3, 2, 0],
            "margin": [1, 3, 2, 0],
            "confidence": [1, 3, 2, 0],
        }
        passes = np.stack([scores, np.flip(scores, 1)])
        sampled = {one.key: one.positions.tolist() for one in prioritisation.orders_by({}, sampled=passes)}
        assert sampled == {"variation-ratio": [0, 1, 2, 3], "mutual-information": [0, 2, 3, 1]}

    def test_no_uncertainty_without_classes(self):
        for scores in (None, np.zeros((4, 1))):
            assert not {order.name for order in prioritisation.orders_by(self.PROFILES, scores)} & set(UNCERTAINTIES)

    def test_mistakes_by_counting(self):
        wrong = np.random.default_rng(1).random(40) < 0.2
        given_order = prioritisation.Order("a", "additional", np.arange(40))
        first = prioritisation.Order("b", "value", np.argsort(~wrong, kind="stable"))
        found = prioritisation.detect_faults([given_order, first], wrong, seeds=7)
        slow = [sum(wrong[:k]) / sum(wrong) for k in found.tests]
        assert found.curves["a"] == pytest.approx(slow)
        assert found.curves["b-value"].tolist() == [min(1, k / wrong.sum()) for k in found.tests]
        assert found.apfd["b-value"] == pytest.approx(1 - wrong.sum() / 80) == max(found.apfd.values())
        # APFD is the area below the curve of mistakes found, by trapezes.
        assert found.apfd["a"] == pytest.approx(np.trapezoid(slow, found.tests / 40))

    def test_random_orders_are_the_baseline(self):
        wrong = np.arange(500) % 10 == 0
        found = prioritisation.detect_faults([], wrong, seeds=20)
        assert len(found.random) == 20
        assert found.random.mean() == pytest.approx(0.5, abs=0.03)
        assert (found.low <= found.mean).all()
        assert (found.mean <= found.high).all()
        assert (found.low[0], found.high[-1]) == (0, 1)
        assert found.random.tolist() == prioritisation.detect_faults([], wrong, seeds=20).random.tolist()

    def test_refuses_what_has_no_answer(self):
        with pytest.raises(DataError, match="right on all"):
            prioritisation.detect_faults([prioritisation.Order("a", "value", np.arange(4))], np.zeros(4, bool))
        with pytest.raises(SettingError, match="random order"):
            prioritisation.detect_faults([], np.ones(4, bool), seeds=0)
