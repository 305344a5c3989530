"""Which tests come closest to a cell, against distances written down word for word."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idc_core.coverage import closest_inputs
from idc_core.coverage.closest_inputs import adjacent, closest, most_typical, spread, to_own_cell
from idc_core.errors import SettingError

CENTROIDS = (np.array([0.0, 4.0]), np.array([-1.0, 0.5, 9.0]), np.array([2.0]))


def distance(row, cell, unit):
    """Euclidean distance to a cell's centroids, from the definition."""
    pairs = zip(row, CENTROIDS, cell, unit, strict=True)
    return math.sqrt(sum(((float(value) - values[index]) / scale) ** 2 for value, values, index, scale in pairs))


@st.composite
def setups(draw):
    """Activations with many ties, a cell, units, and how many tests to find."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    activations = rng.integers(-3, 4, (draw(st.integers(0, 40)), 3)).astype(np.float32)
    cell = tuple(draw(st.integers(0, len(values) - 1)) for values in CENTROIDS)
    return activations, cell, rng.uniform(0.5, 3, 3), draw(st.integers(1, 12))


@given(setups(), st.integers(1, 50))
def test_the_closest_tests_come_first_whatever_the_size_of_the_blocks(setup, block):
    activations, cell, unit, count = setup
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(closest_inputs, "_ROWS", block)
        positions, distances = closest(activations, CENTROIDS, cell, unit, count)
    every = [distance(row, cell, unit) for row in activations.tolist()]
    assert distances == pytest.approx(sorted(every)[:count])
    assert [every[position] for position in positions] == pytest.approx(distances.tolist())
    assert len(set(positions.tolist())) == len(positions)


def test_of_equally_close_tests_the_first_one_comes_first():
    activations = np.array([[5, 0, 2], [1, 0.5, 2], [-1, 0.5, 2], [0, 0.5, 2], [1, 0.5, 2]], np.float32)
    for count in range(1, 6):
        positions, _ = closest(activations, CENTROIDS, (0, 1, 0), np.ones(3), count)
        assert positions.tolist() == [3, 1, 2, 4, 0][:count]


@given(setups())
def test_the_distance_to_its_own_cell_is_the_one_to_its_centroids(setup):
    activations, _, unit, _ = setup
    rng = np.random.default_rng(len(activations))
    assignments = np.stack([rng.integers(0, len(v), len(activations)) for v in CENTROIDS], axis=1).astype(np.uint8)
    found = to_own_cell(activations, CENTROIDS, assignments, unit)
    pairs = zip(activations.tolist(), assignments.tolist(), strict=True)
    assert found == pytest.approx([distance(row, cell, unit) for row, cell in pairs])


def test_a_neuron_that_never_changes_has_the_unit_one():
    activations = np.array([[1.0, 7.0], [3.0, 7.0]], np.float32)
    assert spread(activations).tolist() == [1.0, 1.0]
    assert spread(activations * 5).tolist() == [5.0, 1.0]


def test_loud_neurons_do_not_drown_the_others():
    loud = np.array([[1000.0, 9.0], [1100.0, 0.0]])
    unit = np.array([1000.0, 1.0])
    positions, _ = closest(loud, (np.array([1000.0]), np.array([0.0])), (0, 0), unit, 2)
    assert positions.tolist() == [1, 0]


def test_shapes_that_disagree_are_refused():
    activations = np.zeros((4, 3))
    with pytest.raises(SettingError, match=r"shape \(n, 2\) and 2 units.* \(4, 3\)"):
        closest(activations, CENTROIDS[:2], (0, 0), np.ones(2), 1)
    with pytest.raises(SettingError, match="a cell of 3 clusters; got 2"):
        closest(activations, CENTROIDS, (0, 0), np.ones(3), 1)
    with pytest.raises(SettingError, match=r"assignments of shape \(4, 3\); got \(4, 2\)"):
        to_own_cell(activations, CENTROIDS, np.zeros((4, 2), np.uint8), np.ones(3))


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_adjacent_cells_are_all_cells_one_step_away(sizes, data):
    cell = tuple(data.draw(st.integers(0, size - 1)) for size in sizes)
    every = itertools.product(*map(range, sizes))
    wanted = {other for other in every if sum(abs(a - b) for a, b in zip(other, cell, strict=True)) == 1}
    found = adjacent(sizes, np.array(cell, dtype=np.uint8))
    assert set(found) == wanted
    assert len(found) == len(wanted)


@pytest.mark.parametrize("cell", [(0,), (0, 2), (-1, 0)])
def test_adjacent_cells_of_a_cell_that_is_none(cell):
    with pytest.raises(SettingError, match="clusters below"):
        adjacent((2, 2), cell)


def test_the_most_typical_input_of_a_cell_is_the_closest_to_its_centroids():
    cell_of, distances = np.array([1, 0, 1, 1, 0]), np.array([0.5, 2.0, 0.25, 0.25, 1.0])
    assert most_typical(cell_of, distances).tolist() == [4, 2]
