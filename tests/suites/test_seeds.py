"""Suites that differ by their seed: each adds what it adds when it is compared alone."""

import numpy as np
import pytest

import idc_core as idc
from idc_core.evidence.additions import addition
from idc_core.evidence.finding import LEVEL, Verdict
from idc_core.suites import compare_suites, make_suite, original, part_responses, sample_tests
from idc_core.suites.seeds import gains_by_seed


@pytest.mark.parametrize("name", ["noise", "guided"])
def test_every_seed_adds_what_it_adds_alone(lenet, digits, learnt, name):
    tests = original(digits)
    suites = [make_suite(name, digits, lenet, seed=seed, deviation=1.0, share=0.1) for seed in (3, 4)]
    (part,) = tests.parts
    known = part_responses(lenet, part, tests.targets, tests.task, "fc2", learnt.important)
    found = gains_by_seed(lenet, tests, suites, learnt, (6, 12), known=known)
    alone = [compare_suites(lenet, [tests, suite], learnt, (6, 12)).suites[1] for suite in suites]
    assert found.added.tolist() == [[len(one.cells[m].added) for m in (6, 12)] for one in alone]
    np.testing.assert_array_equal(found.quality, [one.extra_accuracy for one in alone])


def test_a_part_of_the_tests_adds_nothing(lenet, digits, learnt):
    tests = original(digits)
    (part,) = tests.parts
    known = part_responses(lenet, part, tests.targets, tests.task, "fc2", learnt.important)
    found = gains_by_seed(lenet, tests, [sample_tests(tests, 20)], learnt, (6,), known=known)
    assert found.added.tolist() == [[0]]


@pytest.mark.slow
def test_hidden_tests_seldom_stand_out_beside_the_others(lenet):
    """The prediction is of tests: training inputs, to which clusters were fitted, would seem to be too few cells."""
    tests, train = (idc.load_dataset("digits", split=split) for split in ("test", "train"))
    random = np.random.default_rng(0)
    for m in (6, 8, 12):
        one = idc.analyze(lenet, train, tests, "fc2", m)
        false = 0
        for _ in range(200):
            order = random.permutation(len(tests))
            hidden, shown = one.codes[order[:270]], one.codes[order[270:]]
            counts, added = np.unique(shown, return_counts=True)[1], len(np.setdiff1d(hidden, shown))
            false += addition("New cells", [added], counts, one.total, 270).verdict is Verdict.STANDS_OUT
        assert false / 200 <= LEVEL + 0.03  # 200 draws are within this of their share, 95 times of 100
