"""One piece of work: what an engine is given to do, here or in a process of its own, and what it tells meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextvars import ContextVar
from dataclasses import dataclass

from idc_core import store
from idc_core.base.progress import Progress
from idc_core.errors import DataError, IdcError
from idc_core.runs import RUN_KINDS

Tell = Callable[[Hashable, object], None]
"""Called with a key and what there is of a result so far."""


class DiffersError(IdcError):
    """A network or data are not what the work was asked for on: changed meanwhile, or made otherwise each time."""


class RemovedError(IdcError):
    """A kept result was removed to make room between two processes' looking for it."""


_teller: ContextVar[Tell] = ContextVar("teller")


@dataclass(frozen=True, eq=False)
class Task:
    """Work of a kind, and the key of its result, which is kept on disk or not; with `settings` the result is a run.

    It was waited for `since` then, as `time.time` gives it.
    """

    kind: str
    key: Hashable
    work: Callable[[Progress], object]
    is_kept: bool
    settings: dict[str, object] | None = None
    since: float | None = None

    def run(self, report: Progress, tell: Tell, on_problem: Callable[[DataError], None]) -> object:
        """Do the work and keep its result, unless it is kept already; `on_problem` is told why it cannot be kept."""
        token = _teller.set(tell)
        try:
            if not self.is_kept:
                return self.work(report)
            return store.kept(
                self.kind,
                self.key,
                lambda: self.work(report),
                settings=self.settings,
                scores=self._scores,
                since=self.since,
                on_progress=report,
                on_problem=on_problem,
            )
        finally:
            _teller.reset(token)

    def _scores(self, value: object) -> dict[str, float]:
        return {} if self.settings is None else RUN_KINDS[self.kind].figures(value, self.settings)


def tell(key: Hashable, value: object) -> None:
    """Say from within some work what there is of its result so far; `Shelf.told` finds it by the key."""
    _teller.get()(key, value)
