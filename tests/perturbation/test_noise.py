import numpy as np
import pytest
import torch

from idc_core.attribution.relevance import relevance
from idc_core.errors import CancelledError, DataError, SettingError
from idc_core.perturbation import guided_noise, random_noise
from idc_core.perturbation.guided import relevant_pixels
from idc_core.perturbation.inputs import pixel_count, stream


def changed_pixels(before, after):
    return (before != after).any(1).reshape(len(before), -1)


@pytest.mark.parametrize(("places", "expected"), [(784, 15), (1024, 20), (10000, 200), (10, 1)])
def test_two_percent_are_the_papers_numbers(places, expected):
    assert pixel_count(None, 0.02, places) == expected


def test_noise_is_the_draw_of_the_inputs_own_stream(pictures):
    """Straight from the definition, one picture and one pixel after the other."""
    middle = 0.4 + 0.2 * pictures
    noisy = random_noise(middle, 5, deviation=0.05, seed=3, numbers=np.arange(10, 17))
    for row, picture in enumerate(middle):
        random = stream(3, 10 + row)
        values = random.standard_normal((5, 2)) * 0.05
        expected = picture.copy()
        for value, place in zip(values, random.choice(9 * 12, 5, replace=False), strict=True):
            expected[:, place // 12, place % 12] += value.astype(np.float32)
        np.testing.assert_allclose(noisy[row], np.clip(expected, 0, 1), atol=1e-7)
    assert (changed_pixels(middle, noisy).sum(1) == 5).all()


def test_noise_has_the_deviation_asked_for_and_stays_in_range():
    grey = np.full((200, 1, 20, 20), 0.5, np.float32)
    noisy = random_noise(grey, 400, deviation=0.1, seed=0)
    assert (noisy - grey).std() == pytest.approx(0.1, rel=0.01)
    assert abs((noisy - grey).mean()) < 0.002
    wild = random_noise(grey, 400, deviation=5.0, seed=0)
    assert wild.min() == 0
    assert wild.max() == 1


def test_noise_depends_on_seed_and_number_alone(pictures):
    whole = random_noise(pictures, 6, seed=1)
    parts = [random_noise(pictures[[row]], 6, seed=1, numbers=[row]) for row in (4, 2, 0)]
    np.testing.assert_array_equal(whole[[4, 2, 0]], np.concatenate(parts))
    assert (whole != random_noise(pictures, 6, seed=2)).any()
    assert (whole != random_noise(pictures, 6, seed=1, numbers=np.arange(1, 8))).any()


def test_inputs_are_left_as_they_are(lenet, digits):
    before = digits.inputs.copy()
    random_noise(digits)
    guided_noise(lenet, digits)
    np.testing.assert_array_equal(digits.inputs, before)


def test_guided_noise_falls_on_the_most_relevant_pixels(lenet, digits):
    found = relevance(lenet, digits, ["input"])["input"]
    noisy = guided_noise(lenet, digits, 15, deviation=1.0)
    weight = np.abs(np.asarray(found).sum(1)).reshape(len(digits), -1)
    for row, moved in enumerate(changed_pixels(digits.inputs, noisy)):
        order = sorted(range(784), key=lambda place, row=row: (-weight[row, place], place))[:15]
        allowed = {place for place in order if weight[row, place] > 0}
        # Noise that a clip takes away again leaves a pixel as it was.
        assert set(np.flatnonzero(moved)) <= allowed
        assert moved.sum() > 3


def test_guided_noise_adds_the_values_of_random_noise(lenet):
    grey = np.random.default_rng(0).uniform(0.45, 0.55, (6, 1, 28, 28)).astype(np.float32)
    guided, random = guided_noise(lenet, grey, 15, deviation=0.02), random_noise(grey, 15, deviation=0.02)
    for row in range(6):
        values = [np.sort((noisy - grey)[row].ravel()[(noisy != grey)[row].ravel()]) for noisy in (guided, random)]
        np.testing.assert_allclose(*values, atol=1e-6)


def test_guided_noise_does_not_depend_on_the_batch(lenet, digits):
    whole = guided_noise(lenet, digits, 15)
    np.testing.assert_array_equal(whole, guided_noise(lenet, digits, 15, batch_size=5))
    part = guided_noise(lenet, digits.inputs[9:12], 15, numbers=[9, 10, 11])
    np.testing.assert_array_equal(whole[9:12], part)


def test_pixels_without_relevance_get_no_noise():
    relevance = torch.tensor([[[[0.0, -2.0], [1.0, 0.0]]], [[[3.0, 3.0], [3.0, 1.0]]]])
    assert relevant_pixels(relevance, 3).tolist() == [[False, True, True, False], [True, True, True, False]]
    assert relevant_pixels(relevance, 1).tolist() == [[False, True, False, False], [True, False, False, False]]


def test_guided_noise_can_be_stopped(lenet, digits):
    with pytest.raises(CancelledError):
        guided_noise(lenet, digits, on_progress=lambda *args: False)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pixels": 0}, "from 1 to 108"),
        ({"pixels": 109}, "from 1 to 108"),
        ({"pixels": True}, "whole number"),
        ({"share": 0}, "share"),
        ({"share": 1.5}, "share"),
        ({"deviation": 0}, "deviation"),
        ({"deviation": float("nan")}, "deviation"),
        ({"seed": -1}, "seed"),
        ({"seed": 1.0}, "seed"),
    ],
)
def test_settings_outside_their_range_are_refused(pictures, settings, message):
    with pytest.raises(SettingError, match=message):
        random_noise(pictures, **settings)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (np.zeros((3, 784), np.float32), "shape"),
        (np.zeros((3, 1, 8, 8), np.uint8), "uint8"),
        (np.full((3, 1, 8, 8), 255, np.float32), "reach from 255"),
        (np.full((3, 1, 8, 8), np.nan, np.float32), "0..1"),
    ],
)
def test_what_is_no_picture_is_refused(inputs, message):
    with pytest.raises(DataError, match=message):
        random_noise(inputs)


@pytest.mark.parametrize("numbers", [[0, 1], [-1, 0, 1, 2, 3, 4, 5], [0.5] * 7])
def test_numbers_that_do_not_fit_are_refused(pictures, numbers):
    with pytest.raises(DataError, match="numbers must hold"):
        random_noise(pictures, numbers=numbers)


def test_words_are_refused():
    with pytest.raises(DataError, match="Only pictures"):
        random_noise(np.ones((2, 200), np.int64))


def test_of_no_pictures_there_are_none(lenet):
    none = np.zeros((0, 1, 8, 8), np.float32)
    assert guided_noise(lenet, none, share=0.1).shape == none.shape
    assert random_noise(none, share=0.1).shape == none.shape
