"""Detectors beside slow versions, known-bad inputs, and changes of tests that keep their class."""

import numpy as np
import pytest
import torch
from torch import nn

from idc_core.datasets import load_dataset
from idc_core.errors import DataError
from idc_core.filling.detectors import detectors
from idc_core.filling.judging import fit_judge
from idc_core.filling.known_bad import known_bad
from idc_core.filling.proposals import changed, ways_to_change
from idc_core.perturbation import TRANSFORMS

RANDOM = np.random.default_rng(0)
TRAIN = (RANDOM.random((60, 1, 8, 1)) * RANDOM.random((60, 1, 1, 8))).astype(np.float32)
GIVEN = RANDOM.random((15, 1, 8, 8), dtype=np.float32)


@pytest.fixture(scope="module")
def found():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 6), nn.ReLU(), nn.Linear(6, 3)).eval()
    return model, {name: one(GIVEN) for name, one in detectors(model, "1", TRAIN).items()}


def residual(points, train):
    """By singular values: the components that hold 95 % of the variance are taken off one by one."""
    mean = train.mean(0)
    _, sizes, vectors = np.linalg.svd(train - mean, full_matrices=False)
    held, left = 0.0, points - mean
    for size, vector in zip(sizes, vectors, strict=True):
        left = left - np.outer(left @ vector, vector)
        held += size**2
        if held >= 0.95 * (sizes**2).sum():
            break
    return np.linalg.norm(left, axis=1)


def patches(pictures):
    places = [(top, left) for top in range(5) for left in range(5)]
    return np.stack(
        [pictures[:, 0, top : top + 4, left : left + 4].reshape(len(pictures), 16) for top, left in places], 1
    )


def neighbours(points, train):
    return [np.mean(sorted(np.linalg.norm(train - point, axis=1))[:5]) for point in points]


def test_detectors_measure_what_they_say(found):
    model, strange = found
    given, train = GIVEN.reshape(15, 64).astype(float), TRAIN.reshape(60, 64).astype(float)
    np.testing.assert_allclose(strange["PCA residual of pixels"], residual(given, train), rtol=1e-5)
    cut = patches(GIVEN).astype(float)
    slow = residual(cut.reshape(-1, 16), patches(TRAIN).astype(float).reshape(-1, 16)).reshape(15, 25).mean(1)
    np.testing.assert_allclose(strange["PCA residual of 4 x 4 patches"], slow, rtol=1e-5)
    np.testing.assert_allclose(
        strange["distance to 5 nearest neighbours in pixels"], neighbours(given, train), rtol=1e-5
    )
    with torch.no_grad():
        features = [torch.relu(model[1](torch.tensor(some).flatten(1))).double().numpy() for some in (GIVEN, TRAIN)]
    np.testing.assert_allclose(
        strange["distance to 5 nearest neighbours in layer 1"], neighbours(*features), rtol=1e-4, atol=1e-6
    )


def test_no_picture_is_no_number(found):
    assert all(one(GIVEN[:0]).shape == (0,) for one in detectors(found[0], "1", TRAIN).values())


@pytest.mark.parametrize("channels", [1, 3])
def test_known_bad_inputs(channels):
    pictures = np.round(RANDOM.random((6, channels, 12, 10)) * 255).astype(np.float32) / 255
    bad = known_bad(pictures, seed=1)
    assert len(bad) == 3
    for made in bad.values():
        assert made.shape == pictures.shape
        assert made.dtype == np.float32
        assert made.min() >= 0
        assert made.max() <= 1
    for picture, shuffled in zip(pictures, bad["shuffled pixels"], strict=True):
        pixels = [sorted(map(tuple, one.reshape(channels, -1).T.tolist())) for one in (picture, shuffled)]
        assert pixels[0] == pixels[1]
        assert not np.array_equal(picture, shuffled)
    again = known_bad(pictures, seed=1)
    assert all(np.array_equal(made, again[name]) for name, made in bad.items())


def test_all_transforms_are_tried_mildly_and_as_eight_bits():
    steps = ways_to_change((1, 8, 8), 0)
    assert set(TRANSFORMS) | {"noise", "blend"} == {step.recipe for step in steps}
    targets, numbers = np.arange(15) % 3, np.arange(15)
    for step in steps:
        made = changed(step, GIVEN, targets, numbers)
        assert made.shape == GIVEN.shape
        np.testing.assert_array_equal(np.rint(made * 255) / np.float32(255), made)
        np.testing.assert_array_equal(changed(step, GIVEN, targets, numbers), made)


def test_blends_are_of_one_class():
    (step, _) = (step for step in ways_to_change((1, 8, 8), 0) if step.recipe == "blend")
    weight, targets = step.settings["weight"], np.arange(15) % 3
    partners = []
    for row, picture in enumerate(changed(step, GIVEN, targets, np.arange(15))):
        mixed = (1 - weight) * GIVEN[row] + weight * GIVEN
        (partner,) = np.flatnonzero(np.abs(mixed - picture).max((1, 2, 3)) < 0.6 / 255)
        partners.append(partner)
        assert targets[partner] == targets[row]
        assert partner != row
    assert sorted(partners) == list(range(15))


def test_few_tests_are_refused(found):
    train, test = load_dataset("digits", "train"), load_dataset("digits", "test", 99)
    with pytest.raises(DataError, match="at least 100 tests"):
        fit_judge(found[0], "1", train, test)
