"""One analysis, kept under the same key by whoever asks for it: the dashboard, the command line, a notebook."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from idc_core import store
from idc_core.base.progress import Progress
from idc_core.coverage.idc_settings import IdcSettings
from idc_core.runs.planned import Planned, planned_traces
from idc_core.runs.settings import settings_of
from idc_core.work import Here, Source

if TYPE_CHECKING:
    from idc_core.analysis.result import Analysis
    from idc_core.datasets import Dataset
    from idc_core.models import ModelCard, Network
    from idc_core.tracing.traces import Traces
    from idc_core.work.executor import OpenExecutor

    OpenModel = Callable[[], Network]

Sources = tuple[Source, Source]
"""Training inputs and tests."""

_KIND = "analysis"


@dataclass(frozen=True, eq=False)
class PlannedAnalysis:
    """An analysis that is to be made or found: what it is of, and how IDC is measured.

    `parts` says whether less than all training inputs that are usual, or tests, are used.
    """

    card: ModelCard
    train: Dataset
    test: Dataset
    layer: str
    m: int = 6
    idc: IdcSettings = field(default_factory=IdcSettings.of)
    parts: bool = False

    @property
    def key(self) -> tuple[object, ...]:
        """Everything that it depends on; a setting at its usual value is as if it were not given."""
        fingerprints = (self.card.fingerprint, self.train.fingerprint, self.test.fingerprint)
        return (*fingerprints, self.layer, self.m, *sorted(self.idc.unusual.items()))

    @property
    def settings(self) -> dict[str, object]:
        """What a list of runs says of it."""
        named = (self.card, self.train, self.test, self.layer, self.m)
        return settings_of(*named, of_part=self.parts, **self.idc.unusual)

    @property
    def traced_alike(self) -> bool:
        """Whether relevance follows the usual rule, so that the traces of `traces` are its own."""
        return not self.idc.unusual.keys() - self.idc.options.keys()

    def sources(self, open_model: OpenModel) -> Sources:
        """Return training inputs and tests as this process has them; `open_model` gives the network."""
        return Source.here(self.card, open_model, self.train), Source.here(self.card, open_model, self.test)

    def traces(
        self, sources: Sources, open_executor: OpenExecutor = Here, on_progress: Progress | None = None
    ) -> tuple[Traces, Traces]:
        """Return what the layer shows on the training inputs and on the tests, with the usual rule; kept, or made."""
        train, test = (planned_traces(source, self.layer, open_executor) for source in sources)
        return train.kept(on_progress), test.kept(on_progress)

    def planned(
        self, sources: Sources, open_executor: OpenExecutor = Here, traces: tuple[Traces, Traces] | None = None
    ) -> Planned[Analysis]:
        """Plan the analysis.

        Parameters
        ----------
        sources : pair of Source
            Training inputs and tests, as this process has them.
        open_executor : callable, optional
            Opens what runs them where the analysis is not kept.
        traces : pair of Traces, optional
            As `analyze` takes them.
        """

        def make(on_progress: Progress | None) -> Analysis:
            from idc_core.work.analysis import analyze_tests

            result = store.place(_KIND, self.key)
            with (Here if traces else open_executor)() as executor:  # nothing runs again
                return analyze_tests(
                    executor,
                    *sources,
                    self.layer,
                    self.m,
                    self.idc,
                    traces=traces,
                    unfinished=(store.Unfinished(result, "train"), store.Unfinished(result, "test")),
                    on_progress=on_progress,
                )

        return Planned(_KIND, self.key, make, self.settings, self._misfit)

    def _misfit(self, found: Analysis) -> str:
        expected = self.layer, self.m, len(self.test)
        held = found.layer, found.m, len(found.predictions)
        fits = held == expected and len(found.train_activations) <= len(self.train)
        return (
            "" if fits else f"is not of {self.layer!r}, m = {self.m}, {len(self.train):,} and {len(self.test):,} inputs"
        )
