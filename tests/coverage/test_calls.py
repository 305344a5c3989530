"""Several calls of one criterion: profiles that are joined, an update that fails, copies; for every criterion."""

import copy

import numpy as np
import pytest
import torch

from idc_core import CRITERIA, IDC
from idc_core.coverage.profiles import Profiles
from idc_core.coverage.streamed import fit_all, update_all
from idc_core.errors import CancelledError, DataError, IdcError, SettingError
from tests.coverage.one_pass import FITTED, NAMES, NETWORK, OPTIONS, TESTS, TRAIN, make, state

ALL = ["idc", *NAMES]
MORE = torch.cat([TESTS, 2 * TRAIN[:20]])
BAD = MORE[:6].clone()
BAD[3, 0, 2, 2] = float("inf")


def fitted(name):
    return IDC(NETWORK, "fc", m=4).fit(TRAIN) if name == "idc" else FITTED[name].fresh()


def seen(criterion):
    """Return all that tests have changed, as plain values."""
    if criterion.card.name == "idc":
        return criterion.counts.codes.tolist(), criterion.counts.counts.tolist()
    return np.asarray(state(criterion), object if criterion.card.name in ("cc", "tknp") else float).tolist()


def groups(profiles):
    """Return which inputs cover each target, whatever its number."""
    inputs = np.repeat(np.arange(len(profiles)), profiles.counts)
    found = {}
    for one, target in zip(inputs.tolist(), profiles.targets.tolist(), strict=True):
        found.setdefault(target, []).append(one)
    return sorted(found.values())


def profiled(name, parts):
    """Return the profiles of several calls; where the order decides, tests of earlier calls have been seen."""
    criterion, found = fitted(name), []
    for part in parts:
        found.append(criterion.profile(part))
        if criterion.card.order_matters:
            criterion.update(part)
    return found


class TestProfilesOfSeveralCalls:
    @pytest.mark.sampled(5)
    @pytest.mark.parametrize("cuts", [(1,), (40,), (7, 8, 50), (20, 40, 60)])
    @pytest.mark.parametrize("name", ALL)
    def test_joined_they_are_those_of_one_call(self, name, cuts):
        parts = [MORE[first:last] for first, last in zip((0, *cuts), (*cuts, len(MORE)), strict=True)]
        whole, joined = fitted(name).profile(MORE), Profiles.joined(profiled(name, parts))
        assert groups(joined) == groups(whole)
        np.testing.assert_array_equal(joined.targets, whole.targets)
        np.testing.assert_array_equal(joined.starts, whole.starts)
        assert joined.total == whole.total
        if whole.values is not None:
            np.testing.assert_allclose(joined.values, whole.values, rtol=1e-9)
        if whole.names is not None:
            np.testing.assert_array_equal(joined.names, whole.names)
        if whole.total != 0:
            assert joined.coverage() == fitted(name).update(MORE).score
            np.testing.assert_array_equal(joined.gains(), whole.gains())

    def test_the_same_cells_are_not_different_ones(self):
        criterion = fitted("idc")
        one, other = criterion.profile(TESTS[:30]), criterion.profile(TESTS[30:])
        apart = len({*one.names.tolist(), *other.names.tolist()})
        assert Profiles.joined([one, other]).covered() == apart == fitted("idc").update(TESTS).covered
        assert apart != max(one.covered(), other.covered())
        assert Profiles.joined([one, one]).covered() == one.covered()

    def test_names_are_codes_of_cells_and_neurons_of_patterns(self):
        criterion = fitted("idc")
        profiles = criterion.profile(TESTS)
        criterion.update(TESTS)
        assert sorted(profiles.names.tolist()) == criterion.counts.codes.tolist()
        patterns = fitted("tknp").profile(TESTS)
        assert patterns.names.shape == (patterns.covered(), 2 * 3)
        assert (np.diff(patterns.names[:, :2].astype(int), axis=1) > 0).all()

    def test_cells_past_64_bits(self):
        names = np.array([2**70, 3, 2**70], object)
        one, other = Profiles.of_names(names, 2**80), Profiles.of_names(names[1:2], 2**80)
        joined = Profiles.joined([one, other])
        assert joined.targets.tolist() == [0, 1, 0, 1]
        assert joined.names.tolist() == [2**70, 3]

    def test_what_the_order_decides_is_not_joined_from_calls_that_started_anew(self):
        criterion = fitted("cc")
        one, other = criterion.profile(TESTS[:30]), criterion.profile(TESTS[30:])
        with pytest.raises(SettingError, match=r"tests before it.*Profile all tests in one call"):
            Profiles.joined([one, other])
        after = criterion.update(TESTS[:30]).profile(TESTS[30:])
        assert Profiles.joined([one, after]).coverage() == fitted("cc").update(TESTS).score

    def test_what_cannot_be_joined(self):
        with pytest.raises(SettingError, match="0 kinds"):
            Profiles.joined([])
        with pytest.raises(SettingError, match="one criterion to join, got 2 kinds"):
            Profiles.joined([FITTED["nc"].profile(TESTS), FITTED["tknp"].profile(TESTS)])


class TestAllOrNothing:
    @pytest.mark.parametrize("name", ALL)
    def test_activations_that_are_not_finite_are_refused(self, name):
        for use in ("update", "profile"):
            for inputs, number in ((BAD, 3), ([TESTS[:9], BAD], 12)):
                told = rf"Input {number} gives activations of layer '(conv|fc)' that are not finite"
                with pytest.raises(DataError, match=told):
                    getattr(fitted(name), use)(inputs)

    @pytest.mark.parametrize("name", ALL)
    def test_a_refused_update_changes_nothing(self, name):
        criterion = fitted(name).update(TESTS[:9])
        before = seen(criterion)
        for failing in ([TESTS, BAD], [TESTS, TESTS[:, :, :2]], [TESTS, "tests"]):
            with pytest.raises(IdcError):
                criterion.update(failing)
            assert seen(criterion) == before
        with pytest.raises(CancelledError):
            criterion.update([TESTS[9:40], TESTS[40:]], on_progress=lambda done, *rest: done < 40)
        assert seen(criterion) == before
        assert criterion.update(TESTS[9:]).score == pytest.approx(fitted(name).update(TESTS).score, rel=1e-12)

    @pytest.mark.parametrize("name", NAMES)
    def test_a_refused_first_update_leaves_what_has_seen_nothing(self, name):
        criterion = make(name, **OPTIONS[name])
        if not criterion.learns:
            with pytest.raises(DataError, match="not finite"):
                criterion.update([TESTS, BAD])
            assert criterion.sizes is None

    @pytest.mark.parametrize("name", ALL)
    def test_a_refused_fit_changes_nothing(self, name):
        criterion = fitted(name).update(TESTS)
        before, score, profiles = seen(criterion), criterion.score, criterion.profile(MORE)
        learns = name == "idc" or criterion.learns
        for failing in ([BAD, TRAIN], TRAIN[:0], *([[TRAIN[:30], BAD], [TRAIN, "inputs"]] if learns else [])):
            with pytest.raises(IdcError):
                criterion.fit(failing)
            assert seen(criterion) == before
            assert criterion.score == score
        np.testing.assert_array_equal(criterion.profile(MORE).targets, profiles.targets)

    def test_neurons_that_cannot_be_clustered_leave_the_fit_before(self):
        criterion = fitted("idc").update(TESTS)
        before = criterion.important.tolist(), [one.tolist() for one in criterion.centroids], seen(criterion)

        def stop(done, total, label):
            return label != "neurons clustered" or done < 2

        with pytest.raises(CancelledError):
            criterion.fit(TESTS, on_progress=stop)
        assert (criterion.important.tolist(), [one.tolist() for one in criterion.centroids], seen(criterion)) == before

    def test_one_that_refuses_leaves_all_as_they_were(self):
        one, other = make("kmnc", k=20).fit(TRAIN), CRITERIA["lsc"](NETWORK, "fc", variance=1e9)
        low = one.low.copy()
        with pytest.raises(DataError, match="lower variance"):
            fit_all([one, other], 2 * TRAIN)
        np.testing.assert_array_equal(one.low, low)
        idc = fitted("idc")
        with pytest.raises(DataError, match="not finite"):
            update_all([one, idc], [TESTS, BAD])
        assert one.covered == idc.covered == 0


class TestCopies:
    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
    @pytest.mark.parametrize("name", ALL)
    def test_a_copy_counts_by_itself(self, name, copied):
        criterion = fitted(name).update(TESTS[:20])
        before = seen(criterion)
        other = copied(criterion)
        assert seen(other) == before
        other.update(TESTS[20:])
        assert seen(criterion) == before
        assert other.score == pytest.approx(fitted(name).update(TESTS).score, rel=1e-12)
        criterion.update(MORE)
        assert other.score == pytest.approx(fitted(name).update(TESTS).score, rel=1e-12)

    @pytest.mark.parametrize("name", ALL)
    def test_what_is_fresh_counts_by_itself(self, name):
        criterion = fitted(name).update(TESTS)
        before = seen(criterion)
        criterion.fresh().update(MORE)
        assert seen(criterion) == before
