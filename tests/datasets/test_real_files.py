"""The real files, where IDC_DATA names a folder that has them: their known counts and statistics."""

import os
from pathlib import Path

import numpy as np
import pytest

from idc_core.datasets import load_dataset

DATA = os.environ.get("IDC_DATA", "")


def needs(name):
    there = bool(DATA) and (Path(DATA) / name).is_dir()
    return pytest.mark.skipif(not there, reason=f"the environment variable IDC_DATA names no folder with {name}/")


def statistics(data):
    """Mean and standard deviation of every channel, a thousand images at a time to spare memory."""
    total, squares = 0.0, 0.0
    for start in range(0, len(data), 1000):
        part = data.inputs[start : start + 1000].astype(np.float64)
        total, squares = total + part.sum((0, 2, 3)), squares + (part**2).sum((0, 2, 3))
    pixels = len(data) * data.inputs[0, 0].size
    return total / pixels, np.sqrt(squares / pixels - (total / pixels) ** 2)


@needs("mnist")
def test_mnist():
    train, test = load_dataset("mnist", "train"), load_dataset("mnist", "test")
    mean, deviation = statistics(train)
    assert (round(mean[0], 4), round(deviation[0], 4)) == (0.1307, 0.3081)
    expected = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(train.targets).tolist() == expected
    assert np.bincount(test.targets).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


@pytest.mark.rare
@needs("cifar10")
def test_cifar10():
    data = load_dataset("cifar10", "train")
    mean, deviation = statistics(data)
    np.testing.assert_allclose(mean, [0.4913, 0.4821, 0.4465], atol=6e-5)
    np.testing.assert_allclose(deviation, [0.2452, 0.2428, 0.2606], atol=6e-5)
    assert np.bincount(data.targets).tolist() == [5000] * 10
    first = np.bincount(load_dataset("cifar10", "test", 1000).targets, minlength=10)
    assert first.min() > 70
    assert first.max() < 130


@pytest.mark.slow
@needs("udacity")
def test_udacity():
    train, test = load_dataset("udacity", "train"), load_dataset("udacity", "test")
    # Five test blocks; 20 frames are left out on both sides of four of them and before the last.
    assert (len(train), len(test)) == (5614 - 1404 - 9 * 20, 1404)
    assert abs(test.targets.max() - 0.950) < 1e-3
    assert abs(test.targets.min() + 0.878) < 1e-3
    mean = (statistics(train)[0] * len(train) + statistics(test)[0] * len(test)) / (len(train) + len(test))
    # The known mean is that of all frames, with those between the blocks.
    np.testing.assert_allclose(mean, [0.3336, 0.3381, 0.3382], atol=1e-3)


@pytest.mark.slow
@needs("20newsgroups")
def test_20newsgroups():
    train, test = load_dataset("20newsgroups", "train"), load_dataset("20newsgroups", "test")
    assert (len(train), len(test)) == (3563, 2372)
    assert len(train.vocabulary) == 10_002
    assert train.inputs.max() == 10_001
    assert np.bincount(train.targets).min() > 500
