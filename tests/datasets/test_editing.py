"""One input changed by hand: painted pixels and rewritten texts, against the obvious way."""

import numpy as np
import pytest

from idc_core.datasets.dataset import Dataset
from idc_core.datasets.editing import paint_over, token_ids


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_painted_pixels_have_their_colour_and_others_stay(channels):
    image = np.random.default_rng(0).random((channels, 4, 5), np.float32)
    before = image.copy()
    changed = paint_over(image, [[7, 255, 0, 51], [0, 0, 0, 0], [20, 1, 1, 1], [-1, 1, 1, 1]])
    np.testing.assert_array_equal(image, before)
    colour = np.array([1.0, 0.0, 0.2], np.float32)
    np.testing.assert_allclose(changed[:, 1, 2], colour if channels == 3 else colour.mean(), rtol=1e-6)
    assert (changed[:, 0, 0] == 0).all()
    assert (changed != image).any(0).sum() == 2


def texts(vocabulary, length):
    inputs = np.zeros((1, length), np.int64)
    return Dataset(
        "own", "test", inputs, np.zeros(1, np.int64), ("a", "b"), "classification", vocabulary, (), inputs, ""
    )


def test_a_text_becomes_token_ids_padded_or_cut():
    test = texts(("", "?", "good", "film"), 4)
    assert token_ids(test, " good  film\nplot").tolist() == [2, 3, 1, 0]
    assert token_ids(test, "film film film film good").tolist() == [3, 3, 3, 3]
    assert token_ids(test, "").tolist() == [0, 0, 0, 0]


def test_characters_are_read_one_by_one():
    test = texts(("\0", "\1", "a", " ", "b"), 5)
    assert test.is_spelt
    assert token_ids(test, "a bc").tolist() == [2, 3, 4, 1, 0]
