"""What a suite is: a named test set whose inputs are made when they are asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Array
from idc_core.base.progress import Progress
from idc_core.base.registry import own_code
from idc_core.datasets import Dataset
from idc_core.datasets.dataset import Task
from idc_core.datasets.reading import Reading
from idc_core.errors import DataError, SettingError

_BLOCK, _BLOCK_BYTES = 1024, 128 << 20
"""Inputs that are made at a time, and the bytes that they may take: of large pictures fewer."""

Positions = NDArray[np.int64]
_Make = Callable[[Positions, Progress | None], Array]
"""Called with positions within a part, any of them in any order; returns those inputs."""


@dataclass(frozen=True)
class ProvenanceStep:
    """One step in the making of inputs: its name, what was done as a sentence part for a person, and its settings.

    `seed` is None where nothing is random; `model` is the fingerprint of the network that took part, or empty.
    """

    recipe: str
    label: str
    settings: Mapping[str, object] = field(default_factory=dict)
    seed: int | None = None
    model: str = ""


@dataclass(frozen=True, eq=False)
class SuitePart:
    """Inputs that are made in one way; suites that share a part, by its content address, share its results.

    `at_a_time` is how many are to be made at a time at most, so that they do not take much memory.
    """

    fingerprint: str
    count: int
    make: _Make
    at_a_time: int = _BLOCK

    @staticmethod
    def of(inputs: Array, fingerprint: str) -> SuitePart:
        """Return inputs (n, ...) that are in memory as a part."""
        most = max(1, min(_BLOCK, _BLOCK_BYTES // max(1, inputs.nbytes // max(1, len(inputs)))))
        return SuitePart(fingerprint, len(inputs), lambda positions, _: np.asarray(inputs[positions]), most)


@dataclass(frozen=True, eq=False)
class Suite:
    """A named test set: the inputs of its parts, one part after the other, each of the `shape`.

    `name` is the key of its colour and kind; a union of the original and X has X's. `targets` (n,) are true classes,
    int64, or values of a regression, float32, which has no `class_names`. `origin`, int64 (n,), is the number of the
    test that each input was made of, in its data set, or -1; `partner`, int64 (n,), that of a second test which was
    blended with it, or -1. `provenance` says how the inputs came to be, first step first; a union lists the steps of
    its suites one after the other. `reading` is how texts are read as words, where they are.
    """

    name: str
    label: str
    targets: Array
    origin: NDArray[np.int64]
    partner: NDArray[np.int64]
    shape: tuple[int, ...]
    class_names: tuple[str, ...]
    task: Task
    provenance: tuple[ProvenanceStep, ...]
    parts: tuple[SuitePart, ...]
    reading: Reading | None = None

    def __post_init__(self) -> None:
        for array in (self.targets, self.origin, self.partner):
            array.setflags(write=False)

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def fingerprint(self) -> str:
        """Content address of all inputs and of how they were made, 16 hexadecimal digits."""
        return content_address(*(part.fingerprint for part in self.parts))

    def take(self, positions: Sequence[int] | Positions, on_progress: Progress | None = None) -> Array:
        """Make some inputs (k, ...), at positions (k,) in 0..n - 1, in any order."""
        places = np.asarray(positions, np.int64).reshape(-1)
        if len(places) and not (places.min() >= 0 and places.max() < len(self)):
            raise SettingError(f"Expected positions in 0..{len(self) - 1} of suite {self.label!r}.")
        inputs: Array | None = None
        for start, part in zip(self.starts, self.parts, strict=True):
            mine = np.flatnonzero((places >= start) & (places < start + part.count))
            first = inputs is None and not len(places)  # which tells the kind of numbers
            if len(mine) or first:
                made = part.make(places[mine] - start, on_progress)
                inputs = np.empty((len(places), *self.shape), made.dtype) if inputs is None else inputs
                inputs[mine] = made
        if inputs is None:
            raise DataError(f"Suite {self.label!r} has no parts, so that it has no inputs.")
        return inputs

    def blocks(self, size: int | None = None, on_progress: Progress | None = None) -> Iterator[tuple[Positions, Array]]:
        """Make all inputs block by block; yield positions, int64 (k,), and inputs (k, ...)."""
        size = size or self.at_a_time
        for start in range(0, len(self), size):
            positions = np.arange(start, min(start + size, len(self)), dtype=np.int64)
            yield positions, self.take(positions, on_progress)

    @property
    def at_a_time(self) -> int:
        """Inputs that are made at a time at most."""
        return min((part.at_a_time for part in self.parts), default=_BLOCK)

    @property
    def starts(self) -> list[int]:
        """Position of each part's first input."""
        ends = np.cumsum([0, *(part.count for part in self.parts)])
        return [int(end) for end in ends[:-1]]

    @property
    def parts_with_targets(self) -> list[tuple[SuitePart, Array]]:
        """The parts, each with its targets."""
        return [
            (part, self.targets[start : start + part.count])
            for start, part in zip(self.starts, self.parts, strict=True)
        ]


def nowhere(count: int) -> NDArray[np.int64]:
    """Return the numbers of tests of inputs that were made of none, int64 (count,)."""
    return np.full(count, -1, np.int64)


def content_address(*content: object) -> str:
    """Return 16 hexadecimal digits of a SHA-256 over how Python writes some values, and a person's code they name."""
    text = repr(content)
    return hashlib.sha256(f"{text}{own_code(text)}".encode()).hexdigest()[:16]


def original(test: Dataset) -> Suite:
    """Return a data set as a suite: the original tests, U_O."""
    return Suite(
        name="original",
        label="Original tests",
        targets=test.targets,
        origin=test.ids,
        partner=nowhere(len(test)),
        shape=tuple(test.inputs.shape[1:]),
        class_names=test.class_names,
        task=test.task,
        provenance=(
            ProvenanceStep("original", f"{len(test):,} tests of {test.name}", {"fingerprint": test.fingerprint}),
        ),
        parts=(SuitePart.of(test.inputs, test.fingerprint),),
        reading=Reading.of(test),
    )


def union(suites: Sequence[Suite], name: str | None = None, label: str | None = None) -> Suite:
    """Put suites for the same network one after the other; a part that several suites share is in it once.

    By default it has the last suite's name, and all labels joined by "+". Raises SettingError without a suite,
    DataError if shapes, classes or tasks differ.
    """
    if not suites:
        raise SettingError("A union needs at least one suite, got none.")
    first = suites[0]
    for other in suites[1:]:
        if (other.shape, other.task, other.class_names) != (first.shape, first.task, first.class_names):
            raise DataError(
                f"Suites {first.label!r} and {other.label!r} are not for the same network: their inputs have the "
                f"shapes {first.shape} and {other.shape}, with {len(first.class_names)} and "
                f"{len(other.class_names)} classes."
            )
    distinct: dict[str, tuple[SuitePart, Array, Positions, Positions]] = {}
    for suite in suites:
        for start, (part, targets) in zip(suite.starts, suite.parts_with_targets, strict=True):
            rows = slice(start, start + part.count)
            distinct.setdefault(part.fingerprint, (part, targets, suite.origin[rows], suite.partner[rows]))
    parts, all_targets, origins, partners = zip(*distinct.values(), strict=True)
    provenance: list[ProvenanceStep] = []
    for step in (step for suite in suites for step in suite.provenance):  # settings may not be hashable
        if step not in provenance:
            provenance.append(step)
    return replace(
        first,
        name=name or suites[-1].name,
        label=label or " + ".join(suite.label for suite in suites),
        targets=np.concatenate(all_targets),
        origin=np.concatenate(origins),
        partner=np.concatenate(partners),
        provenance=tuple(provenance),
        parts=parts,
    )
