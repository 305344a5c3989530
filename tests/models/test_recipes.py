"""Augmentations and schedules do what their first line says."""

import numpy as np
import pytest
import torch

from idc_core.models import MODELS
from idc_core.models.recipes import AUGMENTATIONS, OPTIMIZERS, SCHEDULES, _drop_words, _mirror_shift, _mirror_steering
from idc_core.worth import TRAINING_CHANGES


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_mirror_shift_gives_mirrored_shifted_copies_and_nothing_else():
    image = torch.arange(1.0, 2 * 6 * 6 + 1).reshape(1, 2, 6, 6)
    changed, targets = _mirror_shift(image.repeat(200, 1, 1, 1), torch.arange(200), seeded())
    padded = np.pad(image[0].numpy(), ((0, 0), (4, 4), (4, 4)))
    allowed = set()
    for row in range(9):
        for column in range(9):
            cut = padded[:, row : row + 6, column : column + 6]
            allowed |= {cut.tobytes(), np.ascontiguousarray(cut[:, :, ::-1]).tobytes()}
    found = {np.ascontiguousarray(one.numpy()).tobytes() for one in changed}
    assert found <= allowed
    assert len(found) > 80  # of 162
    assert torch.equal(targets, torch.arange(200))


def test_mirror_steering_turns_picture_and_angle_together():
    pictures = torch.rand(100, 3, 4, 4, generator=seeded(1))
    angles = torch.linspace(0.1, 0.5, 100)  # far from zero, so that a sign shows who was mirrored
    changed, turned = _mirror_steering(pictures, angles, seeded())
    mirrored = turned < 0
    assert 30 < int(mirrored.sum()) < 70
    padded = np.pad(pictures.numpy(), ((0, 0), (0, 0), (4, 4), (8, 8)), mode="edge")
    lefts = set()
    for item in range(100):
        left = round((abs(float(turned[item])) - float(angles[item])) / 0.008) + 8
        lefts.add(left)
        picture = changed[item].flip(2) if mirrored[item] else changed[item]
        windows = [padded[item, :, top : top + 4, left : left + 4] for top in range(9)]
        assert any(np.array_equal(picture.numpy(), window) for window in windows)
    assert lefts <= set(range(17))
    assert len(lefts) > 12


def test_drop_words_keeps_padding_and_most_words():
    words = torch.full((50, 100), 7)
    words[:, 60:] = 0
    changed, _ = _drop_words(words, torch.zeros(50), seeded())
    assert (changed[:, 60:] == 0).all()
    assert set(changed[:, :60].unique().tolist()) == {1, 7}
    assert (words[:, :60] == 7).all(), "the data set itself was changed"


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_augmentations_follow_their_generator(name):
    inputs = torch.randint(2, 9, (8, 40)) if name == "drop-words" else torch.rand(8, 3, 12, 12)
    targets = torch.arange(8.0)
    first, second, other = (AUGMENTATIONS[name](inputs, targets, seeded(seed))[0] for seed in (3, 3, 4))
    assert torch.equal(first, second)
    assert name == "none" or not torch.equal(first, other)


def test_one_cycle_rises_then_falls_to_nothing():
    shares = [SCHEDULES["one-cycle"](step, 100) for step in range(100)]
    assert max(shares) == 1.0
    assert shares.index(1.0) == 19
    assert shares[:20] == sorted(shares[:20])
    assert shares[19:] == sorted(shares[19:], reverse=True)
    assert shares[-1] < 0.02
    assert [SCHEDULES["one-cycle"](step, 2) for step in range(2)] == [1.0, 1.0]


def test_every_recipe_names_parts_that_exist_and_every_part_is_used():
    recipes = [entry.recipe for entry in MODELS.values() if entry.recipe is not None]
    assert {recipe.optimizer for recipe in recipes} | set(TRAINING_CHANGES["optimiser"].values) == set(OPTIMIZERS)
    assert {recipe.schedule for recipe in recipes} <= set(SCHEDULES)
    assert {recipe.augmentation for recipe in recipes} == set(AUGMENTATIONS)
