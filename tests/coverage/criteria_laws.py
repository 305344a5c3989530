"""The laws that all criteria keep, for any criterion of the registry that looks at one activation per neuron."""

import copy
import inspect
import typing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from idc_core import CRITERIA, load_criterion
from idc_core.errors import CancelledError, DataError, ModelError, SettingError
from tests.coverage.one_pass import FITTED, NETWORK, OPTIONS, TESTS, TRAIN, assert_same, make, rows, seeing, some


def another(name, option, value):
    """Return another value for a parameter of a criterion's constructor."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        words = typing.get_args(inspect.signature(CRITERIA[name], eval_str=True).parameters[option].annotation)
        return next(word for word in words if word != value)
    return 3 if value is None else value + 1


class CriterionLaws:
    @given(first=rows, second=rows)
    @hypothesis_settings(max_examples=20)
    def test_coverage_grows_and_stays_in_range(self, name, first, second):
        criterion = seeing(name, first)
        before = criterion.score
        after = criterion.update(some(second)).score
        assert np.isfinite(after)
        assert after >= 0
        card = CRITERIA[name].card
        if not card.can_fall:
            assert before <= after
            assert after == seeing(name, first, second, first).score
        if not card.unit:
            assert after == criterion.covered / criterion.total <= 1

    @given(chosen=rows, random=st.randoms(use_true_random=False))
    @hypothesis_settings(max_examples=20)
    def test_order_does_not_matter(self, name, chosen, random):
        if CRITERIA[name].card.order_matters:
            return  # by definition; see test_cc
        shuffled = random.sample(chosen, len(chosen))
        assert_same(seeing(name, shuffled), seeing(name, chosen))

    @given(chosen=rows, cut=st.integers(0, 30))
    @hypothesis_settings(max_examples=20)
    def test_cutting_does_not_matter(self, name, chosen, cut):
        parts = [part for part in (chosen[:cut], chosen[cut:]) if part]
        cut_up, whole = seeing(name, *parts), seeing(name, chosen)
        assert_same(cut_up, whole)
        assert cut_up.score == pytest.approx(whole.score, rel=1e-12)

    @pytest.mark.sampled(3)
    @given(a=rows, b=rows, c=rows)
    @hypothesis_settings(max_examples=20)
    def test_merging_is_associative_and_commutative(self, name, a, b, c):
        one = seeing(name, a).merge(seeing(name, b)).merge(seeing(name, c))
        other = seeing(name, c).merge(seeing(name, b).merge(seeing(name, a)))
        assert_same(one, other)
        assert one.score == pytest.approx(other.score, rel=1e-12)

    @pytest.mark.sampled(3)
    @given(a=rows, b=rows)
    @hypothesis_settings(max_examples=20)
    def test_merged_parts_are_the_whole(self, name, a, b):
        merged = seeing(name, a).merge(seeing(name, b))
        whole = seeing(name, a, b)
        if name == "cc":
            # Another order gives other centres; but every input seen is near a centre of either.
            for centres, parts in zip(merged._centres, whole._centres, strict=True):
                apart = np.square(centres.points[:, None] - parts.points).sum(2).min(0)
                assert (apart <= 2.0 + 1e-9).all()
        else:
            assert_same(merged, whole)

    def test_merging_with_what_has_seen_nothing(self, name):
        whole = seeing(name, [1, 2, 3])
        assert seeing(name).merge(whole).score == whole.score == seeing(name, [1, 2, 3]).merge(seeing(name)).score

    @given(chosen=rows)
    @hypothesis_settings(max_examples=10)
    def test_profiles_are_what_is_counted(self, name, chosen):
        profiles = FITTED[name].profile(some(chosen))
        assert len(profiles) == len(chosen)
        if profiles.total == 0:
            assert profiles.values is not None
            with pytest.raises(SettingError, match="no targets"):
                profiles.coverage()
        else:
            assert profiles.coverage() == seeing(name, chosen).score
            ascending = [np.all(np.diff(part) > 0) for part in np.split(profiles.targets, profiles.starts[1:-1])]
            assert all(ascending)

    @pytest.mark.sampled(5)
    @pytest.mark.parametrize("size", [1, 7, 60])
    def test_batch_size_does_not_matter(self, name, size):
        options = {**OPTIONS[name], "batch_size": size}
        parts = make(name, **options).fit([TRAIN[:1], TRAIN[1:50], TRAIN[50:]]).update([TESTS[:20], TESTS[20:]])
        whole = make(name, **OPTIONS[name]).fit(TRAIN).update(TESTS)
        assert parts.score == pytest.approx(whole.score, rel=1e-9)

    def test_fit_forgets_what_was_counted(self, name):
        criterion = make(name, **OPTIONS[name]).fit(TRAIN).update(TESTS)
        assert criterion.score > 0
        assert criterion.fit(TRAIN).score == 0

    def test_a_profile_counts_nothing(self, name):
        criterion = seeing(name, [1, 2])
        criterion.profile(TESTS)
        assert_same(criterion, seeing(name, [1, 2]))

    @given(before=rows, after=rows)
    @hypothesis_settings(max_examples=5)
    def test_saved_and_loaded_it_goes_on(self, name, before, after, tmp_path_factory):
        criterion, file = seeing(name, before), tmp_path_factory.mktemp("saved") / "criterion"
        criterion.save(file)
        loaded = load_criterion(file, NETWORK)
        assert type(loaded) is type(criterion)
        assert loaded.score == criterion.score
        assert_same(loaded, criterion)
        ours, theirs = criterion.profile(some(after)), loaded.profile(some(after))
        for one, other in zip(vars(ours).values(), vars(theirs).values(), strict=True):
            np.testing.assert_array_equal(one, other)
        assert loaded.merge(seeing(name, after)).score == copy.copy(criterion).merge(seeing(name, after)).score
        loaded = load_criterion(file, NETWORK)
        assert loaded.update(some(after)).score == criterion.update(some(after)).score
        assert loaded.fresh().update(some(after)).score == seeing(name, after).score

    def test_stopped_fit_leaves_the_criterion_as_it_was(self, name):
        criterion = seeing(name, [1, 2])
        if criterion.learns:
            with pytest.raises(CancelledError):
                criterion.fit(5 * TESTS, on_progress=lambda *news: False)
            assert_same(criterion, seeing(name, [1, 2]))
            assert criterion.update(some([3])).score == seeing(name, [1, 2, 3]).score
        else:
            assert criterion.fit(TESTS, on_progress=lambda *news: False).score == 0


class CriterionRefusals:
    def test_use_before_fit(self, name):
        for use in (lambda c: c.update(TESTS), lambda c: c.profile(TESTS), lambda c: c.merge(FITTED[name])):
            fresh = make(name, **OPTIONS[name])
            if fresh.learns:
                with pytest.raises(SettingError, match="call fit"):
                    use(fresh)
            else:
                use(fresh)

    def test_score_before_anything(self, name):
        criterion = make(name, **OPTIONS[name])
        if criterion.card.unit:
            assert criterion.score == 0
        else:
            with pytest.raises(SettingError, match="first"):
                criterion.score  # noqa: B018

    def test_layers(self, name):
        with pytest.raises(ModelError, match="fc9"):
            CRITERIA[name](NETWORK, ["fc", "fc9"])
        with pytest.raises(SettingError, match="at least one layer"):
            CRITERIA[name](NETWORK, [])

    def test_no_inputs(self, name):
        with pytest.raises(DataError):
            make(name).fit(TRAIN[:0])
        with pytest.raises(DataError):
            seeing(name).update([])

    def test_activations_that_are_not_finite(self, name):
        for bad in (float("nan"), float("inf")):
            inputs = TESTS.clone()
            inputs[3, 0, 2, 2] = bad
            with pytest.raises(DataError, match=r"Input 3 gives activations of layer '(conv|fc)' that are not"):
                seeing(name).update(inputs)

    def test_merging_what_differs(self, name):
        others = [CRITERIA[name](NETWORK, "out", **OPTIONS[name]).fit(TRAIN), FITTED["nc" if name != "nc" else "snac"]]
        if FITTED[name].learns:
            others.append(make(name, **OPTIONS[name]).fit(TRAIN[:80]))
        for option in set(CRITERIA[name].card.defaults) - {"batch_size"}:
            settings = {**CRITERIA[name].card.defaults, **OPTIONS[name]}
            others.append(make(name, **settings | {option: another(name, option, settings[option])}).fit(TRAIN))
        criterion = seeing(name, [1, 2, 3])
        for other in others:
            with pytest.raises(SettingError, match="merged"):
                criterion.merge(other)
        assert_same(criterion, seeing(name, [1, 2, 3]))
