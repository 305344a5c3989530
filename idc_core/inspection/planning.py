"""What is asked of an inspection: its settings are checked and its order fixed before anything is read."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from idc_core.base.parameters import is_whole, shown
from idc_core.base.progress import Progress
from idc_core.base.ranges import InspectOptions
from idc_core.datasets import Dataset
from idc_core.errors import DataError, SettingError
from idc_core.inspection.blocks import BUDGET
from idc_core.inspection.hypothesis import Hypothesis
from idc_core.inspection.measures import PAIR_MEASURES, PairMeasure
from idc_core.inspection.probes import GROUP_MEASURES, GroupMeasure
from idc_core.inspection.result import Inspection
from idc_core.lrp.session import layer_names, named_layers
from idc_core.models.weights import fingerprint

Measure = PairMeasure | GroupMeasure

MEASURES: ChainMap[str, Any] = ChainMap(GROUP_MEASURES, PAIR_MEASURES)
"""All measures by name: those of one unit, then those of groups; whatever enters one of the two registries is here."""


@dataclass(frozen=True)
class Speed:
    """What makes a run fast and small; each can be switched off, so that it can be measured.

    Extract units once for all measures and hypotheses (`share`); evaluate a hypothesis once per record (`cache`);
    compute all hypotheses in one matrix product, and all probes in one graph (`together`); stop reading when every
    score is sure enough, where an error is given (`early`). `memory` is how many bytes of units' behaviours stay in
    memory where they are read again; the rest goes to disk, None keeps all.
    """

    share: bool = True
    cache: bool = True
    together: bool = True
    early: bool = True
    memory: int | None = BUDGET


@dataclass(frozen=True, eq=False)
class Job:
    """What all parts of a run have in common."""

    models: Mapping[str, nn.Module]
    layers: Mapping[str, tuple[str, ...]]
    dataset: Dataset
    order: NDArray[np.int64]
    groups: Mapping[str, Sequence[int]] | None
    options: InspectOptions
    speed: Speed
    on_progress: Progress | None
    on_scores: Callable[[Inspection], None] | None
    about: Mapping[str, object]
    hypotheses: Sequence[Hypothesis]
    measures: Sequence[Measure]


def find_measure(measure: str | Measure) -> Measure:
    """Return a measure by name; SettingError if there is none."""
    if not isinstance(measure, str):
        if not isinstance(measure, Measure):
            raise SettingError(f"Expected a measure or the name of one, not {shown(measure)}.")
        return measure
    if measure not in MEASURES:
        raise SettingError(f"Unknown measure {measure!r}: expected one of {', '.join(MEASURES)}.")
    known: Measure = MEASURES[measure]
    return known


def plan(
    models: str | nn.Module | Sequence[str] | Mapping[str, nn.Module],
    dataset: Dataset,
    hypotheses: Sequence[Hypothesis],
    measures: Sequence[str | Measure] = ("pearson",),
    layers: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    groups: Mapping[str, Sequence[int]] | None = None,
    *,
    speed: Speed | None = None,
    on_progress: Progress | None = None,
    on_scores: Callable[[Inspection], None] | None = None,
    **options: Any,
) -> Job:
    """Check what is asked of `inspect`, and return everything that it needs; nothing is read yet."""
    speed = speed or Speed()
    networks = _models(models)
    if not isinstance(measures, Sequence) or isinstance(measures, str):
        raise SettingError(f"Expected a list of measures, not {shown(measures)}.")
    if groups is not None and not (isinstance(groups, Mapping) and all(map(_is_group, groups.values()))):
        raise SettingError(f"Expected lists of units by name as groups, not {shown(groups)}.")
    chosen = [find_measure(measure) for measure in measures]
    _check(dataset, hypotheses, chosen)
    settings = InspectOptions(**options)
    order = np.random.default_rng(settings.seed).permutation(len(dataset))[: settings.records].astype(np.int64)
    chosen_layers = _layers(networks, layers)
    about = {
        "dataset": dataset.name,
        "split": dataset.split,
        "dataset_fingerprint": dataset.fingerprint,
        "dataset_records": len(dataset),
        "records": len(order),
        **{name: getattr(settings, name) for name in ("seed", "error", "confidence", "pilot")},
        "models": {name: fingerprint(model) for name, model in networks.items()},
        "layers": {name: list(names) for name, names in chosen_layers.items()},
        "measures": {chosen_measure.name: _settings(chosen_measure) for chosen_measure in chosen},
        "groups": {} if groups is None else {name: list(map(int, group)) for name, group in groups.items()},
        "speed": asdict(speed),
        "versions": {"torch": torch.__version__, "numpy": np.__version__},
    }
    return Job(
        networks,
        chosen_layers,
        dataset,
        order,
        groups,
        settings if speed.early else replace(settings, error=None),
        speed,
        on_progress,
        on_scores,
        about,
        hypotheses,
        chosen,
    )


def _is_group(units: object) -> bool:
    return isinstance(units, Sequence | np.ndarray) and all(map(is_whole, units))


def _settings(measure: Measure) -> dict[str, float]:
    if isinstance(measure, PairMeasure):
        return dict(measure.settings)
    return {"strength": max(measure.l1, measure.l2)} if measure.loss is not None else {}


def _models(models: object) -> dict[str, nn.Module]:
    from idc_core.models import load_model

    if isinstance(models, str):
        return {models: load_model(models)}
    if isinstance(models, nn.Module):
        return {getattr(getattr(models, "card", None), "name", "model"): models}
    if not isinstance(models, Mapping | Sequence) or not models:
        raise SettingError(f"Expected a model to inspect, or the names of several, not {shown(models)}.")
    networks = dict(models) if isinstance(models, Mapping) else {name: load_model(name) for name in models}
    for model in networks.values():
        named_layers(model)  # refuses what is no network
    return networks


def _layers(
    models: Mapping[str, nn.Module], layers: Sequence[str] | Mapping[str, Sequence[str]] | None
) -> dict[str, tuple[str, ...]]:
    chosen = {}
    for name, model in models.items():
        own = layers.get(name) if isinstance(layers, Mapping) else layers
        if own is None:
            card = getattr(model, "card", None)
            if card is None:
                raise SettingError(f"{name} has no default layer: name the layers to inspect.")
            own = (card.default_layer,)
        chosen[name] = layer_names(own)
        if not chosen[name]:
            raise SettingError(f"No layer of {name} is named: name at least one, or leave layers out.")
    return chosen


def _check(dataset: Dataset, hypotheses: Sequence[Hypothesis], measures: Sequence[Measure]) -> None:
    if not isinstance(hypotheses, Sequence) or not all(isinstance(hypothesis, Hypothesis) for hypothesis in hypotheses):
        raise SettingError(f"Expected a list of hypotheses, as of idc_core.Hypothesis, not {shown(hypotheses)}.")
    if not isinstance(dataset, Dataset):
        raise DataError(f"Expected a data set, as load_dataset gives it, not {shown(dataset)}.")
    if not len(dataset):
        raise DataError("The data set has no records to inspect on.")
    names = [hypothesis.name for hypothesis in hypotheses]
    twice = sorted({name for name in names if names.count(name) > 1})
    if not names or twice:
        raise SettingError(
            f"Hypotheses must have names of their own; {', '.join(twice)} are there twice."
            if twice
            else "There is no hypothesis to inspect: give at least one."
        )
    if not any(hypothesis.kind in measure.kinds for hypothesis in hypotheses for measure in measures):
        raise SettingError("No measure can see any of these hypotheses; choose measures for their kinds.")


def without(speed: Speed, name: str) -> Speed:
    """Return the optimisations with one of them switched off."""
    return replace(speed, memory=None) if name == "memory" else replace(speed, **{name: False})
