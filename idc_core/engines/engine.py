"""What an engine is: work on blocks of inputs, done by workers that open the network and the data themselves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from idc_core.engines.source import Opened, Source
from idc_core.progress import Progress
from idc_core.registry import Registry

Block = tuple[int, int]
"""Positions of the first input, and of the one after the last."""

MOST_BLOCKS = 512
"""Blocks that inputs are cut into at most: what is lost with a worker is at most so small a part."""


class State(Protocol):
    """What work on a block has found: can be pickled, and holds no network."""

    def merge(self, other: Any) -> Any:
        """Take in what the next block has found."""


Found = TypeVar("Found")
Found_co = TypeVar("Found_co", covariant=True)


class Work(Protocol[Found_co]):
    """Work on blocks of inputs: can be pickled, and holds neither network nor data."""

    @property
    def keeps(self) -> str:
        """Empty, or the word of rounds of which the later ones need what the first has left in `Opened.kept`.

        The blocks of the later ones then go to the workers that had them.
        """

    def __call__(self, opened: Opened, block: Block) -> Found_co:
        """Return what a block of the inputs gives."""


class Engine(ABC):
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

    @abstractmethod
    def close(self) -> None:
        """End the workers."""

    def __enter__(self) -> Self:
        """Return the engine itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the workers."""
        self.close()


@dataclass(frozen=True)
class EngineEntry:
    """What a menu says of an engine, and what opens it; `open` takes the address of a cluster, empty for none."""

    name: str
    label: str
    help: str
    open: Callable[[str], Engine]


ENGINES: Registry[EngineEntry] = Registry("engine")
"""Engines by name, entered by `engine`."""

Made = TypeVar("Made", bound=Callable[[str], Engine])


def engine(name: str, *, label: str, help: str) -> Callable[[Made], Made]:
    """Enter an engine into `ENGINES`; the decorated class is called with an address."""

    def enter(made: Made) -> Made:
        ENGINES.enter(name, EngineEntry(name, label, help, made))
        return made

    return enter


def cut(count: int, batch_size: int) -> list[Block]:
    """Cut so many inputs into blocks of whole batches, so that batches are those of one pass over all inputs."""
    batches = -(-count // batch_size)
    size = batch_size * -(-batches // MOST_BLOCKS)
    return [(start, min(start + size, count)) for start in range(0, count, size)]
