"""How token ids are read as the words that a person changes, and words as token ids."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets.dataset import Dataset

_UNKNOWN = "…"
"""Stands for a word outside the vocabulary, as on the pages."""


@dataclass(frozen=True)
class Reading:
    """How token ids are read as words: by whole words, or by characters (`is_spelt`), with a space between words.

    `special` are the token ids that stand for no word: padding, a word outside the vocabulary, then marks.
    """

    vocabulary: tuple[str, ...]
    special: tuple[int, ...]
    is_spelt: bool

    @classmethod
    def of(cls, data: Dataset) -> Reading | None:
        """Return how a data set's texts are read; None where it has none, or they are read in pieces of words."""
        if data.inputs.dtype.kind not in "iu" or data.inputs.ndim != 2 or not data.vocabulary or data.is_pieces:
            return None
        return None if data.is_spelt and len(data.special) > 2 else cls(data.vocabulary, data.special, data.is_spelt)

    @cached_property
    def ids(self) -> dict[str, int]:
        """Token id of every word."""
        return {word: token for token, word in enumerate(self.vocabulary)}

    @cached_property
    def marks(self) -> frozenset[str]:
        """Words that stand for none."""
        return frozenset((_UNKNOWN, *(self.vocabulary[token] for token in self.special[2:])))

    def words(self, tokens: NDArray[np.integer]) -> list[str]:
        """Return the words of a text without its padding."""
        kept = tokens[tokens != self.special[0]].tolist()
        units = [_UNKNOWN if token == self.special[1] else self.vocabulary[token] for token in kept]
        return "".join(units).split(" ") if self.is_spelt else units

    def tokens(self, words: list[str], like: NDArray[np.integer]) -> NDArray[np.integer]:
        """Return the token ids of words, as many as `like`: padded or cut at the end."""
        units = " ".join(words) if self.is_spelt else words
        ids = np.full_like(like, self.special[0])
        known = [self.ids.get(unit, self.special[1]) for unit in units][: len(ids)]
        ids[: len(known)] = known
        return ids

    def is_word(self, word: str) -> bool:
        """Whether a word can be changed: it is one that is known, and no mark."""
        return bool(word) and word not in self.marks and not (self.is_spelt and _UNKNOWN in word)
