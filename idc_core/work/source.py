"""What work is on: a network and data by name, so that neither is sent to a worker, or those that this process has."""

from __future__ import annotations

import socket
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from idc_core.datasets import load_dataset
from idc_core.errors import DataError

if TYPE_CHECKING:
    from idc_core.base.progress import Progress
    from idc_core.datasets import Dataset
    from idc_core.datasets.dataset import Split
    from idc_core.models import ModelCard, Network


def _load_model(name: str) -> Network:
    """Load a network by its name; torch is imported no sooner."""
    from idc_core.models import load_model

    return load_model(name)


@dataclass(frozen=True)
class Source:
    """Names of a network and of data, as every worker finds them.

    Attributes
    ----------
    model, data : str
        As `open_model` and `load_dataset` take them: names of the registries, or paths that every machine has.
    split, limit
        As `load_dataset` takes them.
    prepare : callable, optional
        Called once by each worker before anything is opened, to enter networks and data of your own; hashable, and it
        can be pickled.
    prints : pair of str
        Fingerprints of network and data, empty where any will do; a worker that finds others ends the run.
    open_model : callable
        A function of a module, `load_model` unless named.
    live : pair of callable and Dataset, optional
        What gives the network by its name in this process, and the data, where it has them; never sent to a worker.
    """

    model: str
    data: str
    split: Split = "test"
    limit: int | None = None
    prepare: Callable[[], None] | None = None
    prints: tuple[str, str] = ("", "")
    open_model: Callable[[str], Network] = _load_model
    live: tuple[Callable[[str], Network], Dataset] | None = field(default=None, compare=False, repr=False)

    @classmethod
    def here(cls, card: ModelCard, open_model: Callable[[], Network], data: Dataset) -> Source:
        """Return what this process has alone; `open_model` gives the network where it is needed."""
        prints = card.fingerprint, data.fingerprint
        return cls(card.name, data.name, cast("Split", data.split), prints=prints, live=(lambda _: open_model(), data))

    def of(self, split: Split, limit: int | None = None, data: str = "") -> Source:
        """Return the same network with other inputs."""
        data = data or self.data
        return replace(self, split=split, limit=limit, data=data, prints=(self.prints[0], ""), live=None)

    def check(self, opened: Opened) -> None:
        """Refuse a network or data that are not those of the caller."""
        actual = (("network", self.model, opened.model.card.fingerprint), ("data", self.data, opened.data.fingerprint))
        for (kind, name, own), expected in zip(actual, self.prints, strict=True):
            if expected and own != expected:
                raise DataError(
                    f"{socket.gethostname()} has another {kind} {name!r}: fingerprint {own}, not {expected}. Give "
                    "every machine the same files."
                )


_Left = TypeVar("_Left")


@dataclass(eq=False)
class _Kept:
    """What blocks leave with a worker for later blocks or rounds of the same work."""

    word: Hashable = None
    left: Any = None

    def of(self, word: Hashable, begin: Callable[[], _Left]) -> _Left:
        """Return what work of this word has left, at first what `begin` gives; what other work has left goes."""
        if word != self.word:
            self.word = self.left = None
            self.left = begin()
            self.word = word
        left: _Left = self.left
        return left


@dataclass(eq=False)
class Opened:
    """A network and data that a worker, or this process, holds."""

    model: Network
    data: Dataset
    kept: _Kept = field(default_factory=_Kept)
    open_model: Callable[[str], Network] = _load_model
    on_progress: Progress | None = None
    """What is told how many inputs are done; None where an executor tells it block by block."""
    whole: bool = False
    """Whether all inputs are one block, in the process of the caller."""

    def inputs(self, block: tuple[int, int]) -> object:
        """Return the inputs of a block; all of them as they are, so that they can stream."""
        return self.data.inputs if block == (0, len(self.data)) else self.data.inputs[slice(*block)]


class Opener:
    """Opens what sources name, each network and each data set once."""

    def __init__(self) -> None:
        self.kept = _Kept()
        self._prepared: set[Hashable] = set()
        self._models: dict[tuple[Hashable, str], Network] = {}
        self._opened: dict[Source, Opened] = {}

    def __call__(self, source: Source) -> Opened:
        """Return what a source names."""
        if source not in self._opened:
            if source.prepare is not None and source.prepare not in self._prepared:
                source.prepare()
                self._prepared.add(source.prepare)
            name = source.open_model, source.model
            if name not in self._models:
                self._models[name] = source.open_model(source.model)
            data = load_dataset(source.data, source.split, source.limit)
            opened = Opened(self._models[name], data, self.kept, source.open_model)
            source.check(opened)
            self._opened[source] = opened
        return self._opened[source]
