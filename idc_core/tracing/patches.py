"""Where the patches of a picture are among the tokens of a transformer."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_FEWEST_PATCHES = 4

_MOST_BEFORE = 8
"""Tokens before the patches: the class token, one for distillation, registers."""


def patch_grid(tokens: int, height: int, width: int) -> tuple[int, int, int] | None:
    """Return rows and columns of the patches of a picture, and how many tokens come before them; None where none fit.

    Patches are squares that fill the picture row by row; a class token and others that look at no patch come first.
    """
    for before in range(_MOST_BEFORE + 1):
        count = tokens - before
        rows = math.isqrt(max(0, count) * height // width)
        columns = count // rows if rows else 0
        if count >= _FEWEST_PATCHES and rows * columns == count and rows * width == columns * height:
            return rows, columns, before
    return None


def patches_over(relevance: NDArray[np.floating], height: int, width: int) -> NDArray[np.float64] | None:
    """Spread the relevance of tokens (tokens,) over the pixels of their patches, float64 (height, width).

    Each pixel has an equal part of its patch's, so that sums stay. None where the tokens are no patches.
    """
    grid = patch_grid(len(relevance), height, width)
    if grid is None:
        return None
    rows, columns, before = grid
    places = (np.arange(height) * rows // height)[:, None] * columns + np.arange(width) * columns // width
    shares = relevance[before:].astype(np.float64) / np.bincount(places.ravel(), minlength=rows * columns)
    return np.asarray(shares[places], np.float64)
