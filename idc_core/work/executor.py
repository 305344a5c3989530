"""What an executor is: it runs work on blocks of inputs, in this process or by workers that open network and data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, Self, TypeVar

from idc_core.base.progress import Progress
from idc_core.base.registry import Registry
from idc_core.work.source import Opened, Source

Block = tuple[int, int]
"""Positions of the first input, and of the one after the last."""

MOST_BLOCKS = 512
"""Blocks that inputs are cut into at most: what is lost with a worker is at most so small a part."""


Found = TypeVar("Found")


class Work(ABC, Generic[Found]):
    """Work on blocks of inputs: can be pickled, and holds neither network nor data.

    What it finds can be pickled too, and has a method `merge` that takes in what the next block has found.

    Attributes
    ----------
    keeps : str
        Empty, or the word of rounds of which the later ones need what the first has left in `Opened.kept`. The blocks
        of the later ones then go to the workers that had them.
    """

    keeps: str = ""

    @abstractmethod
    def __call__(self, opened: Opened, block: Block) -> Found:
        """Return what a block of the inputs gives."""


@dataclass(frozen=True)
class Cutting:
    """Blocks of a source's inputs, and the batch size within them; None where the pass is to choose it."""

    blocks: list[Block]
    batch_size: int | None

    @property
    def count(self) -> int:
        """How many inputs there are."""
        return self.blocks[-1][1]


@dataclass(frozen=True)
class Cut(Work[Cutting]):
    """Finds out how inputs are cut, `most` of them: `at_once` says how many one process would run at a time."""

    at_once: Callable[[Opened], int]
    batch_size: int | None = None
    most: int | None = None

    def __call__(self, opened: Opened, block: Block) -> Cutting:
        """Return the blocks."""
        size = self.batch_size or self.at_once(opened)
        return Cutting(cut(self.count(opened), size), size)

    def count(self, opened: Opened) -> int:
        """Return how many inputs there are."""
        return len(opened.data) if self.most is None else min(self.most, len(opened.data))


class Executor(ABC):
    """Runs work on blocks of inputs; used in a `with` block, which ends the workers.

    What the blocks give is merged in a tree over their numbers, so that a result depends on how the inputs are cut, but
    not on which worker did what, nor on how many there are.
    """

    @abstractmethod
    def run(
        self,
        source: Source,
        work: Work[Found],
        blocks: Sequence[Block],
        on_progress: Progress | None = None,
        *,
        moving: bool = False,
    ) -> Found:
        """Return what all blocks give, merged.

        With `moving` a worker that has joined since the first round takes its share of the blocks from the others.

        Raises
        ------
        IdcError
            As the work does; CancelledError if `on_progress` asks to stop.
        """

    def cut(self, source: Source, how: Cut) -> Cutting:
        """Let a worker find out how inputs are cut."""
        return self.run(source, how, [(0, 1)])

    def close(self) -> None:  # noqa: B027 (most have no workers to end)
        """End the workers."""

    def __enter__(self) -> Self:
        """Return the executor itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the workers."""
        self.close()


OpenExecutor = Callable[[], AbstractContextManager[Executor]]
"""Opens an executor where work is to run; at the end of the `with` block its workers end."""


@dataclass(frozen=True)
class _Entry:
    """What a menu says of an executor, and what opens it; `open` takes the address of a cluster, empty for none."""

    name: str
    label: str
    help: str
    open: Callable[[str], Executor]


EXECUTORS: Registry[_Entry] = Registry("engine")
"""Executors by the name that `--engine` and the config file take, entered by `executor`."""

_Made = TypeVar("_Made", bound=Callable[[str], Executor])


def executor(name: str, *, label: str, help: str) -> Callable[[_Made], _Made]:
    """Enter an executor into `EXECUTORS`; the decorated class is called with an address."""

    def enter(made: _Made) -> _Made:
        EXECUTORS.enter(name, _Entry(name, label, help, made))
        return made

    return enter


def cut(count: int, batch_size: int) -> list[Block]:
    """Cut so many inputs into blocks of whole batches, so that batches are those of one pass over all inputs."""
    batches = -(-count // batch_size)
    size = batch_size * -(-batches // MOST_BLOCKS)
    return [(start, min(start + size, count)) for start in range(0, count, size)]
