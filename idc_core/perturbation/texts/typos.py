"""Typos: letters exchanged, left out, doubled, or hit beside their key."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets.reading import Reading
from idc_core.perturbation.texts.registry import register_text_change

_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")


@register_text_change(
    "typos",
    "Typos",
    "Exchanges, drops or doubles a letter of some words, or hits the key beside it.",
    "Ribeiro et al., ACL 2020",
)
def _typos(words: list[str], places: NDArray[np.int64], random: np.random.Generator, reading: Reading) -> list[str]:
    return [_mistyped(word, random) if at in places else word for at, word in enumerate(words)]


def _mistyped(word: str, random: np.random.Generator) -> str:
    """Make one typo in a word: of four ways one that changes it."""
    at = int(random.integers(len(word)))
    before, letter, after = word[:at], word[at], word[at + 1 :]
    ways = [before + letter + letter + after]
    if len(word) > 1:
        ways.append(before + after)
    if after and after[0] != letter:
        ways.append(before + after[0] + letter + after[1:])
    ways += [before + key + after for row in _ROWS if letter in row for key in _beside(row, letter)]
    return ways[int(random.integers(len(ways)))]


def _beside(row: str, letter: str) -> str:
    """Return the keys to the left and to the right of a letter."""
    at = row.index(letter)
    return row[max(0, at - 1) : at] + row[at + 1 : at + 2]
