"""Records, hypotheses about them, and the registry of families that offer hypotheses for a data set."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from idc_core.base.registry import Registry
from idc_core.datasets import Dataset
from idc_core.errors import DataError

_Made = TypeVar("_Made")

PARSES = "parses"
"""The key under which records remember their parses."""


@dataclass(frozen=True)
class Records:
    """Some inputs of a data set by their `positions` in it, int64 (n,), in any order."""

    dataset: Dataset
    positions: NDArray[np.int64]
    memo: dict[object, Any] = field(default_factory=dict, repr=False, compare=False)

    def once(self, key: object, make: Callable[[], _Made]) -> _Made:
        """Return what `make` makes of these records; what several hypotheses look at is made for the first of them."""
        if key not in self.memo:
            self.memo[key] = make()
        made: _Made = self.memo[key]
        return made

    def __len__(self) -> int:
        return len(self.positions)

    @cached_property
    def inputs(self) -> NDArray[np.generic]:
        """The inputs, (n, ...)."""
        inputs: NDArray[np.generic] = self.dataset.inputs[self.positions]
        return inputs

    @cached_property
    def tokens(self) -> NDArray[np.generic]:
        """The token ids of texts in the smallest type that holds them, (n, symbols): compared several times as fast."""
        return self.inputs.astype(np.min_scalar_type(self.inputs.max(initial=0)))

    @cached_property
    def targets(self) -> NDArray[np.generic]:
        """The targets, (n,)."""
        targets: NDArray[np.generic] = self.dataset.targets[self.positions]
        return targets

    @property
    def ids(self) -> NDArray[np.int64]:
        """The inputs' positions in their split's own order, (n,)."""
        ids: NDArray[np.int64] = self.dataset.ids[self.positions]
        return ids

    @property
    def is_text(self) -> bool:
        """Whether the inputs are token ids, (n, symbols)."""
        return is_text(self.dataset)

    @property
    def symbols(self) -> tuple[int, ...]:
        """Shape of a behaviour that has a value at every place of an input: (symbols,), or (height, width)."""
        return places(self.dataset)

    @cached_property
    def present(self) -> NDArray[np.bool_]:
        """Where there is something at all: not at a text's padding; bool (n, symbols) or (n, height, width)."""
        if self.is_text:
            return np.asarray(self.inputs != self.dataset.padding)
        return np.ones((len(self), *self.symbols), bool)


def is_text(dataset: Dataset) -> bool:
    """Whether a data set's inputs are token ids, (n, symbols)."""
    return dataset.inputs.ndim == 2 and dataset.inputs.dtype.kind in "iu"


def places(dataset: Dataset) -> tuple[int, ...]:
    """Return the places of one input: (symbols,) of a text, (height, width) of a picture, () of anything else."""
    if is_text(dataset):
        return (int(dataset.inputs.shape[1]),)
    return tuple(int(size) for size in dataset.inputs.shape[2:]) if dataset.inputs.ndim == 4 else ()


Kind = Literal["binary", "number", "classes"]
_Behaviour = Callable[[Records], NDArray[np.generic]]


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A function from records to the activation of a unit that would detect the named property.

    Attributes
    ----------
    name : str
        Unique within a run.
    family : str
        A key of `FAMILIES`, or the person's own.
    kind : {"binary", "number", "classes"}
        Behaviours are 0 or 1; numbers; or class indices in 0..classes - 1, without an order.
    behave : callable
        Records to (n,) for a value per record, or (n, *places) for one per symbol or pixel.
    recomputable, parsed : bool
        Whether the behaviour follows from the inputs alone, so that it is known of changed inputs too; and whether
        it follows from the parse, so that it is known of texts that the grammar rewrote.
    """

    name: str
    family: str
    kind: Kind
    behave: _Behaviour
    classes: int = 0
    recomputable: bool = True
    parsed: bool = False

    def __call__(self, records: Records) -> NDArray[np.float32]:
        """Return the behaviour on records, float32 (n,) or (n, *places); DataError for other shapes or values."""
        return self.values(records).astype(np.float32, copy=False)

    def values(self, records: Records) -> NDArray[np.bool_] | NDArray[np.float32]:
        """Return the same as a call, but bool where the behaviour is true or false: a quarter of the memory."""
        array = np.asarray(self.behave(records))
        if array.shape not in ((len(records),), (len(records), *records.symbols)):
            raise DataError(
                f"Hypothesis {self.name!r} gave an array of shape {array.shape} for {len(records)} records; expected "
                f"({len(records)},) or {(len(records), *records.symbols)}."
            )
        if array.dtype.kind not in "biuf":
            raise DataError(f"Hypothesis {self.name!r} gave values of type {array.dtype}; expected numbers.")
        if array.dtype == bool and self.kind != "classes":
            return array.astype(bool, copy=False)
        values: NDArray[np.float32] = array.astype(np.float32)
        highest = {"binary": 1, "classes": self.classes - 1}.get(self.kind, np.inf)
        whole = self.kind == "number" or bool((values == np.floor(values)).all() and (values >= 0).all())
        if not np.isfinite(values).all() or not whole or (values.size and values.max() > highest):
            expected = "finite numbers" if self.kind == "number" else f"whole numbers in 0..{highest:g}"
            raise DataError(f"Hypothesis {self.name!r} gave values other than {expected}.")
        return values


@dataclass(frozen=True)
class Family:
    """An entry of the registry: `offer` returns the hypotheses that make sense on a data set, or none."""

    name: str
    label: str
    help: str
    offer: Callable[[Dataset], Iterable[Hypothesis]]


FAMILIES: Registry[Family] = Registry("family of hypotheses")
"""Families of hypotheses by name, in the order in which menus show them."""


def register_family(name: str, label: str, help: str) -> Callable[[Callable[[Dataset], Iterable[Hypothesis]]], object]:
    """Put the decorated function, from a data set to hypotheses, into `FAMILIES`."""

    def decorate(offer: Callable[[Dataset], Iterable[Hypothesis]]) -> object:
        FAMILIES[name] = Family(name, label, help, offer)
        return offer

    return decorate


def library(dataset: Dataset, families: Iterable[str] | None = None) -> tuple[Hypothesis, ...]:
    """Return the ready-made hypotheses of some families, or of all of `FAMILIES`, for a data set."""
    chosen = [FAMILIES[name] for name in (FAMILIES if families is None else families)]
    return tuple(hypothesis for family in chosen for hypothesis in family.offer(dataset))


def shuffled(hypothesis: Hypothesis, seed: int) -> Hypothesis:
    """Return the hypothesis with its behaviours dealt out to other records, which leaves chance and place.

    Each record gets the whole behaviour of another one. In centred pictures a unit that responds to ink still scores
    high; tests of pixels leave place out, see `measures.beyond_place`.
    """

    def behave(records: Records) -> NDArray[np.generic]:
        dealt = np.random.default_rng(seed).permutation(len(records.dataset))
        return hypothesis(Records(records.dataset, dealt[records.positions]))

    name = f"{hypothesis.name}, shuffled {seed}"
    return replace(hypothesis, name=name, behave=behave, recomputable=False, parsed=False)
