"""Reaching cells: the same as the searches one by one, deterministic, and told by the command line."""

import csv
from functools import partial

import numpy as np
import pytest

from idc_core.analysis.analysis import analyze
from idc_core.cli import main
from idc_core.coverage.closest_inputs import closest, spread
from idc_core.datasets import load_dataset
from idc_core.errors import CancelledError
from idc_core.experiments.cells_reached import reach_cells
from idc_core.generation import noise_to_cell, reach_cell
from idc_core.models import load_model


@pytest.fixture(scope="module")
def setup():
    model, test = load_model("lenet5-digits"), load_dataset("digits", "test")
    return model, analyze(model, load_dataset("digits", "train"), test, "fc2", 6), test.inputs


def test_cells_are_uncovered_and_each_is_searched_from_its_closest_tests(setup):
    model, analysis, inputs = setup
    found = reach_cells(model, analysis, inputs, cells=3, seeds=6, epsilon=0.1, iterations=8, seed=2)
    covered = {tuple(cell) for cell in analysis.assignments.tolist()}
    assert len(found.cells) == 3
    assert not covered & set(found.cells)
    for row, cell in enumerate(found.cells):
        near, _ = closest(analysis.test_activations, analysis.centroids, cell, spread(analysis.train_activations), 6)
        one = reach_cell(model, analysis, cell, inputs[near], 0.1, iterations=8)
        other = noise_to_cell(model, analysis, cell, inputs[near], 0.1, iterations=8, seed=2)
        assert (found.guided[row], found.noise[row]) == (len(one), len(other))
        assert found.closest[row] == one.closest.min()
    assert (found.kept <= found.guided).all()
    again = reach_cells(model, analysis, inputs, cells=3, seeds=6, epsilon=0.1, iterations=8, seed=2)
    assert again.cells == found.cells
    np.testing.assert_array_equal(again.guided, found.guided)


@pytest.mark.slow
def test_search_beats_noise_and_can_be_stopped(setup):
    model, analysis, inputs = setup
    found = reach_cells(model, analysis, inputs, cells=5)
    assert (found.guided > 0).sum() > (found.noise > 0).sum()
    with pytest.raises(CancelledError):
        reach_cells(model, analysis, inputs, on_progress=lambda *state: False)


@pytest.mark.slow
def test_command_line_counts_them(setup, tmp_path, monkeypatch):
    model, analysis, inputs = setup
    few = partial(reach_cells, cells=4, seeds=6)
    monkeypatch.setattr("idc_core.experiments.cells_reached.reach_cells", few)
    file = tmp_path / "cells.csv"
    assert main(["experiment", "cells", "--models", "lenet5-digits", "--out", str(file)]) == 0
    (record,) = csv.DictReader(file.read_text().splitlines())
    found = few(model, analysis, inputs)
    assert int(record["guided"]) == (found.guided > 0).sum()
    assert int(record["noise_inputs"]) == found.noise.sum()
    assert int(record["covered"]) == analysis.covered
    assert record["searched"].split()[0] == "-".join(map(str, found.cells[0]))
