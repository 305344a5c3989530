"""What a worker opens: a network and data by name, so that neither is sent to it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from idc_core.datasets import load_dataset
from idc_core.errors import DataError
from idc_core.models import load_model

if TYPE_CHECKING:
    from idc_core.datasets import Dataset
    from idc_core.datasets.dataset import Split
    from idc_core.models import Network


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
    """

    model: str
    data: str
    split: Split = "test"
    limit: int | None = None
    prepare: Callable[[], None] | None = None
    prints: tuple[str, str] = ("", "")
    open_model: Callable[[str], Network] = load_model

    def of(self, split: Split, limit: int | None = None, data: str = "") -> Source:
        """Return the same network with other inputs."""
        return replace(self, split=split, limit=limit, data=data or self.data, prints=(self.prints[0], ""))

    def check(self, opened: Opened) -> None:
        """Refuse a network or data that are not those of the caller."""
        found = (("network", self.model, opened.model.card.fingerprint), ("data", self.data, opened.data.fingerprint))
        for (kind, name, one), expected in zip(found, self.prints, strict=True):
            if expected and one != expected:
                raise DataError(
                    f"{socket.gethostname()} has another {kind} {name!r}: fingerprint {one}, not {expected}. Give "
                    "every machine the same files."
                )


Left = TypeVar("Left")


@dataclass(eq=False)
class Kept:
    """What blocks leave with a worker for later blocks or rounds of the same work."""

    word: Hashable = None
    left: Any = None

    def of(self, word: Hashable, begin: Callable[[], Left]) -> Left:
        """Return what work of this word has left, at first what `begin` gives; what other work has left goes."""
        if word != self.word:
            self.word = self.left = None
            self.left = begin()
            self.word = word
        left: Left = self.left
        return left


@dataclass(eq=False)
class Opened:
    """A network and data that a worker holds."""

    model: Network
    data: Dataset
    kept: Kept = field(default_factory=Kept)


class Opener:
    """Opens what sources name, each network and each data set once."""

    def __init__(self) -> None:
        self.kept = Kept()
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
            opened = Opened(self._models[name], data, self.kept)
            source.check(opened)
            self._opened[source] = opened
        return self._opened[source]
