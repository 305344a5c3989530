"""Texts that a grammar rewrites: alike up to a place, another symbol there, and both as derivable as any other."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets import Dataset
from idc_core.inspection.records import PARSES, Records


@dataclass(frozen=True, eq=False)
class Rewritten:
    """Pairs of texts.

    Attributes
    ----------
    before, after : Records
        They know their parses. What follows the place may differ too, for the string must end as the grammar has it.
    places : ndarray, int64 (n,)
        The first place where the two differ.
    """

    before: Records
    after: Records
    places: NDArray[np.int64]


class Replay(random.Random):
    """Numbers that were drawn before, then those of another source; remembers all."""

    def __init__(self, given: Sequence[float], source: random.Random) -> None:
        super().__init__(0)
        self.taken: list[float] = []
        self._given, self._source = given, source

    def random(self) -> float:
        """Return the next number."""
        done = len(self.taken)
        self.taken.append(self._given[done] if done < len(self._given) else self._source.random())
        return self.taken[-1]


def rewrite_sql(dataset: Dataset, count: int, source: random.Random) -> Rewritten:
    """Derive strings of the project's SQL grammar in pairs that make the same choices up to a random one.

    Parameters
    ----------
    dataset : Dataset
        Which the texts are like.
    count : int
        Pairs.
    source : random.Random
    """
    from idc_core.datasets.sql import SYMBOLS, encode, make_sentence, parses_of

    sides: tuple[list[Any], list[Any]] = [], []
    begins: list[int] = []
    places: list[int] = []
    while len(begins) < count:
        first = Replay((), source)
        one = make_sentence(first)
        other = make_sentence(Replay(first.taken[: int(source.random() * len(first.taken))], source))
        shorter = min(len(one.text), len(other.text))
        place = next((at for at in range(shorter) if one.text[at] != other.text[at]), shorter)
        lowest, highest = max(0, place - SYMBOLS + 1), min(place, shorter - SYMBOLS)
        if place == shorter or highest < lowest:
            continue
        begins.append(lowest + int(source.random() * (highest - lowest + 1)))
        places.append(place - begins[-1])
        for side, sentence in zip(sides, (one, other), strict=True):
            side.append(sentence)
    starts = np.array(begins, np.int64)
    made = []
    for side in sides:
        codes = encode([text.text[at : at + SYMBOLS] for text, at in zip(side, begins, strict=True)])
        made.append(changed(dataset, codes, {PARSES: parses_of(side, starts)}))
    return Rewritten(made[0], made[1], np.array(places, np.int64))


def changed(dataset: Dataset, inputs: NDArray[Any], memo: dict[object, Any] | None = None) -> Records:
    """Return texts as records of a data set; nothing but what `memo` holds is known of them beyond the texts."""
    count = len(inputs)
    data = replace(
        dataset, inputs=inputs, targets=np.zeros(count, np.int64), texts=(), ids=np.arange(count), fingerprint=""
    )
    return Records(data, np.arange(count), memo or {})


REWRITERS: dict[str, Callable[[Dataset, int, random.Random], Rewritten]] = {"sql": rewrite_sql}
"""Functions that rewrite the texts of data sets whose grammar is known, by the data set's name."""
