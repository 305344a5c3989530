from dataclasses import replace

import numpy as np
import pytest

import idc_core as idc
from idc_core.errors import CancelledError, DataError, SettingError
from idc_core.perturbation import ATTACKS, CORRUPTIONS, TEXT_CHANGES, TRANSFORMS, guided_noise, random_noise, transform
from idc_core.suites import SUITES, find_tests, make_suite, original, perturbed, sample_tests, select_tests, union
from idc_core.suites.registry import _SLOW_BLOCK
from idc_core.suites.subsets import _predict_suite

CHEAP = [name for name, kind in SUITES.items() if kind.family in ("noise", "transform")]
FAST = {"fgsm": {}, "bim": {"steps": 3}}


def everything(suite, size=64):
    return np.concatenate([inputs for _, inputs in suite.blocks(size)])


def test_the_kinds_are_original_noise_transforms_and_attacks():
    assert list(SUITES) == ["original", "noise", "guided", *TRANSFORMS, *TEXT_CHANGES, *CORRUPTIONS, *ATTACKS]
    for kind in SUITES.values():
        assert kind.label
        assert kind.help.endswith(".")
        assert kind.citation
        assert kind.symbol.startswith("U_O")
    assert len({kind.label for kind in SUITES.values()}) == len(SUITES)


def test_the_original_suite_is_the_data_set(digits):
    suite = make_suite("original", digits)
    assert len(suite) == len(digits)
    np.testing.assert_array_equal(everything(suite), digits.inputs)
    np.testing.assert_array_equal(suite.targets, digits.targets)
    np.testing.assert_array_equal(suite.origin, digits.ids)


@pytest.mark.parametrize("name", [*CHEAP, *FAST])
def test_a_suite_is_the_original_and_what_is_made_of_it(name, lenet, digits):
    settings = FAST.get(name, {})
    suite = make_suite(name, digits, lenet, seed=7, **settings)
    assert suite.name == name
    assert SUITES[name].symbol in suite.label
    assert len(suite) == 2 * len(digits)
    inputs = everything(suite)
    np.testing.assert_array_equal(inputs[: len(digits)], digits.inputs)
    np.testing.assert_array_equal(suite.targets, np.tile(digits.targets, 2))
    np.testing.assert_array_equal(suite.origin, np.tile(digits.ids, 2))
    alone = make_suite(name, digits, lenet, with_original=False, seed=7, **settings)
    np.testing.assert_array_equal(everything(alone, 17), inputs[len(digits) :])
    assert (np.abs(inputs[len(digits) :] - digits.inputs).max((1, 2, 3)) > 0.01).all()


def test_suites_are_what_the_perturbations_give(lenet, digits):
    for name, expected in (
        ("noise", random_noise(digits, share=0.05, seed=3)),
        ("guided", guided_noise(lenet, digits, share=0.05, seed=3)),
    ):
        made = perturbed(original(digits), name, lenet, seed=3, share=0.05)
        np.testing.assert_array_equal(everything(made), expected)
    turned = everything(perturbed(original(digits), "rotation", degrees=30.0))
    np.testing.assert_allclose(turned, transform(digits, "rotation", degrees=30.0), atol=1e-6)
    fooled = perturbed(original(digits), "fgsm", lenet, epsilon=0.2)
    expected = idc.attack(lenet, digits, name="fgsm", epsilon=0.2).inputs
    assert (np.abs(everything(fooled) - expected) > 1e-6).mean() < 1e-3


@pytest.mark.parametrize("name", ["noise", "guided", "occlusion", "fgsm"])
def test_inputs_are_the_same_in_any_order_and_block(name, lenet, digits):
    suite = make_suite(name, digits, lenet)
    inputs = everything(suite)
    wanted = np.random.default_rng(0).permutation(len(suite))[:40]
    np.testing.assert_allclose(suite.take(wanted), inputs[wanted], atol=1e-6)
    assert suite.take([]).shape == (0, 1, 28, 28)
    positions = np.concatenate([positions for positions, _ in suite.blocks(33)])
    np.testing.assert_array_equal(positions, np.arange(len(suite)))
    with pytest.raises(SettingError, match=r"positions in 0\.\.299"):
        suite.take([300])


def test_nothing_is_made_before_it_is_asked_for(lenet, digits, monkeypatch):
    def fails(*args, **settings):
        raise AssertionError("made too early")

    monkeypatch.setattr("idc_core.suites.registry.attack", fails)
    suite = make_suite("fgsm", digits, lenet)
    suite.take(np.arange(len(digits)))
    with pytest.raises(AssertionError, match="too early"):
        suite.take([len(digits)])


def test_noise_of_one_test_is_the_same_in_a_longer_data_set(digits):
    shorter = idc.load_dataset("digits", limit=20)
    long, short = (perturbed(original(data), "noise") for data in (digits, shorter))
    np.testing.assert_array_equal(long.take(np.arange(20)), everything(short))


def test_fingerprints_follow_from_all_that_makes_a_suite(lenet, digits):
    other_network = idc.load_model("lenet1-digits")
    shorter = idc.load_dataset("digits", limit=149)
    suites = [
        original(digits),
        original(shorter),
        make_suite("noise", digits),
        make_suite("noise", digits, with_original=False),
        make_suite("noise", digits, seed=1),
        make_suite("noise", digits, share=0.03),
        make_suite("noise", shorter),
        make_suite("guided", digits, lenet),
        make_suite("guided", digits, other_network),
        make_suite("fgsm", digits, lenet),
        make_suite("fgsm", digits, lenet, epsilon=0.2),
        select_tests(original(digits), [0, 1]),
        select_tests(original(digits), [0, 2]),
    ]
    assert len({suite.fingerprint for suite in suites}) == len(suites)
    assert make_suite("noise", digits).fingerprint == suites[2].fingerprint
    # The network takes no part in random noise, so that it changes nothing.
    assert make_suite("noise", digits, lenet).fingerprint == suites[2].fingerprint


def test_provenance_says_how_inputs_came_to_be(lenet, digits):
    attacked = make_suite("cw", digits, lenet, seed=4, preset="sensible")
    suite = select_tests(attacked, *find_tests(attacked, classes=[3]))
    recipes = [step.recipe for step in suite.provenance]
    assert recipes == ["original", "cw", "subset"]
    assert suite.provenance[1].settings["learning_rate"] == 0.1
    assert suite.provenance[1].seed == 4
    assert suite.provenance[1].model
    assert suite.provenance[2].settings == {"classes": (3,)}


def test_a_union_holds_what_is_shared_once(lenet, digits):
    noisy, turned = make_suite("noise", digits), make_suite("rotation", digits)
    both = union([noisy, turned])
    assert len(both) == 3 * len(digits)
    expected = [everything(original(digits)), everything(noisy)[150:], everything(turned)[150:]]
    np.testing.assert_array_equal(everything(both, 100), np.concatenate(expected))
    assert [step.recipe for step in both.provenance] == ["original", "noise", "rotation"]
    with pytest.raises(SettingError, match="at least one"):
        union([])


def test_suites_of_other_networks_are_not_joined(digits):
    small = select_tests(original(digits), [0])
    other = idc.load_dataset("digits", limit=5)
    broken = original(type(other)(**{**vars(other), "class_names": ("a", "b")}))
    with pytest.raises(DataError, match="not for the same network"):
        union([small, broken])


def test_recipes_can_follow_each_other(digits):
    twice = perturbed(perturbed(original(digits), "rotation"), "noise", seed=2)
    np.testing.assert_allclose(everything(twice), random_noise(transform(digits, "rotation"), seed=2), atol=1e-6)
    assert [step.recipe for step in twice.provenance] == ["original", "rotation", "noise"]


def test_subsets_by_class_correctness_and_confidence(lenet, digits):
    suite = make_suite("noise", digits, deviation=3.0, share=0.4)
    answers = _predict_suite(lenet, suite)
    inputs = everything(suite)
    scores = np.asarray(idc.analyze(lenet, digits, digits, "fc2").confidence)
    np.testing.assert_allclose(answers.confidence[:150], scores, atol=1e-6)
    for conditions, kept in (
        ({"classes": [1, 7]}, np.isin(suite.targets, [1, 7])),
        ({"correct": False}, ~answers.correct),
        ({"correct": True}, answers.correct),
        ({"confidence": (0.2, 0.9)}, (answers.confidence >= 0.2) & (answers.confidence <= 0.9)),
        ({"classes": [1, 2, 3, 4, 5], "correct": True}, (suite.targets >= 1) & (suite.targets <= 5) & answers.correct),
    ):
        part = select_tests(suite, *find_tests(suite, model=lenet, **conditions))
        assert 0 < kept.sum() < len(suite)
        np.testing.assert_array_equal(part.targets, suite.targets[kept])
        np.testing.assert_array_equal(part.origin, suite.origin[kept])
        np.testing.assert_allclose(everything(part, 50), inputs[kept], atol=1e-6)


def test_chosen_tests_keep_their_order_and_are_checked(digits):
    suite = original(digits)
    np.testing.assert_array_equal(everything(select_tests(suite, [9, 3, 5])), digits.inputs[[3, 5, 9]])
    for wrong in ([-1], [150], [1, 1]):
        with pytest.raises(SettingError, match="different positions"):
            select_tests(suite, wrong)
    with pytest.raises(DataError, match="No test of 'Original tests' is left"):
        select_tests(suite, [])


@pytest.mark.parametrize(
    ("conditions", "error", "message"),
    [
        ({}, SettingError, "needs a condition"),
        ({"classes": [10]}, SettingError, "classes must be some of 0..9"),
        ({"classes": []}, SettingError, "classes must be"),
        ({"correct": True}, SettingError, "pass model"),
        ({"confidence": (0.9, 0.1)}, SettingError, "pass model"),
    ],
)
def test_conditions_that_say_nothing_are_refused(conditions, error, message, digits):
    with pytest.raises(error, match=message):
        find_tests(original(digits), **conditions)


def test_a_range_of_confidence_has_to_be_one(lenet, digits):
    with pytest.raises(SettingError, match="least and a most"):
        find_tests(original(digits), confidence=(0.9, 0.1), model=lenet)
    none = find_tests(original(digits), confidence=(0.0, 0.0001), model=lenet)
    with pytest.raises(DataError, match="only confidence"):
        select_tests(original(digits), *none)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("rain", {}, "expected one of original, noise"),
        ("guided", {}, "pass model"),
        ("fgsm", {}, "pass model"),
        ("noise", {"share": 2.0}, "share of Random noise must be"),
        ("noise", {"epsilon": 0.1}, "has no parameter 'epsilon'"),
        ("noise", {"preset": "paper"}, "no preset 'paper'"),
        ("noise", {"seed": -1}, "seed"),
        ("original", {"share": 0.1}, "Original tests has no parameter"),
    ],
)
def test_mistakes_get_a_sentence_before_any_work(name, arguments, message, digits):
    with pytest.raises(SettingError, match=message):
        make_suite(name, digits, **arguments)


def test_attacked_blocks_are_kept_and_shared(lenet, digits, cache, monkeypatch):
    suite = make_suite("fgsm", digits, lenet)
    inputs = everything(suite)
    files = sorted(cache.glob("*.npz"))
    assert len(files) == -(-len(digits) // _SLOW_BLOCK)

    def fails(*args, **settings):
        raise AssertionError("made again")

    monkeypatch.setattr("idc_core.suites.registry.attack", fails)
    np.testing.assert_array_equal(everything(make_suite("fgsm", digits, lenet)), inputs)
    # A longer data set begins with the same blocks.
    longer = idc.load_dataset("digits", limit=200)
    part = perturbed(original(longer), "fgsm", lenet).take(np.arange(2 * _SLOW_BLOCK))
    np.testing.assert_array_equal(part, inputs[150 : 150 + 2 * _SLOW_BLOCK])
    with pytest.raises(AssertionError, match="made again"):
        everything(make_suite("fgsm", digits, lenet, epsilon=0.25))
    with pytest.raises(AssertionError, match="made again"):
        everything(make_suite("fgsm", digits, lenet, seed=1))
    with pytest.raises(AssertionError, match="made again"):
        everything(make_suite("fgsm", digits, idc.load_model("lenet1-digits")))


def test_cheap_suites_keep_no_files(lenet, digits, cache):
    for name in CHEAP:
        make_suite(name, digits, lenet).take([200])
    assert not cache.exists()


def test_stopping_loses_no_finished_block(lenet, digits, cache):
    suite = make_suite("bim", digits, lenet, with_original=False, steps=3)

    def stop_in_the_second_block(done, total, label):
        return not list(cache.glob("*.npz"))

    with pytest.raises(CancelledError):
        suite.take(np.arange(150), stop_in_the_second_block)
    assert len(list(cache.glob("*.npz"))) == 1
    assert everything(suite).shape == digits.inputs.shape
    assert len(list(cache.glob("*.npz"))) == 3


def test_samples_are_nested_and_drawn_once(digits):
    whole = original(digits)
    small, large = sample_tests(whole, 20, seed=3), sample_tests(whole, 90, seed=3)
    assert (len(small), len(large)) == (20, 90)
    assert set(small.origin) < set(large.origin)
    assert (np.diff(large.origin) > 0).all()
    np.testing.assert_array_equal(small.take(np.arange(20)), digits.inputs[small.origin])
    assert set(small.origin) != set(sample_tests(whole, 20, seed=4).origin)
    assert sample_tests(whole, 150) is whole
    for count in (0, -1, 2.5, True):
        with pytest.raises(SettingError, match="number of tests of a sample"):
            sample_tests(whole, count)


@pytest.mark.parametrize("name", [*CHEAP, "fgsm", "bim", "pgd", "jsma", "deepfool"])
def test_only_random_kinds_change_with_the_seed(name, lenet, digits):
    few = select_tests(original(digits), range(6))
    settings = {"bim": {"steps": 2}, "pgd": {"steps": 2}, "deepfool": {"steps": 2}}.get(name, {})
    one, other = (everything(perturbed(few, name, lenet, seed=seed, **settings)) for seed in (0, 1))
    assert np.array_equal(one, other) != SUITES[name].random


LAWS = (test_a_suite_is_the_original_and_what_is_made_of_it, test_only_random_kinds_change_with_the_seed)
"""What suites of every transform and attack obey, one from elsewhere too."""


def test_parts_that_nothing_is_asked_of_make_nothing(digits):
    asked = []

    def part(number):
        def make(positions, on_progress):
            asked.append((number, len(positions)))
            return np.full((len(positions), 1, 2, 2), number, np.float32)

        return make

    one = original(digits.only(np.arange(3)))
    parts = tuple(replace(one.parts[0], fingerprint=str(number), make=part(number)) for number in (0, 1))
    twice = [np.concatenate([values] * 2) for values in (one.targets, one.origin, one.partner)]
    both = replace(one, shape=(1, 2, 2), targets=twice[0], origin=twice[1], partner=twice[2], parts=parts)
    assert both.take([4, 5])[:, 0, 0, 0].tolist() == [1, 1]
    assert asked == [(1, 2)]
    assert both.take([]).shape == (0, 1, 2, 2)
    assert asked == [(1, 2), (0, 0)]
