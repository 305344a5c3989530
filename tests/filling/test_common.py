"""What cells have in common, beside a search through all conditions and by planted conditions."""

from itertools import product

import numpy as np
import pytest

from idc_core.filling.common import Common, in_common

ALL = np.array(list(product(range(3), range(2), range(2), range(3))), np.uint8)


def holds(cells, condition):
    return np.array([all(cell[rank] == cluster for rank, cluster in condition) for cell in cells], bool)


@pytest.mark.parametrize("condition", [((0, 2),), ((1, 1), (3, 0)), ((0, 1), (2, 1), (3, 2))])
def test_a_planted_condition_is_found(condition):
    there = holds(ALL, condition)
    assert in_common(ALL[there], ALL[~there]) == [Common(condition, int(there.sum()), 0)]


def test_two_planted_conditions_are_found_one_after_the_other():
    first, second = holds(ALL, ((0, 2),)), holds(ALL, ((0, 0), (1, 1)))
    found = in_common(ALL[first | second], ALL[~(first | second)])
    assert [one.condition for one in found] == [((0, 2),), ((0, 0), (1, 1))]
    assert [one.cells for one in found] == [12, 6]


def test_of_all_conditions_none_is_better():
    random = np.random.default_rng(0)
    literals = [(rank, cluster) for rank, size in enumerate((3, 2, 2, 3)) for cluster in range(size)]
    every = [
        tuple(one for one, on in zip(literals, chosen, strict=True) if on)
        for chosen in product((0, 1), repeat=len(literals))
        if 1 <= sum(chosen) <= 4
    ]
    every = [one for one in every if len({rank for rank, _ in one}) == len(one)]
    for _ in range(5):
        there = random.random(len(ALL)) < 0.3
        best = (0, 0, 0)
        for condition in every:
            mine, others = holds(ALL[there], condition).sum(), holds(ALL[~there], condition).sum()
            if mine >= 2 and others <= 0.05 * (mine + others):
                best = max(best, (mine, -others, -len(condition)))
        found = in_common(ALL[there], ALL[~there])
        assert (found[0].cells, -found[0].others, -len(found[0].condition)) == best if found else best == (0, 0, 0)


def test_one_cell_or_none_has_nothing_in_common():
    assert in_common(ALL[:1], ALL[1:]) == []
    assert in_common(ALL[:0], ALL) == []


def test_words():
    one = Common(((0, 2), (2, 1), (3, 0)), 4, 0)
    assert one.words([3, 9, 5, 6], (3, 2, 2, 3)) == "neurons 3 and 5 high, neuron 6 low together"
    assert Common(((0, 1),), 4, 0).words([3], (3,)) == "neuron 3 in the middle"
    assert Common(((0, 1),), 4, 0).words([3], (4,)) == "neuron 3 in cluster 1"
