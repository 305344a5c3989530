"""What a neuron's card shows: tests, activations, what the neuron does for each class, and hypotheses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Tiles:
    """Tests on a card: their numbers, what is said of each, and pictures (k, H, W, 3) or texts.

    Of a text, letters are marked that the neuron looks at: from which up to which, those that it looks at most first.
    """

    tests: Sequence[int]
    said: Sequence[str]
    pictures: NDArray[np.uint8] | None = None
    texts: Sequence[tuple[str, Sequence[tuple[int, int]]]] = ()


@dataclass(frozen=True, eq=False)
class Activations:
    """A neuron's activations over the training inputs, its clusters, and how many covered cells have each."""

    values: NDArray[np.floating]
    boundaries: NDArray[np.float64]
    silhouette: float | None  # None where there was no choice
    cells: Sequence[int]


@dataclass(frozen=True, eq=False)
class Classes:
    """What a neuron does for each class: mean relevance, and what changes when it is silenced.

    `change` is in per cent: of the accuracy, for regression of the error in proportion; NaN where it was not measured.
    `low` and `high` are the range of 95 % of what silencing another neuron changes, of as many as `others`; NaN, too.
    """

    names: Sequence[str]
    relevance: NDArray[np.float64]
    change: NDArray[np.float64]
    measure: str  # what changes
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    others: int

    def listed(self, most: int) -> list[int]:
        """Return places of the classes: of more than `most`, those with the largest relevance."""
        if len(self.names) <= most:
            return list(range(len(self.names)))
        return [int(place) for place in np.argsort(-np.abs(np.nan_to_num(self.relevance)), kind="stable")[:most]]

    @property
    def beyond(self) -> list[int]:
        """Places of the classes for which silencing changes more, or less, than that of 95 % of others."""
        slack = 1e-9  # an equal number comes out of a quantile with another last digit
        places: list[int] = np.flatnonzero(
            (self.change < self.low - slack) | (self.change > self.high + slack)
        ).tolist()
        return places

    @property
    def verdict(self) -> str:
        """The change beside that of other neurons, in words; empty where neither was measured."""
        if not np.isfinite(self.change).any():
            return ""
        if not self.others:
            return "No other to compare with"
        who = "1 other" if self.others == 1 else f"{self.others} others"
        names = ", ".join(self.names[place] for place in self.beyond)
        return f"Beyond {who}: {names}" if names else f"Within what {who} {'does' if self.others == 1 else 'do'}"


@dataclass(frozen=True, eq=False)
class Card:
    """All that a card shows of a neuron; `name` is what a person calls it, `share` of the positive relevance, 0..1.

    `hypotheses` are the best ones that were tested, each with its score as it is written. A small card has neither
    activations nor classes.
    """

    neuron: int
    share: float
    tiles: Tiles
    name: str = ""
    activations: Activations | None = None
    classes: Classes | None = None
    hypotheses: Sequence[tuple[str, str]] = ()

    @property
    def title(self) -> str:
        """The neuron by number and name."""
        return f"Neuron {self.neuron}" + (f" \u00b7 {self.name}" if self.name else "")
