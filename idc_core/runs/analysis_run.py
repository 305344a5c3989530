"""One analysis, kept under the same key by whoever asks for it: the dashboard, the command line, a notebook."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from idc_core import store
from idc_core.progress import Progress
from idc_core.runs.planned import Planned, planned_traces
from idc_core.runs.run import ADDRESS, query
from idc_core.runs.settings import settings_of

if TYPE_CHECKING:
    from torch import nn

    from idc_core.analysis.result import Analysis
    from idc_core.datasets import Dataset
    from idc_core.models import ModelCard
    from idc_core.tracing.traces import Traces

    OpenModel = Callable[[], nn.Module]

KIND = "analysis"

_USUAL = {
    "rule": "epsilon",
    "epsilon": 1e-6,
    "priority": "sum",
    "clusters": (2, 3, 4),
    "drop_zeros": False,
    "clustering": "k-means",
    "original": False,
}
"""What `analyze` does where nothing else is said."""

_MOST_SHOWN = 12
"""Important neurons that the dashboard shows at most."""


@dataclass(frozen=True, eq=False)
class PlannedAnalysis:
    """An analysis that is to be made or found: what it is of, and its settings, by the names that `analyze` takes.

    `parts` says whether only a part of the training inputs or of the tests is used that the dashboard does not use.
    """

    card: ModelCard
    train: Dataset
    test: Dataset
    layer: str
    m: int = 6
    options: Mapping[str, Any] = field(default_factory=dict)
    parts: bool = False

    @property
    def key(self) -> tuple[Any, ...]:
        """Everything that it depends on; a setting at its usual value is as if it were not given."""
        fingerprints = (self.card.fingerprint, self.train.fingerprint, self.test.fingerprint)
        return (*fingerprints, self.layer, self.m, *sorted(self._unusual.items()))

    @property
    def settings(self) -> dict[str, Any]:
        """What a list of runs says of it."""
        more = {**self._unusual, ADDRESS: self._address}
        return settings_of(self.card, self.train, self.test, self.layer, self.m, **more)

    @property
    def _unusual(self) -> dict[str, Any]:
        plain = {name: tuple(one) if isinstance(one, list) else one for name, one in self.options.items()}
        return {name: one for name, one in plain.items() if one != _USUAL.get(name)}

    @property
    def _address(self) -> str:
        """The query string that opens it in the dashboard; empty where the dashboard has no such setting."""
        options = self._unusual
        clusters = options.pop("clusters", ())
        zeros = "dropped" if options.pop("drop_zeros", False) else ""
        clustering = options.pop("clustering", "")
        if options or self.parts or len(clusters) > 1 or self.m > _MOST_SHOWN:
            return ""
        return query(
            model=self.card.name,
            data=self.test.name,
            layer=self.layer,
            m=self.m,
            k=clusters[0] if clusters else "",
            zeros=zeros,
            clustering=clustering,
        )

    @property
    def traced_alike(self) -> bool:
        """Whether relevance follows the usual rule, so that the traces of `traces` are its own."""
        return not set(self._unusual) - {"priority", "clusters", "drop_zeros", "clustering", "original"}

    def traces(self, open_model: OpenModel, on_progress: Progress | None = None) -> tuple[Traces, Traces]:
        """Return what the layer shows on the training inputs and on the tests, with the usual rule; kept, or made."""
        train, test = (planned_traces(self.card, open_model, data, self.layer) for data in (self.train, self.test))
        return train.kept(on_progress), test.kept(on_progress)

    def planned(self, open_model: OpenModel, traces: tuple[Traces, Traces] | None = None) -> Planned[Analysis]:
        """Plan the analysis.

        Parameters
        ----------
        open_model : callable
            Gives the network, where it is needed.
        traces : pair of Traces, optional
            As `analyze` takes them.
        """

        def make(on_progress: Progress | None) -> Analysis:
            from idc_core.analysis.analysis import analyze

            result = store.place(KIND, self.key)
            return analyze(
                open_model(),
                self.train,
                self.test,
                self.layer,
                self.m,
                traces=traces,
                unfinished=(store.Unfinished(result, "train"), store.Unfinished(result, "test")),
                on_progress=on_progress,
                **self.options,
            )

        return Planned(KIND, self.key, make, self.settings)
