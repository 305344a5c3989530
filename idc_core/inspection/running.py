"""`inspect`: the affinity of every unit, or group of units, with every hypothesis, by every measure."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from idc_core.datasets import Dataset
from idc_core.errors import CancelledError, DataError, SettingError
from idc_core.inspection.blocks import BUDGET, BlockStore
from idc_core.inspection.extraction import Stream
from idc_core.inspection.hypothesis import Hypothesis
from idc_core.inspection.measures import PAIR_MEASURES, PairMeasure
from idc_core.inspection.pairwise import PairRun, StoppingRule
from idc_core.inspection.probes import GROUP_MEASURES, GroupMeasure, ProbeRun
from idc_core.inspection.result import WHOLE_GROUP, Inspection, ScoreRows, names_of
from idc_core.inspection.resume import ExtractionState, Reading
from idc_core.limits import SEED
from idc_core.models.weights import fingerprint
from idc_core.progress import Progress

Measure = PairMeasure | GroupMeasure

MEASURES: ChainMap[str, Any] = ChainMap(GROUP_MEASURES, PAIR_MEASURES)
"""All measures by name: those of one unit, then those of groups; whatever enters one of the two registries is here."""

PILOT = 1024
"""Records from which thresholds, bins and ranks are taken."""

EVERY_UNIT = "all units"
"""The group that is probed unless others are given."""


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
    error: float | None
    confidence: float
    pilot: int
    passes: int
    speed: Speed
    on_progress: Progress | None
    on_scores: Callable[[Inspection], None] | None
    about: Mapping[str, Any]
    hypotheses: Sequence[Hypothesis]
    measures: Sequence[Measure]


def find_measure(measure: str | Measure) -> Measure:
    """Return a measure by name; SettingError if there is none."""
    if not isinstance(measure, str):
        return measure
    if measure not in MEASURES:
        raise SettingError(f"Unknown measure {measure!r}: expected one of {', '.join(MEASURES)}.")
    found: Measure = MEASURES[measure]
    return found


def inspect(
    models: str | nn.Module | Sequence[str] | Mapping[str, nn.Module],
    dataset: Dataset,
    hypotheses: Sequence[Hypothesis],
    measures: Sequence[str | Measure] = ("pearson",),
    layers: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    groups: Mapping[str, Sequence[int]] | None = None,
    *,
    error: float | None = None,
    confidence: float = 0.95,
    records: int | None = None,
    seed: int = 0,
    pilot: int = PILOT,
    passes: int = 300,
    speed: Speed | None = None,
    reading: Reading | None = None,
    on_progress: Progress | None = None,
    on_scores: Callable[[Inspection], None] | None = None,
) -> Inspection:
    """Score how strongly units, and groups of units, correlate with hypotheses.

    Parameters
    ----------
    models : str, Module, sequence of str, or mapping of str to Module
        Networks of the registry by name, or a person's own.
    dataset : Dataset
    hypotheses : sequence of Hypothesis
        With different names.
    measures : sequence of str or measures
        Keys of `MEASURES`, or such a measure with settings of its own. A measure skips hypotheses of other kinds.
    layers : sequence of str, or mapping of str to sequence of str, optional
        For all models, or for each; each network's default layer unless given. A layer with units at every symbol or
        pixel is compared place by place; padding of texts is left out.
    groups : mapping of str to sequence of int, optional
        Units that are probed together, by name; all units of a layer unless given.
    error : float, optional
        Stop once every score is within this of its value on all records, or has none because what it needs is in surely
        fewer than 1 in 100 records. None reads all.
    confidence : float
        Of intervals and of `error`.
    records : int, optional
        Read at most so many, drawn at random: the first ones of the order. None reads all.
    seed : int
        Fixes the order in which records are read, and with it thresholds and held-out records.
    pilot : int
        The first so many records give thresholds, bins, ranks and ranges.
    passes : int
        Passes of a probe's training over its records, at most.
    speed : Speed, optional
        Optimisations to switch off.
    reading : Reading, optional
        Goes on with what an earlier call has read, and holds what this one reads, also where it is stopped.
    on_progress : Progress, optional
        Called with records read, and with passes of training.
    on_scores : callable, optional
        Called now and then with the scores of single units so far.

    Raises
    ------
    SettingError, ModelError, DataError
        If a setting is out of range, names are not unique, or no measure accepts any hypothesis; if a network or layer
        does not exist; if a hypothesis does not fit the records or a layer, or there are no records.

    Notes
    -----
    T. Sellam, K. Lin, I. Y. Huang, M. Yang, C. Vondrick, E. Wu, DeepBase: Deep Inspection of Neural Networks, SIGMOD
    2019. Intervals come from the jackknife over groups of records instead of Fisher's transformation, because
    symbols of one record are not independent. Probes stop when the jackknife's bound on the held-out score and its
    change since half the records allow it; a probe without a mistake on few records where the hypothesis holds is
    bounded by the rule of three.
    """
    job = plan(
        models,
        dataset,
        hypotheses,
        measures,
        layers,
        groups,
        error=error,
        confidence=confidence,
        records=records,
        seed=seed,
        pilot=pilot,
        passes=passes,
        speed=speed,
        on_progress=on_progress,
        on_scores=on_scores,
    )
    return inspect_as_planned(job, reading)


def plan(
    models: str | nn.Module | Sequence[str] | Mapping[str, nn.Module],
    dataset: Dataset,
    hypotheses: Sequence[Hypothesis],
    measures: Sequence[str | Measure] = ("pearson",),
    layers: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    groups: Mapping[str, Sequence[int]] | None = None,
    *,
    error: float | None = None,
    confidence: float = 0.95,
    records: int | None = None,
    seed: int = 0,
    pilot: int = PILOT,
    passes: int = 300,
    speed: Speed | None = None,
    on_progress: Progress | None = None,
    on_scores: Callable[[Inspection], None] | None = None,
) -> Job:
    """Check what is asked of `inspect`, and return everything that it needs; nothing is read yet."""
    speed = speed or Speed()
    found = _models(models)
    chosen = [find_measure(measure) for measure in measures]
    _check(dataset, hypotheses, chosen, error, confidence, seed, pilot, records)
    order = np.random.default_rng(seed).permutation(len(dataset))[:records].astype(np.int64)
    chosen_layers = _layers(found, layers)
    about = {
        "dataset": dataset.name,
        "split": dataset.split,
        "dataset_fingerprint": dataset.fingerprint,
        "dataset_records": len(dataset),
        "records": len(order),
        "seed": seed,
        "error": error,
        "confidence": confidence,
        "pilot": pilot,
        "models": {name: fingerprint(model) for name, model in found.items()},
        "layers": {name: list(names) for name, names in chosen_layers.items()},
        "measures": {one.name: _settings(one) for one in chosen},
        "groups": {} if groups is None else {name: list(map(int, group)) for name, group in groups.items()},
        "speed": asdict(speed),
        "versions": {"torch": torch.__version__, "numpy": np.__version__},
    }
    return Job(
        found,
        chosen_layers,
        dataset,
        order,
        groups,
        error if speed.early else None,
        confidence,
        pilot,
        passes,
        speed,
        on_progress,
        on_scores,
        about,
        hypotheses,
        chosen,
    )


def inspect_as_planned(job: Job, reading: Reading | None = None) -> Inspection:
    """Score what is planned, as `inspect` does."""
    about, order, hypotheses = job.about, job.order, job.hypotheses
    held, whole = Reading() if reading is None else reading, False
    held.begin({**about, "hypotheses": names_of(hypotheses)}, order)
    lines, units = ScoreRows(), {}
    try:
        for number, (some, few) in enumerate(_parts(job.measures, hypotheses, job.speed.share)):
            if number not in held.parts:
                held.parts[number] = state_of(job, few, some)
            _run(job, held.parts[number], some, lines)
            units = held.parts[number].stream.units()
            if reading is None:
                held.parts.pop(number).close()
        whole = True
    except CancelledError:
        whole = True
        raise
    finally:
        if whole and reading is not None:
            held.rest()
        else:
            held.close()
    return Inspection(lines.table(), units, names_of(hypotheses), about)


def _settings(measure: Measure) -> dict[str, float]:
    if isinstance(measure, PairMeasure):
        return dict(measure.settings)
    return {"strength": max(measure.l1, measure.l2)} if measure.loss is not None else {}


def _models(models: Any) -> dict[str, nn.Module]:
    from idc_core.models import load_model

    if isinstance(models, str):
        return {models: load_model(models)}
    if isinstance(models, nn.Module):
        return {getattr(getattr(models, "card", None), "name", "model"): models}
    found = dict(models) if isinstance(models, Mapping) else {name: load_model(name) for name in models}
    if not found:
        raise SettingError("There is no model to inspect: name at least one.")
    return found


def _layers(models: Mapping[str, nn.Module], layers: Any) -> dict[str, tuple[str, ...]]:
    found = {}
    for name, model in models.items():
        own = layers.get(name) if isinstance(layers, Mapping) else layers
        if own is None:
            card = getattr(model, "card", None)
            if card is None:
                raise SettingError(f"{name} has no default layer: name the layers to inspect.")
            own = (card.default_layer,)
        found[name] = tuple(dict.fromkeys((own,) if isinstance(own, str) else own))
    return found


def _check(
    dataset: Dataset,
    hypotheses: Sequence[Hypothesis],
    measures: Sequence[Measure],
    error: float | None,
    confidence: float,
    seed: int,
    pilot: int,
    records: int | None,
) -> None:
    if not len(dataset):
        raise DataError("The data set has no records to inspect on.")
    names = [one.name for one in hypotheses]
    twice = sorted({name for name in names if names.count(name) > 1})
    if not names or twice:
        raise SettingError(
            f"Hypotheses must have names of their own; {', '.join(twice)} are there twice."
            if twice
            else "There is no hypothesis to inspect: give at least one."
        )
    if not any(one.kind in measure.kinds for one in hypotheses for measure in measures):
        raise SettingError("No measure can see any of these hypotheses; choose measures for their kinds.")
    if error is not None and not error > 0:
        raise SettingError(f"The error must be above 0, or None to read everything, not {error!r}.")
    if not 0.5 <= confidence < 1:
        raise SettingError(f"The confidence must be at least 0.5 and below 1, not {confidence!r}.")
    SEED.check(seed)
    if pilot < 1:
        raise SettingError(f"The pilot must have at least one record, not {pilot!r}.")
    if records is not None and records < 1:
        raise SettingError(f"The records to read must be at least 1, or None for all, not {records!r}.")


def _parts(
    measures: Sequence[Measure], hypotheses: Sequence[Hypothesis], share: bool
) -> Iterator[tuple[Sequence[Measure], Sequence[Hypothesis]]]:
    """Yield what is computed from one extraction: everything, or one measure and hypothesis at a time."""
    if share:
        yield measures, hypotheses
        return
    for measure in measures:
        for hypothesis in hypotheses:
            if hypothesis.kind in measure.kinds:
                yield (measure,), (hypothesis,)


def _run(job: Job, part: ExtractionState, measures: Sequence[Measure], lines: ScoreRows) -> None:
    """Compute scores that share one extraction."""
    stream = part.stream
    stream.on_progress = job.on_progress

    def tell(now: ScoreRows) -> None:
        if job.on_scores is not None:
            every = ScoreRows([*lines.parts, *now.parts])
            job.on_scores(Inspection(every.table(), stream.units(), names_of(stream.hypotheses), job.about))

    lines.parts += part.read(job.error, job.confidence, job.pilot, tell if job.on_scores else None).parts
    for measure in measures:
        if isinstance(measure, GroupMeasure):
            _run_probes(job, stream, measure, lines)


def state_of(job: Job, hypotheses: Sequence[Hypothesis], measures: Sequence[Measure]) -> ExtractionState:
    """Return the state of what shares one extraction, before anything is read."""
    store = None
    if any(isinstance(one, GroupMeasure) for one in measures):
        store = BlockStore((1 << 62) if job.speed.memory is None else job.speed.memory)
    stream = Stream(job.models, job.layers, job.dataset, hypotheses, job.order, store, job.speed.cache)
    single = [one for one in measures if isinstance(one, PairMeasure)]
    return ExtractionState(stream, _pair_runs(job, stream, single))


def _same_kind(hypotheses: Sequence[Hypothesis], measures: Iterable[Measure]) -> list[tuple[int, NDArray[np.int64]]]:
    """Group the hypotheses that measures can see by their number of classes."""
    kinds = {kind for measure in measures for kind in measure.kinds}
    found: dict[tuple[str, int], list[int]] = {}
    for at, one in enumerate(hypotheses):
        if one.kind in kinds:
            found.setdefault((one.kind, one.classes), []).append(at)
    return [
        ({"binary": 2, "classes": classes}.get(kind, 0), np.array(which, np.int64))
        for (kind, classes), which in found.items()
    ]


def _pair_runs(job: Job, stream: Stream, measures: Sequence[PairMeasure]) -> list[PairRun]:
    """Return one run for every layer, encoder and number of classes."""
    places = [(model, layer) for model, layers in job.layers.items() for layer in layers]
    shared: dict[tuple[object, ...], list[PairMeasure]] = {}
    for measure in measures:
        key = measure.key if job.speed.share else (measure.name, *measure.key)
        shared.setdefault((*key, measure.kinds), []).append(measure)
    runs = []
    for some in shared.values():
        for _, which in _same_kind(stream.hypotheses, some):
            runs += [PairRun(place, stream.hypotheses, which, some, job.speed.together) for place in places]
    return runs


def _run_probes(job: Job, stream: Stream, measure: GroupMeasure, lines: ScoreRows) -> None:
    for place in [(model, layer) for model, layers in job.layers.items() for layer in layers]:
        count = stream.block(0).units[place].shape[1]
        groups = job.groups if job.groups is not None else {EVERY_UNIT: range(count)}
        for name, group in groups.items():
            units = tuple(int(unit) for unit in group)
            if not units or len(set(units)) != len(units) or not 0 <= min(units) <= max(units) < count:
                raise SettingError(f"Group {name!r} must hold different units of 0..{count - 1} of {place[1]}.")
            for classes, which in _same_kind(stream.hypotheses, (measure,)):
                pieces = [which] if job.speed.together else [which[at : at + 1] for at in range(len(which))]
                scores = len(which) * len(groups)
                sure = StoppingRule(job.error, job.confidence, scores, len(job.order))
                for piece in pieces:
                    run = ProbeRun(stream, place, units, piece, classes, measure, job.passes, job.on_progress)
                    _write_probes(run, name, sure, lines)


def _write_probes(run: ProbeRun, group: str, sure: StoppingRule, lines: ScoreRows) -> None:
    found = run.run(sure)
    for at, column in enumerate(run.which):
        common: dict[str, Any] = {
            "model": run.place[0],
            "layer": run.place[1],
            "group": group,
            "measure": run.measure.name,
            "hypothesis": run.stream.hypotheses[int(column)].name,
            "records": found.records[at],
            "remark": run.unscored(int(column)) if np.isnan(found.score[at]) else "",
        }
        score, half = found.score[at], found.half_width[at]
        lines.add(
            1,
            unit=WHOLE_GROUP,
            score=score,
            low=score - half,
            high=score + half,
            margin=found.margin[at],
            p_value=found.p_value[at],
            **common,
        )
        if run.measure.loss is not None:
            nothing = dict.fromkeys(("low", "high", "margin", "p_value"), np.nan)
            lines.add(len(run.units), unit=np.array(run.units), score=found.weights[at], **nothing, **common)


def without(speed: Speed, name: str) -> Speed:
    """Return the optimisations with one of them switched off."""
    off: Any = {name: None if name == "memory" else False}
    return replace(speed, **off)
