"""What additions are worth, beside sets of targets; corrupted tests beside natural inputs."""

import numpy as np
import pytest
import torch
from torch import nn

from idc_core.coverage import IDC
from idc_core.coverage.profiles import Profiles
from idc_core.datasets import Dataset
from idc_core.errors import SettingError
from idc_core.perturbation import corrupt
from idc_core.worth import corruption_findings, valid_gain

RANDOM = np.random.default_rng(0)


def test_the_gain_is_that_of_sets_and_valid_where_one_valid_input_reaches_it():
    for _ in range(20):
        tests, added = RANDOM.random((6, 12)) < 0.2, RANDOM.random((8, 12)) < 0.3
        p = RANDOM.choice([0.01, 0.05, 0.051, 1.0], 8)
        known = {target for row in tests for target in np.flatnonzero(row).tolist()}
        gained = {target for row in added for target in np.flatnonzero(row).tolist()} - known
        valid = {
            target
            for row, value in zip(added, p, strict=True)
            if value > 0.05
            for target in np.flatnonzero(row).tolist()
        }
        found = valid_gain(Profiles.of_mask(tests), Profiles.of_mask(added), p)
        assert (found.gained, found.invalid) == (len(gained), len(gained - valid))
        order = RANDOM.permutation(8)
        assert valid_gain(Profiles.of_mask(tests), Profiles.of_mask(added[order]), p[order]) == found


def test_cells_are_the_same_ones_in_both():
    tests, added = Profiles.of_names(np.array([7, 9, 7]), 20), Profiles.of_names(np.array([9, 3, 4, 3]), 20)
    found = valid_gain(tests, added, np.array([1.0, 0.0, 0.0, 0.5]))
    assert (found.gained, found.invalid, found.share) == (2, 1, 0.5)
    with pytest.raises(SettingError, match="no share"):
        _ = valid_gain(tests, tests, np.ones(3)).share
    with pytest.raises(SettingError, match="each of 4"):
        valid_gain(tests, added, np.ones(3))


@pytest.fixture(scope="module")
def setup():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 6), nn.ReLU(), nn.Linear(6, 3)).eval()
    pictures = (np.rint(RANDOM.random((120, 1, 8, 8)) * 255) / 255).astype(np.float32)
    targets = np.arange(60) % 3
    tests = Dataset("t", "test", pictures[60:], targets, tuple("abc"), "classification", (), (), np.arange(60), "f")
    return IDC(model, "1", m=3).fit(pictures[:60]), tests


def test_corrupted_tests_stand_beside_as_many_natural_inputs(setup):
    criterion, tests = setup
    found = corruption_findings(criterion, tests, 5, names=["fog", "snow"], inputs=20, seeds=3)
    assert list(found) == ["fog", "snow"]
    known = set(map(tuple, _cells(criterion, tests.inputs)))
    slow = []
    for seed in range(3):
        rows = np.random.default_rng(seed).permutation(60)[:20]
        made = corrupt(tests.inputs[rows], "fog", 5, seed=seed, numbers=rows)
        slow.append(len(set(map(tuple, _cells(criterion, made))) - known))
    assert found["fog"].number == np.mean(slow)
    assert found["fog"].looks == 2
    assert found["fog"].control is not None
    with pytest.raises(SettingError, match="1 to 60"):
        corruption_findings(criterion, tests, 5, inputs=61)


def _cells(criterion, inputs):
    """The nearest centroid of each important neuron, of equally near ones the lower, by one input at a time."""
    with torch.no_grad():
        hidden = torch.relu(criterion.model[1](torch.tensor(inputs).flatten(1))).numpy()
    return [
        [
            int(np.argmin(np.abs(row[neuron] - centroids)))
            for neuron, centroids in zip(criterion.important, criterion.centroids, strict=True)
        ]
        for row in hidden
    ]
