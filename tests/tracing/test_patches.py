"""Patches among tokens: which grid they are, and how relevance spreads over pixels."""

import math

import numpy as np
import pytest

from idc_core.inspection import Hypothesis
from idc_core.inspection.blocks import _behaviour_rows
from idc_core.tracing.patches import patch_grid, patches_over


@pytest.mark.parametrize(
    ("tokens", "height", "width", "expected"),
    [
        (197, 224, 224, (14, 14, 1)),
        (198, 224, 224, (14, 14, 2)),
        (64, 32, 32, (8, 8, 0)),
        (33, 32, 128, None),
        (37, 32, 128, (3, 12, 1)),
        (65, 32, 128, (4, 16, 1)),
        (3, 32, 32, None),
    ],
)
def test_patches_are_squares_that_fill_the_picture(tokens, height, width, expected):
    found = patch_grid(tokens, height, width)
    assert found == expected
    assert (patches_over(np.ones(tokens), height, width) is None) == (expected is None)


@pytest.mark.parametrize(("tokens", "height", "width"), [(17, 8, 8), (10, 7, 7), (33, 8, 16)])
def test_a_patch_shares_its_relevance_among_its_pixels(tokens, height, width):
    values = np.random.default_rng(0).standard_normal(tokens)
    rows, columns, before = patch_grid(tokens, height, width)
    found = patches_over(values, height, width)
    sizes = {}
    for row in range(height):
        for column in range(width):
            patch = (math.floor(row * rows / height), math.floor(column * columns / width))
            sizes.setdefault(patch, []).append((row, column))
    for (row, column), pixels in sizes.items():
        share = values[before + row * columns + column] / len(pixels)
        np.testing.assert_allclose([found[pixel] for pixel in pixels], share, rtol=1e-12)
    np.testing.assert_allclose(found.sum(), values[before:].sum(), rtol=1e-12)


def test_behaviours_at_pixels_are_brought_to_patches():
    values = np.random.default_rng(0).random((3, 8, 8)).astype(np.float32)
    one = Hypothesis("value", "given", "number", lambda records: values)
    found = _behaviour_rows(values, one, (17,)).reshape(3, 17)
    for n in range(3):
        np.testing.assert_allclose(found[n, 0], values[n].mean(), rtol=1e-6)  # the class token covers the picture
        for row, column in np.ndindex(4, 4):
            slow = values[n, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2].mean()
            np.testing.assert_allclose(found[n, 1 + 4 * row + column], slow, rtol=1e-6)
