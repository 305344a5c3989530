"""Runs side by side, and over the versions of a network."""

import numpy as np
import pytest

from idc_core.errors import SettingError
from idc_core.runs import cell_change, differing_settings, figures, find_run, versions
from tests.runs.conftest import analysis, keep, remade


def test_what_differs_is_told_and_what_follows_from_it_is_not():
    one, other = find_run(keep((1,))), find_run(keep((2,), m=2, extra=[1, 2], address="model=net&m=2"))
    assert differing_settings([one, other], ["address"]) == {"m": [3, 2], "extra": [None, [1, 2]]}
    assert differing_settings([one, one]) == {}
    assert figures([one, other])["idc"] == [analysis().score] * 2


def test_gained_and_lost_cells_are_the_differences_of_two_sets():
    before, after = analysis(1, tests=7), analysis(2, tests=9)
    change = cell_change(find_run(keep((1,), before)), find_run(keep((2,), after)))
    reached = [{tuple(row) for row in one.assignments.tolist()} for one in (before, after)]
    assert {tuple(row) for row in change.gained.tolist()} == reached[1] - reached[0]
    assert {tuple(row) for row in change.lost.tolist()} == reached[0] - reached[1]
    assert change.both == len(reached[0] & reached[1])
    assert len(change.gained)
    assert len(change.lost)
    for cell, tests in zip(change.gained, change.gained_tests, strict=True):
        assert tests == sum((row == cell).all() for row in after.assignments)


def test_with_other_m_the_neurons_that_both_have_are_compared():
    before, after = analysis(1, m=2, tests=4), analysis(2, m=3, tests=5)
    change = cell_change(find_run(keep((1,), before)), find_run(keep((2,), after)))
    reached = [{tuple(row[:2]) for row in one.assignments.tolist()} for one in (before, after)]
    assert {tuple(row) for row in change.gained.tolist()} == reached[1] - reached[0]
    assert change.neurons.tolist() == [0, 1]


def test_cells_that_mean_something_else_are_not_compared():
    one = find_run(keep((1,)))
    moved = find_run(keep((2,), analysis(centres=((0.0, 1.0), (0.0, 1.5, 2.0), (0.0, 3.0)))))
    with pytest.raises(SettingError, match="clusters of neuron 1"):
        cell_change(one, moved)
    other = analysis()
    object.__setattr__(other, "important", np.array([0, 4, 2]))
    with pytest.raises(SettingError, match="important neurons are 0, 1, 2 in the one and 0, 4, 2"):
        cell_change(one, find_run(keep((3,), other)))


def test_versions_are_in_the_order_in_which_they_were_first_measured():
    days = iter(range(1, 9))

    def run(key, version, **more):
        id = keep((key,), analysis(key), network_fingerprint=version * 16, **more)
        remade(id, made=f"2026-01-0{next(days)}T00:00:00+00:00")
        return id

    first, second, again = run(1, "a"), run(2, "b"), run(3, "a", layer="fc")
    alone = run(4, "c", layer="conv")
    found = versions([find_run(id) for id in (alone, again, second, first)])
    assert [[one.id for one in line.runs] for line in found] == [[again, second], [alone]]
    assert [line.label for line in found] == ["layer fc", "layer conv"]
