"""Filling a grid: what is kept of made inputs is checked with the network itself; stopping, seeds, refusals, suites."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from idc_core.analysis.analysis import analyze
from idc_core.coverage import IDC
from idc_core.coverage.cells import encode
from idc_core.datasets import load_dataset
from idc_core.errors import DataError, SettingError
from idc_core.filling import FillSettings, fill_grid, fit_judge, grid_filling, suite_of
from idc_core.filling.proposals import ways_to_change
from idc_core.generation import reach_cell
from idc_core.generation.cell_search import CellSpace, reach_cells
from idc_core.models import load_model
from idc_core.store.values import pack, unpack
from idc_core.suites import open_saved, save_suite

SETTINGS = FillSettings(changed=80, starts=3, iterations=6, kept=2)


@pytest.fixture(scope="module")
def setup():
    model = load_model("lenet5-digits")
    train, test = load_dataset("digits", "train"), load_dataset("digits", "test")
    analysis = analyze(model, train, test, "fc2", 5)
    voters = [load_model(name) for name in ("lenet1-digits", "lenet4-digits")]
    return model, analysis, test, fit_judge(model, "fc2", train, test, voters)


@pytest.fixture(scope="module")
def filling(setup):
    return fill_grid(*setup, SETTINGS, voters=("lenet1-digits", "lenet4-digits"))


def arrays(filling):
    return {name: value for name, value in vars(filling).items() if isinstance(value, np.ndarray)}


def same(one, two) -> bool:
    first, second = arrays(one), arrays(two)
    return all(np.array_equal(value, second[name]) for name, value in first.items()) and one.passes == two.passes


def test_every_input_lies_in_its_cell_which_no_test_reaches(setup, filling):
    model, analysis, _, _ = setup
    space = CellSpace.of(analysis)
    assert len(filling) > 20
    np.testing.assert_array_equal(space.codes(model, filling.inputs), encode(filling.cells, space.sizes)[filling.cell])
    np.testing.assert_array_equal(filling.covered, np.unique(analysis.codes))
    codes = encode(filling.cells, space.sizes)
    assert not np.isin(codes, analysis.codes).any()
    assert len(codes) + len(filling.covered) == analysis.total
    assert filling.left_out == 0
    assert not filling.stopped


def test_inputs_have_eight_bits_and_keep_their_constraint(setup, filling):
    model, _, test, _ = setup
    np.testing.assert_array_equal(np.rint(filling.inputs * 255) / np.float32(255), filling.inputs)
    seeds = np.rint(test.inputs[filling.origin] * 255) / np.float32(255)
    change = np.abs(filling.inputs - seeds).max((1, 2, 3))
    np.testing.assert_allclose(filling.change, change, atol=1e-6)
    searched = filling.way == len(filling.ways) - 1
    assert searched.any()
    assert not searched.all()
    assert change[searched].max() <= SETTINGS.largest_change + 1e-6
    np.testing.assert_array_equal(filling.targets, test.targets[filling.origin])
    with torch.no_grad():
        np.testing.assert_array_equal(model(torch.tensor(filling.inputs)).argmax(1), filling.predictions)


def test_a_blend_tells_both_tests(setup, monkeypatch):
    test = setup[2]
    blends = [way for way in ways_to_change((1, 28, 28), 5) if way.recipe == "blend"]
    monkeypatch.setattr(grid_filling, "ways_to_change", lambda *_: tuple(blends))
    made = fill_grid(*setup, FillSettings(changed=540, starts=1, iterations=1, kept=2))
    mixed = made.way < len(blends)
    assert mixed.any()
    assert (mixed == (made.partner >= 0)).all()
    places, others = made.origin[mixed], made.partner[mixed]
    weights = np.array([blends[way].settings["weight"] for way in made.way[mixed]])[:, None, None, None]
    expected = (1 - weights) * test.inputs[places] + weights * test.inputs[others]
    np.testing.assert_allclose(made.inputs[mixed], expected, atol=0.5 / 255 + 1e-6)
    np.testing.assert_array_equal(test.targets[others], made.targets[mixed])


def test_few_inputs_of_a_cell_are_kept_the_likeliest_first(filling):
    assert np.bincount(filling.cell).max() <= SETTINGS.kept
    assert (np.diff(filling.cell) >= 0).all()
    inside = np.diff(filling.cell) == 0
    assert (np.diff(filling.p)[inside] <= 0).all()
    for row, best in enumerate(filling.best):
        mine = np.flatnonzero(filling.cell == row)
        assert best == (mine[0] if len(mine) else -1)


def test_judgements_are_those_of_the_judge(setup, filling):
    judge = setup[3]
    np.testing.assert_allclose(filling.p, judge.p(filling.inputs))
    np.testing.assert_array_equal(filling.votes, judge.votes(filling.inputs))
    np.testing.assert_array_equal(filling.valid, filling.p > 0.05)
    both = [
        [int(voter(torch.tensor(filling.inputs[:20])).argmax(1)[row]) for voter in judge.voters] for row in range(20)
    ]
    slow = [first if first == second else -1 for first, second in both]
    np.testing.assert_array_equal(filling.votes[:20], slow)
    np.testing.assert_array_equal(
        np.isin(encode(filling.cells, filling.sizes), filling.valid_codes), filling.reached_validly
    )


def test_cells_with_a_valid_input_are_not_searched_for(filling):
    searched = filling.way == len(filling.ways) - 1
    earlier = np.unique(filling.cell[~searched & filling.valid])
    assert len(earlier)
    assert not np.isin(filling.cell[searched], earlier).any()


def test_known_bad_inputs_are_hardly_accepted(setup):
    validity = setup[3].validity
    assert {kind.what.partition(" (")[0] for kind in validity.known_bad} == {
        "noise",
        "shuffled pixels",
        "another data set",
    }
    assert validity.natural.share > 0.88
    assert validity.bad.share < 0.05
    assert all(other.bad.share >= validity.bad.share for other in setup[3].others)


def test_it_can_be_repeated(setup, filling):
    again = fill_grid(*setup, SETTINGS, voters=filling.voters)
    assert same(filling, again)
    other = fill_grid(*setup, replace(SETTINGS, seed=1))
    assert not same(filling, other)


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 7, 24])
def test_it_stops_and_goes_on(setup, filling, most):
    """Behind any step, of the changes and of the search."""
    calls = iter(range(10_000))
    part = fill_grid(*setup, SETTINGS, voters=filling.voters, on_progress=lambda *_: next(calls) < most)
    assert part.stopped
    assert len(part) < len(filling)
    kept = unpack(*pack(part))
    whole = fill_grid(*setup, SETTINGS, voters=filling.voters, start=kept)
    first, second = arrays(filling), arrays(whole)
    assert not whole.stopped
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_what_was_found_is_told(setup, filling):
    told = []
    fill_grid(*setup, SETTINGS, on_found=told.append)
    assert [one.done for one in told] == list(range(1, len(filling.ways) + 1))
    reached = [one.reached.sum() for one in told]
    assert reached == sorted(reached)


def test_it_goes_on_only_with_the_same_settings(setup, filling):
    with pytest.raises(SettingError, match="goes on only"):
        fill_grid(*setup, replace(SETTINGS, largest_change=0.2), start=filling)


def test_a_budget_of_few_cells_leaves_some_out(setup):
    found = fill_grid(*setup, replace(SETTINGS, cells=10, changed=0))
    assert len(found.cells) == 10
    assert found.left_out == setup[1].total - setup[1].covered - 10
    assert [step.recipe for step in found.ways] == ["reach-cell"]


def test_a_criterion_brings_its_cells(setup, filling):
    model, _, test, judge = setup
    criterion = IDC(model, "fc2", m=5).fit(load_dataset("digits", "train")).update(test)
    found = fill_grid(model, criterion, test, judge, SETTINGS)
    assert len(found) == len(filling)


def test_the_suite_says_how_it_came_to_be(setup, filling, tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    test = setup[2]
    suite = suite_of(filling, test)
    np.testing.assert_array_equal(suite.take(np.arange(len(suite))), filling.inputs[filling.usable])
    np.testing.assert_array_equal(suite.targets, filling.votes[filling.usable])
    assert (suite.targets >= 0).all()
    recipes = [step.recipe for step in suite.provenance]
    assert recipes[0] == "original"
    assert set(recipes[1:]) == {filling.ways[way].recipe for way in filling.way[filling.usable]}
    again = open_saved(save_suite("made", suite).stem)
    assert again.provenance == suite.provenance
    np.testing.assert_array_equal(again.partner, filling.partner[filling.usable])
    with pytest.raises(DataError, match="nothing to save"):
        suite_of(filling, test, np.zeros(len(filling), bool))


def test_only_pictures_are_made(setup):
    model, analysis, test, judge = setup
    with pytest.raises(DataError, match="pictures only"):
        fill_grid(model, analysis, replace(test, inputs=test.inputs.reshape(len(test), -1)), judge)
    with pytest.raises(SettingError, match="largest_change"):
        FillSettings(largest_change=2.0)


def test_one_search_for_many_cells_is_many_searches(setup):
    model, analysis, test, _ = setup
    cells = CellSpace.of(analysis).assign(analysis.test_activations[:4])[::-1]
    seeds = test.inputs[10:14]
    together = reach_cells(model, analysis, np.repeat(cells, 4, 0), np.concatenate([seeds] * 4), 0.3, iterations=8)
    for place, cell in enumerate(cells.tolist()):
        one = reach_cell(model, analysis, cell, seeds, 0.3, iterations=8)
        mine = together.seed_index // 4 == place
        np.testing.assert_array_equal(one.seed_index, together.seed_index[mine] % 4)
        np.testing.assert_allclose(one.inputs, together.inputs[mine], atol=1.5 / 255)
        np.testing.assert_array_equal(one.iterations, together.iterations[mine])
    assert together.passes == together_passes(together, 8)
    with pytest.raises(SettingError, match="one cell for each"):
        reach_cells(model, analysis, cells[:2], seeds, 0.3)


def together_passes(found, iterations):
    """One pass for all at first; then one there and back and one to look, for each seed and step until it arrives."""
    taken = np.full(len(found.cells), iterations)
    taken[found.seed_index] = found.iterations
    return int(len(found.cells) + 4 * taken.sum())


def test_enough_inputs_end_the_search_for_a_cell(setup):
    model, analysis, test, _ = setup
    cell = np.array(analysis.assignments[0])
    cells = np.tile(cell, (40, 1))
    all_of_them = reach_cells(model, analysis, cells, test.inputs[:40], 0.5, iterations=20)
    few = reach_cells(model, analysis, cells, test.inputs[:40], 0.5, iterations=20, enough=3)
    assert len(all_of_them) > len(few) >= 3
    last = few.iterations.max()
    assert (few.iterations < last).sum() < 3


def test_a_result_can_be_kept(filling):
    again = unpack(*pack(filling))
    assert same(filling, again)
    assert again.validity == filling.validity


def test_large_pictures_are_taken_in_parts(setup, filling, monkeypatch):
    """As if memory held a few pictures: the same cells, and no more inputs than fit."""
    picture = 4 * filling.inputs[0].size
    monkeypatch.setattr(grid_filling, "_BLOCK_BYTES", 30 * picture)
    monkeypatch.setattr(grid_filling, "_BYTES", 12 * picture)
    found = fill_grid(*setup, SETTINGS)
    assert len(found.cells) == 6
    assert found.left_out == len(filling.cells) - 6
    assert 0 < len(found) <= 12
    assert not found.stopped
