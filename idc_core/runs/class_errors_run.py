"""Class errors, kept under the same key by whoever asks for them: the dashboard and the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from idc_core.base.parameters import Parameter, option, options_among
from idc_core.base.progress import Progress
from idc_core.base.ranges import SCALED
from idc_core.runs.planned import Planned, planned_statistics
from idc_core.work import Here, Source

if TYPE_CHECKING:
    from idc_core.confusion import ClassErrors, Evidence
    from idc_core.confusion.report import Kind
    from idc_core.work.executor import OpenExecutor


_DEVIATIONS = Parameter(
    "deviations",
    "Cut-offs (SD from the mean)",
    "Pairs are reported so many standard deviations below the mean distance, or above the mean bias. Labels confirm "
    "them as far above the mean confusion, or disparity, of all pairs.",
    1.0,
)

_NORMALISE = Parameter(
    "normalise",
    "Normalise distances",
    "Divides a distance by the square root of the number of neurons that either class activates, as in the published "
    "tables. The paper's equation (2) does not.",
    False,
)

_FILTERED = Parameter(
    "filtered", "Near third classes only", "For bias: a third class far from both counts as 0, as in the paper.", True
)


@dataclass(frozen=True)
class ErrorSettings:
    """How classes are compared: layers whose neurons count, thresholds, forms, and groups as the person wrote them."""

    layers: tuple[str, ...] = ()
    threshold: float = option(
        0.5, "scaled output above which a neuron is active", SCALED, key="activation", slider=(0.05, 0.95, 0.05)
    )
    deviations: float = option(1.0, "", _DEVIATIONS, key="deviations", slider=(0, 3, 0.25))
    normalise: bool = option(
        False,
        "divide distances by the root of the neurons that either class activates, as published",
        _NORMALISE,
        key="normalise",
    )
    filtered: bool = option(
        True, "average bias over all third classes, also far ones", _FILTERED, "unfiltered", key="near"
    )
    kind: Kind | None = None
    groups: str = ""

    @property
    def told(self) -> dict[str, object]:
        """What a list of runs says of them."""
        settings = {**vars(self), "groups": "; ".join(self.groups.splitlines())}
        settings["counted_layers"] = settings.pop("layers")
        return {name: value for name, value in settings.items() if value not in (None, "")}


CLASS_ERRORS = options_among(ErrorSettings)
"""Thresholds and forms of the comparison."""


def class_evidence(
    source: Source,
    layers: tuple[str, ...],
    threshold: float,
    class_names: Sequence[str],
    open_executor: OpenExecutor = Here,
    on_progress: Progress | None = None,
) -> Evidence:
    """Return predictions for tests, and which neurons of some layers they activate, of what this process has.

    In one piece, what the neurons showed is kept, for any other threshold; by blocks only the counts come here.
    """
    from idc_core.confusion import counted_evidence, network_evidence
    from idc_core.work.class_errors import count_classes

    with open_executor() as executor:
        opened = Here().open(source)
        model, data = opened.model, opened.data
        if isinstance(executor, Here):
            statistics = planned_statistics(model.card, lambda: model, data, layers).kept(on_progress)
            return network_evidence(statistics, data, class_names)
        counted = count_classes(executor, source, layers, threshold, on_progress=on_progress)
    return counted_evidence(counted.counts, counted.predicted.joined(), data, class_names)


def planned_class_errors(
    gather: Callable[[Progress | None], Evidence],
    settings: ErrorSettings,
    key: tuple[object, ...],
    run: dict[str, object] | None = None,
) -> Planned[ClassErrors]:
    """Plan the comparison of all classes.

    Parameters
    ----------
    gather : callable
        Gives the evidence, with the groups of the settings joined; called where the comparison is not kept.
    settings : ErrorSettings
    key : tuple
        What the evidence depends on: fingerprints of the network and of the tests, and the `digest` of those looked at.
    run : dict, optional
        The settings by which it is listed as a run.
    """

    def make(on_progress: Progress | None) -> ClassErrors:
        from idc_core.confusion import find_errors

        options = {parameter.name: getattr(settings, parameter.name) for parameter in CLASS_ERRORS}
        return find_errors(gather(on_progress), kind=settings.kind, on_progress=on_progress, **options)

    return Planned("class-errors", (*key, settings), make, run)
