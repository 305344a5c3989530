"""Suites that differ by their seed: each adds what it adds when it is compared alone."""

import numpy as np
import pytest

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
