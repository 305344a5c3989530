"""All criteria that share a pass: equal to their papers, and one pass for many of them."""

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from idc_core import CRITERIA, IDC
from idc_core.coverage.boundary import KMNC, NBC, SNAC
from idc_core.coverage.cluster_coverage import CC
from idc_core.coverage.distribution import NLC
from idc_core.coverage.neuron import NC, TKNC, TKNP
from idc_core.coverage.streamed import fit_all, measure, profile_all, update_all
from idc_core.coverage.surprise import DSC, LSC, MDSC
from idc_core.errors import CancelledError, DataError, SettingError
from idc_core.tracing.parts import kept_tokens
from idc_core.tracing.trace import collect
from tests.coverage import slow_criteria as slow
from tests.coverage.one_pass import (
    FITTED,
    LAYERS,
    NAMES,
    NETWORK,
    OPTIONS,
    TESTED,
    TESTED_CLASSES,
    TESTS,
    TRAIN,
    TRAINED,
    TRAINED_CLASSES,
    assert_same,
    fc_only,
    make,
    seeing,
)
from tests.lrp.networks import Written, numbers, settle


class TestEachEqualsItsPaper:
    @pytest.mark.parametrize("threshold", [0.0, 0.75, 2.0])
    def test_nc(self, threshold):
        assert NC(NETWORK, LAYERS, threshold).update(TESTS).score == slow.nc(TESTED, threshold)

    def test_nc_scaled_by_layer(self):
        tests = [slow.scaled(trace) for trace in TESTED[:3]]
        assert NC(NETWORK, LAYERS, 0.75, "layer").update(TESTS[:3]).score == slow.nc(tests, 0.75)

    def test_nc_scaled_at_all_positions(self):
        with torch.no_grad():
            maps = F.relu(NETWORK.conv(TESTS)).numpy()
        span = maps.max((1, 2, 3)) - maps.min((1, 2, 3))
        scaled = (maps - maps.min((1, 2, 3))[:, None, None, None]) / span[:, None, None, None]
        expected = (scaled.mean((2, 3)) > 0.4).any(0).mean()
        assert 0 < expected < 1
        assert NC(NETWORK, "conv", 0.4, "positions").update(TESTS).score == expected
        assert NC(NETWORK, "conv", 0.4, "layer").update(TESTS).score != expected

    def test_nc_scaled_at_the_positions_of_words(self):
        body = lambda net, x: net.out(net.hidden(net.words(x)).sum(1))  # noqa: E731
        words = nn.Embedding(9, 6, padding_idx=0)
        network = settle(Written(body, words=words, hidden=nn.Linear(6, 5), out=nn.Linear(5, 3)))
        network.words.weight.data[0] = 9.0  # no word is so far away
        texts = torch.randint(1, 9, (8, 4), generator=torch.Generator().manual_seed(0))
        padded = F.pad(texts, (0, 5))
        assert kept_tokens(network, padded) is not None
        found = [NC(network, "hidden", 0.5, "positions").update(one).reached for one in (texts, padded)]
        np.testing.assert_array_equal(*found)

    @pytest.mark.parametrize("k", [1, 7, 100])
    def test_kmnc(self, k):
        assert KMNC(NETWORK, LAYERS, k).fit(TRAIN).update(TESTS).score == pytest.approx(slow.kmnc(TRAINED, TESTED, k))

    def test_kmnc_of_its_own_training_inputs(self):
        criterion = KMNC(NETWORK, LAYERS, 30).fit(TRAIN).update(TRAIN)
        assert criterion.score == pytest.approx(slow.kmnc(TRAINED, TRAINED, 30))
        assert criterion.reached.reshape(-1, 30)[:, [0, -1]].all()

    @pytest.mark.parametrize("name", ["nbc", "snac", "kmnc"])
    @pytest.mark.parametrize("lowered", [0.0, 1.0])
    def test_training_inputs_of_another_batch_size(self, name, lowered):
        torch.manual_seed(0)
        network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
        inputs = torch.randn(200, 64) - lowered
        criterion = CRITERIA[name](network.eval(), ["0", "2", "4"], batch_size=200).fit(inputs)
        again = [criterion.profile(part) for part in ([inputs[i : i + 1] for i in range(200)], inputs.split(7))]
        for profiles in again:
            # None is beyond a range, and each is in one of the sections.
            expected = np.count_nonzero(criterion.high > criterion.low) if name == "kmnc" else 0
            assert set(profiles.counts) == {expected}
        barely, clearly = criterion.high + 0.5 * criterion.rounding, criterion.high * (1 + 1e-3)
        assert not criterion._above(barely).any()
        assert criterion._above(clearly)[criterion.high > 0.5].all()

    @pytest.mark.parametrize("margin", [0.0, 0.1, 0.5])
    def test_nbc_and_snac(self, margin):
        nbc, snac = (kind(NETWORK, LAYERS, margin).fit(TRAIN).update(TESTS).score for kind in (NBC, SNAC))
        assert nbc == slow.nbc(TRAINED, TESTED, margin)
        assert snac == slow.snac(TRAINED, TESTED, margin)
        assert 0 < nbc < 1 > snac > 0

    @pytest.mark.parametrize("k", [1, 2, 5, 6, 50])
    def test_tknc_and_tknp(self, k):
        assert TKNC(NETWORK, LAYERS, k).update(TESTS[:4]).score == slow.tknc(TESTED[:4], k)
        for ordered in (False, True):
            assert TKNP(NETWORK, LAYERS, k, ordered).update(TESTS).score == slow.tknp(TESTED, k, ordered)

    def test_ties_go_to_the_lower_number(self):
        silent = copy.deepcopy(NETWORK)
        silent.conv.bias.data -= 100
        for k in (2, 9):
            assert TKNC(silent, "conv", k).update(TESTS).reached.tolist() == [n < k for n in range(5)]

    @pytest.mark.parametrize("second", ["neighbour", "input"])
    def test_dsc(self, second):
        train, tests = fc_only(TRAINED), zip(fc_only(TESTED), TESTED_CLASSES, strict=True)
        expected = [slow.dsa(train, TRAINED_CLASSES, test, label, second) for test, label in tests]
        criterion = DSC(NETWORK, "fc", 2.0, 40, second=second).fit(TRAIN)
        np.testing.assert_allclose(criterion.profile(TESTS).values, expected, rtol=1e-12)
        assert criterion.update(TESTS).score == slow.surprise_coverage(expected, 2.0, 40)

    @pytest.mark.parametrize("per_class", [False, True])
    def test_lsc_and_mdsc(self, per_class):
        train = {
            label: [a for a, c in zip(fc_only(TRAINED), TRAINED_CLASSES, strict=True) if c == label or not per_class]
            for label in set(TESTED_CLASSES)
        }
        tests = list(zip(fc_only(TESTED), TESTED_CLASSES, strict=True))
        for kind, definition, upper in ((LSC, slow.lsa, 25.0), (MDSC, slow.mdsa, 6.0)):
            expected = [definition(train[label], test) for test, label in tests]
            criterion = kind(NETWORK, "fc", upper, 40, 0.5, per_class=per_class).fit(TRAIN)
            np.testing.assert_allclose(criterion.profile(TESTS).values, expected, rtol=1e-9)
            assert criterion.update(TESTS).score == slow.surprise_coverage(expected, upper, 40, 0.5)

    def test_traces_of_several_layers_are_one(self):
        both = [np.concatenate(trace[1:]) for trace in TRAINED]
        expected = slow.dsa(both, TRAINED_CLASSES, np.concatenate(TESTED[0][1:]), TESTED_CLASSES[0])
        assert DSC(NETWORK, ["fc", "out"]).fit(TRAIN).profile(TESTS[:1]).values == pytest.approx([expected], rel=1e-12)

    def test_nlc(self):
        assert NLC(NETWORK, LAYERS).update(TESTS).score == pytest.approx(slow.nlc(TESTED), rel=1e-12)
        assert NLC(NETWORK, LAYERS, prior=True).fit(TRAIN).update(TESTS).score == pytest.approx(
            slow.nlc(TRAINED + TESTED), rel=1e-12
        )
        sizes = [5, 6, 3]
        each = [slow.nlc([[trace[i]] for trace in TESTED]) for i in range(3)]
        for divide, powers in (("pairs", -1), ("nothing", 1)):
            expected = sum(value * size**powers for value, size in zip(each, sizes, strict=True))
            assert NLC(NETWORK, LAYERS, divide).update(TESTS).score == pytest.approx(expected, rel=1e-12)

    def test_what_an_input_would_add_to_nlc(self):
        criterion = NLC(NETWORK, LAYERS).update(TESTS[:20])
        before = criterion.score
        gains = criterion.profile(TESTS[20:25]).values
        for place, gain in enumerate(gains, 20):
            grown = slow.nlc([*TESTED[:20], TESTED[place]]) - slow.nlc(TESTED[:20])
            assert gain == pytest.approx(grown, rel=1e-9)
        assert criterion.score == before

    @pytest.mark.parametrize("threshold", [0.0, 0.5, 3.0, 1e6])
    def test_cc(self, threshold):
        assert CC(NETWORK, LAYERS, threshold).update(TESTS).score == slow.cc(TESTED, threshold)

    def test_one_output_is_one_class(self):
        network = settle(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)))
        train, tests = numbers(40, 3, seed=1), numbers(9, 3, seed=2)
        with torch.no_grad():
            traces = [network[:1](part).relu().numpy() for part in (train, tests)]
        expected = [slow.lsa(list(traces[0]), test) for test in traces[1]]
        np.testing.assert_allclose(LSC(network, "0").fit(train).profile(tests).values, expected, rtol=1e-9)
        with pytest.raises(DataError, match="only one"):
            DSC(network, "0").fit(train)


class TestSharing:
    def all(self):
        return [make(name, **OPTIONS[name]) for name in NAMES]

    def test_one_pass_over_each_set_feeds_all(self):
        seen = []
        handle = NETWORK.register_forward_pre_hook(lambda module, inputs: seen.append(len(inputs[0])))
        scores = measure(self.all(), TRAIN, TESTS, batch_size=30)
        handle.remove()
        assert seen == [1, 30, 30, 30, 1, 30, 30]
        alone = [make(name, **OPTIONS[name]).fit(TRAIN).update(TESTS).score for name in NAMES]
        assert scores == pytest.approx(alone, rel=1e-9)

    def test_without_learning_training_inputs_are_hardly_looked_at(self):
        seen = []
        handle = NETWORK.register_forward_pre_hook(lambda module, inputs: seen.append(len(inputs[0])))
        fit_all([make("nc"), make("tknp")], TRAIN, batch_size=30)
        handle.remove()
        assert seen == [1, 30]

    def test_traces_taken_before_need_no_pass(self):
        single = copy.deepcopy(NETWORK).float()
        train, tests = (collect(single, part.float(), LAYERS) for part in (TRAIN, TESTS))
        handle = single.register_forward_pre_hook(lambda module, inputs: pytest.fail("the network ran"))
        layers = {name: FITTED[name].layers for name in NAMES}
        kinds = [CRITERIA[name](single, layers[name], **OPTIONS[name]) for name in NAMES]
        scores = measure(kinds, train, tests)
        handle.remove()
        again = [CRITERIA[name](single, layers[name], **OPTIONS[name]) for name in NAMES]
        assert scores == pytest.approx(measure(again, TRAIN.float(), TESTS.float()), rel=1e-6)

    def test_idc_takes_part_with_passes_of_its_own(self):
        idc, nc = IDC(NETWORK, "fc", m=2), make("nc")
        assert measure([idc, nc], TRAIN, TESTS) == [
            IDC(NETWORK, "fc", m=2).fit(TRAIN).update(TESTS).score,
            make("nc").update(TESTS).score,
        ]

    def test_profiles_of_idc(self):
        idc = IDC(NETWORK, "fc", m=3).fit(TRAIN)
        profiles, others = profile_all([idc, FITTED["nc"]], TESTS)
        assert idc.covered == 0
        assert profiles.counts.tolist() == [1] * 60
        assert profiles.coverage() == idc.update(TESTS).score
        assert profiles.covered(np.arange(9)) == IDC(NETWORK, "fc", m=3).fit(TRAIN).update(TESTS[:9]).covered
        np.testing.assert_array_equal(others.dense, FITTED["nc"].profile(TESTS).dense)

    def test_profiles_of_all_in_one_pass(self):
        together = profile_all([FITTED[name] for name in NAMES], iter([TESTS[:9], TESTS[9:]]))
        for name, profiles in zip(NAMES, together, strict=True):
            alone = FITTED[name].profile(TESTS)
            np.testing.assert_array_equal(profiles.starts, alone.starts)
            np.testing.assert_array_equal(profiles.targets, alone.targets)
            if alone.values is not None:
                np.testing.assert_allclose(profiles.values, alone.values, rtol=1e-9)

    def test_what_cannot_be_shared(self):
        other = NC(copy.deepcopy(NETWORK), "fc")
        with pytest.raises(SettingError, match="one network"):
            measure([make("nc"), other], TRAIN, TESTS)
        with pytest.raises(DataError, match="2 passes"):
            fit_all([make("kmnc"), IDC(NETWORK, "fc", m=2)], iter([TRAIN]))
        traces = collect(NETWORK, TRAIN, ["fc"])
        with pytest.raises(DataError, match="more than activations"):
            fit_all([IDC(NETWORK, "fc", m=2)], traces)
        with pytest.raises(DataError, match="no activations of conv, out"):
            make("kmnc").fit(traces)
        with pytest.raises(SettingError, match="every position"):
            NC(NETWORK, "fc", scale="positions").update(traces)

    def test_inputs_of_another_shape(self):
        network = settle(Written(lambda net, x: F.relu(net.a(x)).mean((2, 3)), a=nn.Conv2d(1, 3, 3)))
        pooled = settle(Written(lambda net, x: net.a(x).mean(2), a=nn.Identity()))
        assert KMNC(network, "a").fit(numbers(5, 1, 6, 6)).update(numbers(5, 1, 8, 8)).total == 3000
        criterion = NC(pooled, "a").fit(numbers(5, 4, 2))
        with pytest.raises(DataError, match="one shape"):
            criterion.update(numbers(5, 7, 2))

    def test_stopped_update_changes_nothing(self):
        criterion = seeing("tknp", [70])
        with pytest.raises(CancelledError):
            update_all([criterion], TESTS, batch_size=20, on_progress=lambda done, *rest: done < 40)
        assert_same(criterion, seeing("tknp", [70]))


class TestSurprise:
    def test_memory_is_what_is_kept(self):
        count = len(TRAIN)
        assert FITTED["lsc"].memory == count * 6 * 8
        assert FITTED["dsc"].memory == count * (6 + 6 + 2) * 8
        assert FITTED["mdsc"].memory == 3 * 6 * (6 + 1) * 8

    def test_training_inputs_do_not_surprise(self):
        assert not FITTED["dsc"].profile(TRAIN).values.any()
        assert not len(FITTED["dsc"].profile(TRAIN).targets)

    def test_a_class_that_training_does_not_know(self):
        known = TRAIN[torch.from_numpy(TRAINED_CLASSES != 2)]
        unknown = TESTS[torch.from_numpy(TESTED_CLASSES == 2)]
        for name in ("lsc", "dsc", "mdsc"):
            criterion = make(name).fit(known)
            assert np.isinf(criterion.profile(unknown).values).all()
            assert criterion.update(unknown).score == 0
