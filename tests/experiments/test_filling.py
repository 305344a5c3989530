"""A filled grid beside random transforms and fuzzing: equal passes, constraints, the same again with the same seed."""

import numpy as np
import pytest

from idc_core.analysis.analysis import analyze
from idc_core.coverage.cells import encode
from idc_core.datasets import load_dataset
from idc_core.experiments.filling import _Loop, compare_ways
from idc_core.filling import FillSettings, fit_judge
from idc_core.generation.cell_search import CellSpace
from idc_core.models import load_model

SETTINGS = FillSettings(changed=40, starts=2, iterations=5, kept=2, seed=3)


@pytest.fixture(scope="module")
def setup():
    model = load_model("lenet5-digits")
    train, test = load_dataset("digits", "train"), load_dataset("digits", "test")
    return model, analyze(model, train, test, "fc2", 5), test, fit_judge(model, "fc2", train, test)


@pytest.mark.rare
def test_all_ways_spend_the_same(setup):
    found = compare_ways(*setup, SETTINGS)
    assert [one.way for one in found] == ["filling", "random transforms", "fuzzing"]
    assert len({one.passes for one in found}) == 1
    for one in found:
        assert 0 < one.cells <= setup[1].total - setup[1].covered
        assert one.valid_cells <= one.cells <= one.inputs <= SETTINGS.kept * one.cells
    again = compare_ways(*setup, SETTINGS)
    assert [(one.cells, one.valid) for one in found] == [(one.cells, one.valid) for one in again]


@pytest.mark.parametrize("way", ["random transforms", "fuzzing"])
def test_what_is_collected_lies_in_uncovered_cells(setup, way):
    model, analysis, _, _ = setup
    loop = _Loop(way, *setup, SETTINGS, 2_000)
    assert loop.run(None).passes == 2_000
    space = CellSpace.of(analysis)
    for code, pictures in loop.inputs.items():
        assert code not in analysis.codes
        assert (space.codes(model, np.stack(pictures)) == code).all()
        np.testing.assert_array_equal(np.rint(np.stack(pictures) * 255) / np.float32(255), np.stack(pictures))
    assert len(loop.corpus) == len(loop.tests) + len(loop.inputs)


def test_fuzzing_stays_close_to_its_tests(setup):
    loop = _Loop("fuzzing", *setup, SETTINGS, 0)
    for _ in range(3):
        pictures, roots = loop._fuzzed(64)
        assert np.abs(pictures - loop.tests[roots]).max() <= SETTINGS.largest_change + 1e-6
        loop._found(int(encode(np.zeros((1, 5), np.uint8), loop.space.sizes)[0]), pictures[0], int(roots[0]))
