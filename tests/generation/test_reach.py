"""Reaching a cell: by gradients, with noise beside it."""

import numpy as np
import pytest
import torch
from torch import nn

from idc_core.coverage import IDC
from idc_core.coverage.cells import assign, decode
from idc_core.errors import SettingError
from idc_core.generation import noise_to_cell, reach_cell
from idc_core.generation.cell_search import CellSpace


@pytest.fixture(scope="module")
def setup():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10), nn.ReLU(), nn.Linear(10, 3)).eval()
    train = torch.rand(600, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    criterion = IDC(model, "1", m=3).fit(train)
    return model, criterion.update(train), train[:30]


def own_cells(criterion, model, pictures):
    with torch.no_grad():
        active = torch.relu(model[1](model[0](torch.as_tensor(pictures)))).numpy()[:, criterion.important]
    nearest = [np.abs(active[:, [i]] - values).argmin(1) for i, values in enumerate(criterion.centroids)]
    return np.stack(nearest, 1)


def test_pictures_lie_in_the_cell_and_in_the_ball(setup):
    model, criterion, seeds = setup
    rounded = np.round(seeds.numpy() * 255) / np.float32(255)
    reached = 0
    for code in criterion.counts.codes[:4]:
        cell = tuple(int(i) for i in decode(np.array([code]), criterion.counts.sizes)[0])
        found = reach_cell(model, criterion, cell, seeds, epsilon=0.3)
        assert (own_cells(criterion, model, found.inputs) == cell).all()
        assert np.abs(found.inputs - rounded[found.seed_index]).max(initial=0) <= 0.3 + 1e-6
        np.testing.assert_allclose(found.inputs * 255, np.round(found.inputs * 255), atol=1e-4)
        assert (found.closest[found.seed_index] == 0).all()
        assert (np.delete(found.closest, found.seed_index) > 0).all()
        own = (own_cells(criterion, model, rounded) == cell).all(1)
        np.testing.assert_array_equal(found.iterations == 0, own[found.seed_index])
        reached += len(found)
    assert reached > 40


def test_gradients_reach_more_than_noise(setup):
    model, criterion, seeds = setup
    cells = [decode(np.array([code]), criterion.counts.sizes)[0] for code in criterion.counts.codes[:4]]
    guided, noise = (
        sum(len(way(model, criterion, cell, seeds, 0.1)) for cell in cells) for way in (reach_cell, noise_to_cell)
    )
    assert guided > 1.5 * noise


def test_noise_is_repeatable_and_valid(setup):
    model, criterion, seeds = setup
    cell = decode(criterion.counts.codes[:1], criterion.counts.sizes)[0]
    one, two = (noise_to_cell(model, criterion, cell, seeds, 0.2, seed=4) for _ in range(2))
    np.testing.assert_array_equal(one.inputs, two.inputs)
    rounded = np.round(seeds.numpy() * 255) / np.float32(255)
    assert np.abs(one.inputs - rounded[one.seed_index]).max() <= 0.2 + 1e-6


def test_stop_keeps_the_first_step(setup):
    model, criterion, seeds = setup
    cell = tuple(size - 1 for size in criterion.counts.sizes)
    whole = reach_cell(model, criterion, cell, seeds, 0.5)
    found = reach_cell(model, criterion, cell, seeds, 0.5, on_progress=lambda *_: False)
    assert found.stopped
    assert not whole.stopped
    assert found.iterations.max(initial=0) <= 1
    assert len(found) == (whole.iterations <= 1).sum()


def test_nothing_found_is_said(setup):
    model, criterion, seeds = setup
    cells = own_cells(criterion, model, seeds[:1])[0]
    other = tuple((cells + 1) % np.array(criterion.counts.sizes))
    nothing = reach_cell(model, criterion, other, seeds[:1], 1 / 255)
    assert len(nothing) == 0
    assert nothing.inputs.shape == (0, 1, 8, 8)
    assert nothing.message.startswith("No picture reached cell")


def test_refusals(setup):
    model, criterion, seeds = setup
    with pytest.raises(SettingError, match="Expected a cell"):
        reach_cell(model, criterion, "9-9-9", seeds)
    with pytest.raises(SettingError, match="Expected a cell"):
        reach_cell(model, criterion, "a", seeds)
    with pytest.raises(SettingError, match="epsilon"):
        reach_cell(model, criterion, "0-0-0", seeds, 2.0)
    with pytest.raises(SettingError, match="call fit"):
        reach_cell(model, IDC(model, "1", m=3), "0-0-0", seeds)


def test_rounded_centroids_that_are_equal_are_one_cell():
    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 2)).eval()
    model[0].weight.data[:] = 1
    train = torch.tensor([0.101, 0.1045, 0.5]).repeat(30)[:, None]
    criterion = IDC(model, "0", 1, original=True, clusters=(3,)).fit(train, model(train).argmax(1))
    assert criterion.centroids[0].tolist() == [0.1, 0.1, 0.5]
    values = np.linspace(0, 0.6, 61)[:, None]
    np.testing.assert_array_equal(CellSpace.of(criterion).assign(values), assign(values, criterion.centroids))
