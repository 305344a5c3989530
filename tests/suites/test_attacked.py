"""Blocks of an attack: made once, even across a stop; the same as the attack itself; as a suite."""

import numpy as np
import pytest

import idc_core as idc
from idc_core.errors import CancelledError, SettingError
from idc_core.perturbation.attacks import join_results
from idc_core.suites import attack_block, attacked, attacked_suite
from idc_core.suites.saved_suites import open_saved, save_suite

SOME = np.array([7, 3, 40, 12])


@pytest.mark.parametrize(("name", "goal"), [("pgd", None), ("fgsm", 3), ("jsma", None)])
def test_a_block_is_what_the_attack_makes(lenet, digits, name, goal, cache):
    found = attack_block(lenet, digits, SOME, name, goal=goal, seed=5)
    again = attack_block(lenet, digits, SOME, name, goal=goal, seed=5)
    inputs, targets = digits.inputs[SOME], digits.targets[SOME]
    whole = idc.attack(lenet, inputs, targets, name, goal=goal, seed=5, numbers=digits.ids[SOME])
    for one in (found, again):
        np.testing.assert_array_equal(one.inputs, whole.inputs)
        for part in ("targets", "before", "predictions", "success", "l0", "l2", "linf"):
            np.testing.assert_array_equal(getattr(one, part), getattr(whole, part), err_msg=part)
        assert one.settings == whole.settings
        assert one.complete
        assert (one.goal is None) == (goal is None)
    assert len(list(cache.iterdir())) == 1


def test_what_is_finished_is_not_made_again(lenet, digits, monkeypatch):
    attack_block(lenet, digits, SOME, "fgsm")
    monkeypatch.setattr(attacked, "attack", None)
    attack_block(lenet, digits, SOME, "fgsm")
    for other in ({"seed": 1}, {"goal": 2}, {"epsilon": 0.2}):
        with pytest.raises(TypeError):
            attack_block(lenet, digits, SOME, "fgsm", **other)
    with pytest.raises(TypeError):
        attack_block(lenet, digits, SOME[:3], "fgsm")


def test_a_stop_keeps_no_half_block(lenet, digits, cache):
    with pytest.raises(CancelledError):
        attack_block(lenet, digits, SOME, "bim", on_progress=lambda *_: False)
    assert not cache.exists()


def test_joined_blocks_are_the_whole(lenet, digits):
    parts = [attack_block(lenet, digits, SOME[part], "fgsm") for part in (slice(0, 3), slice(3, 4))]
    whole = join_results(parts, 6)
    np.testing.assert_array_equal(whole.inputs[3], parts[1].inputs[0])
    np.testing.assert_array_equal(whole.targets, digits.targets[SOME])
    assert (whole.done, whole.total, whole.complete) == (4, 6, False)
    assert whole.goal is None


def test_other_attacks_are_not_joined(lenet, digits):
    one = attack_block(lenet, digits, SOME, "fgsm")
    for other in ({"epsilon": 0.1}, {"seed": 2}, {"goal": 1}):
        with pytest.raises(SettingError, match="Only results of one attack"):
            join_results([one, attack_block(lenet, digits, SOME, "fgsm", **other)], 8)
    with pytest.raises(SettingError, match="at least one"):
        join_results([], 3)


def test_attacked_inputs_can_be_kept_as_a_suite(lenet, digits):
    result = attack_block(lenet, digits, SOME, "fgsm", goal=3, seed=2)
    suite = attacked_suite(result, digits, digits.ids[SOME], lenet, np.array([2, 0]))
    name = save_suite("Two of them", suite).stem
    found = open_saved(name)
    np.testing.assert_array_equal(found.take(range(2)), result.inputs[[2, 0]])
    np.testing.assert_array_equal(found.targets, digits.targets[SOME[[2, 0]]])
    np.testing.assert_array_equal(found.origin, digits.ids[SOME[[2, 0]]])
    assert (found.name, found.label) == ("fgsm", "Two of them")
    step = found.provenance[-1]
    assert (step.recipe, step.seed, step.settings["goal"]) == ("fgsm", 2, 3)
    assert step.settings["epsilon"] == 0.3


def test_suites_of_other_inputs_have_other_addresses(lenet, digits):
    result = attack_block(lenet, digits, SOME, "fgsm")
    suites = [attacked_suite(result, digits, digits.ids[SOME], lenet, places) for places in (None, np.array([0]))]
    suites.append(attacked_suite(attack_block(lenet, digits, SOME, "fgsm", seed=1), digits, digits.ids[SOME], lenet))
    alike = {"epsilon": 0.1, "step": 0.02, "steps": 2}
    for name in ("bim", "pgd"):
        suites.append(attacked_suite(attack_block(lenet, digits, SOME, name, **alike), digits, digits.ids[SOME], lenet))
    assert len({suite.fingerprint for suite in suites}) == 5
