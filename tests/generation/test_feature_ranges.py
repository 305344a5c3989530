"""Search on tables: the same as a slow climb of one row, within the ranges, whole numbers whole."""

import numpy as np
import pytest
import torch
from torch import nn

from idc_core.errors import DataError, SettingError
from idc_core.generation import FeatureRanges, differential_search


def network(seed):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3)).eval()
    torch.manual_seed(seed)
    with torch.no_grad():
        for value in model.parameters():
            value.add_(0.15 * torch.randn(value.shape))
    return model


@pytest.fixture(scope="module")
def models():
    return [network(seed) for seed in (1, 2, 3)]


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(0)
    rows = random.normal(size=(300, 5)).astype(np.float32)
    rows[:, 1] = random.integers(0, 9, 300)
    rows[:, 4] = 2.5
    return rows


def agreed(models, table):
    with torch.no_grad():
        answers = torch.stack([model(torch.tensor(table)).argmax(1) for model in models], 1)
    return table[(answers == answers[:, :1]).all(1).numpy()]


def test_ranges_are_those_of_the_rows(table):
    ranges = FeatureRanges.of(table)
    np.testing.assert_array_equal(ranges.low, table.min(0))
    np.testing.assert_array_equal(ranges.high, table.max(0))
    assert np.asarray(ranges.whole).tolist() == [False, True, False, False, False]


def test_differences_are_rows_that_the_table_could_hold(models, table):
    rows, ranges = agreed(models, table)[:60], FeatureRanges.of(table, most=0.2)
    found = differential_search(models, rows, ranges, iterations=40)
    assert 5 < found.found == len(found) <= 60
    seeds = rows[found.seed_index]
    span = table.max(0) - table.min(0)
    assert (found.inputs >= table.min(0) - 1e-6).all()
    assert (found.inputs <= table.max(0) + 1e-6).all()
    assert (np.abs(found.inputs - seeds) <= 0.2 * span + 1e-5).all()
    assert (found.inputs[:, 1] == np.round(found.inputs[:, 1])).all()
    np.testing.assert_array_equal(found.inputs[:, 4], seeds[:, 4])
    assert np.abs(found.inputs - seeds).max(1).min() > 0
    with torch.no_grad():
        answers = torch.stack([model(torch.tensor(found.inputs)).argmax(1) for model in models], 1)
    np.testing.assert_array_equal(found.predictions, answers)
    assert (found.predictions != found.predictions[:, :1]).any(1).all()


def slow_climb(models, row, ranges, turn, most):
    """One row by the paper's objective without its coverage term: its first difference, and the steps to it."""
    low, high = torch.tensor(np.asarray(ranges.low)), torch.tensor(np.asarray(ranges.high))
    span, state = high - low, torch.zeros(len(row))
    own = int(models[0](torch.tensor(row)).argmax())
    picture = torch.tensor(row)
    for step in range(1, most + 1):
        given = picture.clone().requires_grad_()
        sum((-1 if place == turn else 1) * model(given)[own] for place, model in enumerate(models)).backward()
        up = given.grad * span
        size = up[up != 0].square().mean().sqrt()
        state = (state + 10 / 255 * up / size).clamp(-ranges.most, ranges.most)
        state = torch.maximum(torch.minimum(state, (high - torch.tensor(row)) / span), (low - torch.tensor(row)) / span)
        picture = torch.tensor(row) + state * span
        if len({int(model(picture).argmax()) for model in models}) > 1:
            return picture.detach().numpy(), step
    return None, most


def test_the_search_is_a_slow_climb_of_each_row(models, table):
    smooth = table[:, :4]
    smooth = np.column_stack([smooth, smooth[:, 0] ** 2]) + np.float32(0.1)
    rows = agreed(models, smooth)[:20]
    ranges = FeatureRanges(smooth.min(0), smooth.max(0), most=0.3)
    options = {"objective": "scores", "weight_coverage": 0.0, "turn": 1, "iterations": 25}
    found = differential_search(models, rows, ranges, **options)
    expected = [slow_climb(models, row, ranges, 1, 25) for row in rows]
    assert found.seed_index.tolist() == [place for place, (row, _) in enumerate(expected) if row is not None]
    assert len(found) > 2
    for place, made, steps in zip(found.seed_index, found.inputs, found.iterations, strict=True):
        np.testing.assert_allclose(made, expected[place][0], atol=1e-4)
        assert steps == expected[place][1]


def test_what_is_no_table_or_no_range_is_refused(models, table):
    ranges = FeatureRanges.of(table)
    for seeds in (table[:, :3], table[:0], table[None], np.full((2, 5), np.nan)):
        with pytest.raises(DataError):
            differential_search(models, seeds, ranges)
    with pytest.raises(DataError, match="rows of a table"):
        FeatureRanges.of(table[0])
    for wrong in ({"low": [1, 2], "high": [0, 3]}, {"low": [0], "high": [1], "whole": [1.0]}):
        with pytest.raises(SettingError):
            FeatureRanges(**wrong)
    with pytest.raises(SettingError, match="most"):
        FeatureRanges([0], [1], most=0)
