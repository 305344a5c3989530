"""`inspect`: the affinity of every unit, or group of units, with every hypothesis, by every measure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.base.progress import Progress
from idc_core.datasets import Dataset
from idc_core.errors import CancelledError, SettingError
from idc_core.inspection.blocks import BlockStore
from idc_core.inspection.extraction import Stream
from idc_core.inspection.hypothesis import Hypothesis
from idc_core.inspection.measures import PairMeasure
from idc_core.inspection.pairwise import PairRun, StoppingRule
from idc_core.inspection.planning import Job, Measure, Speed, plan
from idc_core.inspection.probes import GroupMeasure, ProbeRun
from idc_core.inspection.result import WHOLE_GROUP, Inspection, ScoreRows, names_of
from idc_core.inspection.resume import ExtractionState, Reading

_EVERY_UNIT = "all units"
"""The group that is probed unless others are given."""


def inspect(
    models: str | nn.Module | Sequence[str] | Mapping[str, nn.Module],
    dataset: Dataset,
    hypotheses: Sequence[Hypothesis],
    measures: Sequence[str | Measure] = ("pearson",),
    layers: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    groups: Mapping[str, Sequence[int]] | None = None,
    *,
    speed: Speed | None = None,
    reading: Reading | None = None,
    on_progress: Progress | None = None,
    on_scores: Callable[[Inspection], None] | None = None,
    **options: object,
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
    speed : Speed, optional
        Optimisations to switch off.
    reading : Reading, optional
        Goes on with what an earlier call has read, and holds what this one reads, also where it is stopped.
    on_progress : Progress, optional
        Called with records read, and with passes of training.
    on_scores : callable, optional
        Called now and then with the scores of single units so far.
    **options
        How records are read: the fields of `idc_core.base.ranges.InspectOptions`, such as ``error=0.05, seed=1``.

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
        speed=speed,
        on_progress=on_progress,
        on_scores=on_scores,
        **options,
    )
    return inspect_as_planned(job, reading)


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

    lines.parts += part.read(job.options, tell if job.on_scores else None).parts
    for measure in measures:
        if isinstance(measure, GroupMeasure):
            _run_probes(job, stream, measure, lines)


def state_of(job: Job, hypotheses: Sequence[Hypothesis], measures: Sequence[Measure]) -> ExtractionState:
    """Return the state of what shares one extraction, before anything is read."""
    store = None
    if any(isinstance(measure, GroupMeasure) for measure in measures):
        store = BlockStore((1 << 62) if job.speed.memory is None else job.speed.memory)
    stream = Stream(job.models, job.layers, job.dataset, hypotheses, job.order, store, job.speed.cache)
    single = [measure for measure in measures if isinstance(measure, PairMeasure)]
    return ExtractionState(stream, _pair_runs(job, stream, single))


def _same_kind(hypotheses: Sequence[Hypothesis], measures: Iterable[Measure]) -> list[tuple[int, NDArray[np.int64]]]:
    """Group the hypotheses that measures can see by their number of classes."""
    kinds = {kind for measure in measures for kind in measure.kinds}
    groups: dict[tuple[str, int], list[int]] = {}
    for at, hypothesis in enumerate(hypotheses):
        if hypothesis.kind in kinds:
            groups.setdefault((hypothesis.kind, hypothesis.classes), []).append(at)
    return [
        ({"binary": 2, "classes": classes}.get(kind, 0), np.array(which, np.int64))
        for (kind, classes), which in groups.items()
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
        groups = job.groups if job.groups is not None else {_EVERY_UNIT: range(count)}
        for name, group in groups.items():
            units = tuple(int(unit) for unit in group)
            if not units or len(set(units)) != len(units) or not 0 <= min(units) <= max(units) < count:
                raise SettingError(f"Group {name!r} must hold different units of 0..{count - 1} of {place[1]}.")
            for classes, which in _same_kind(stream.hypotheses, (measure,)):
                pieces = [which] if job.speed.together else [which[at : at + 1] for at in range(len(which))]
                scores = len(which) * len(groups)
                sure = StoppingRule(job.options.error, job.options.confidence, scores, len(job.order))
                for piece in pieces:
                    run = ProbeRun(stream, place, units, piece, classes, measure, job.options.passes, job.on_progress)
                    _write_probes(run, name, sure, lines)


def _write_probes(run: ProbeRun, group: str, sure: StoppingRule, lines: ScoreRows) -> None:
    probed = run.run(sure)
    for at, column in enumerate(run.which):
        common: dict[str, object] = {
            "model": run.place[0],
            "layer": run.place[1],
            "group": group,
            "measure": run.measure.name,
            "hypothesis": run.stream.hypotheses[int(column)].name,
            "records": probed.records[at],
            "remark": run.unscored(int(column)) if np.isnan(probed.score[at]) else "",
        }
        score, half = probed.score[at], probed.half_width[at]
        lines.add(
            1,
            unit=WHOLE_GROUP,
            score=score,
            low=score - half,
            high=score + half,
            margin=probed.margin[at],
            p_value=probed.p_value[at],
            **common,
        )
        if run.measure.loss is not None:
            nothing = dict.fromkeys(("low", "high", "margin", "p_value"), np.nan)
            lines.add(len(run.units), unit=np.array(run.units), score=probed.weights[at], **nothing, **common)
