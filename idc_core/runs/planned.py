"""Results that pages, commands, reports and checks ask for alike: one kind and key each, so that none runs twice."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from idc_core import store
from idc_core.base.progress import Progress
from idc_core.errors import DataError
from idc_core.runs.kinds import RUN_KINDS
from idc_core.work import Here, Source

if TYPE_CHECKING:
    from torch import nn

    from idc_core.confusion import Statistics
    from idc_core.datasets import Dataset
    from idc_core.models import ModelCard
    from idc_core.tracing.traces import Traces
    from idc_core.work.executor import OpenExecutor

_T = TypeVar("_T")

Fingerprints = tuple[str, str, str]
"""Of the network, its training inputs and the tests."""


@dataclass(frozen=True, eq=False)
class Planned(Generic[_T]):
    """A result that is to be made or found.

    `kind` and `key` are as `idc_core.store.place` takes them; with `settings`, by name, it is a run. `misfit` says of
    what a kept result is not that its key says, as a file from elsewhere may be; empty where it fits.
    """

    kind: str
    key: tuple[object, ...]
    make: Callable[[Progress | None], _T]
    settings: dict[str, object] | None = None
    misfit: Callable[[_T], str] = lambda _: ""

    def kept(
        self,
        on_progress: Progress | None = None,
        *,
        fresh: bool = False,
        on_problem: Callable[[DataError], None] | None = None,
    ) -> _T:
        """Return the result that is kept, or make and keep it; arguments and errors as `idc_core.store.kept`.

        DataError also where a kept one does not fit.
        """
        return self._fitting(
            store.kept(
                self.kind,
                self.key,
                lambda: self.make(on_progress),
                settings=self.settings,
                scores=self._figures,
                fresh=fresh,
                on_progress=on_progress,
                on_problem=on_problem,
            )
        )

    def found(self) -> _T | None:
        """Return the result if it is kept; DataError where it does not fit."""
        result: _T = store.find(store.place(self.kind, self.key))
        return None if result is store.MISSING else self._fitting(result)

    def _fitting(self, result: _T) -> _T:
        if wrong := self.misfit(result):
            raise DataError(
                f"The kept result {store.place(self.kind, self.key)} {wrong}: it was imported or changed. Delete this "
                "file; it is made again."
            )
        return result

    def _figures(self, value: _T) -> dict[str, float]:
        return {} if self.settings is None else RUN_KINDS[self.kind].figures(value, self.settings)


def digest(positions: NDArray[np.int64]) -> str:
    """Return what stands for some of the tests, by their positions (k,), in a key."""
    return hashlib.sha256(positions.tobytes()).hexdigest()[:16]


def planned_traces(source: Source, layer: str, open_executor: OpenExecutor = Here) -> Planned[Traces]:
    """Plan what a layer shows on inputs, with the usual rule of relevance."""
    key = (*source.prints, layer)

    def make(on_progress: Progress | None) -> Traces:
        from idc_core.lrp.rules import RelevanceSettings
        from idc_core.work.traces import trace_inputs

        unfinished = store.Unfinished(store.place("trace", key), "pass")
        with open_executor() as executor:
            return trace_inputs(
                executor, source, (layer,), RelevanceSettings(), unfinished=unfinished, on_progress=on_progress
            )

    inputs = None if source.live is None else len(source.live[1])

    def misfit(found: Traces) -> str:
        fits = layer in found.activations and inputs in (None, len(found.scores))
        return "" if fits else f"is not of {layer!r} and {inputs} inputs"

    return Planned("trace", key, make, misfit=misfit)


def planned_statistics(
    card: ModelCard, open_model: Callable[[], nn.Module], test: Dataset, layers: tuple[str, ...]
) -> Planned[Statistics]:
    """Plan how strongly tests activate every neuron of some layers."""

    def make(on_progress: Progress | None) -> Statistics:
        from idc_core.confusion import collect_statistics

        return collect_statistics(open_model(), test, layers, on_progress=on_progress)

    return Planned("statistics", (card.fingerprint, test.fingerprint, layers), make)


def criterion_key(
    fingerprints: Fingerprints, layer: str, chosen: str, name: str, settings: Mapping[str, object]
) -> tuple[object, ...]:
    """Return the key of what a criterion says of tests.

    `chosen` is the `digest` of the tests looked at. `settings` are the criterion's parameters, or for IDC those of the
    analysis and the number `m` of neurons.
    """
    return (*fingerprints, layer, chosen, name, *sorted(settings.items()))
