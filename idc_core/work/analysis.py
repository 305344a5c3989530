"""The whole method: an `Analysis` as `analyze` makes it, of inputs that the executor reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from idc_core.analysis.analysis import Measured, analyze, assembled, timed
from idc_core.coverage.idc import IDC
from idc_core.work.criteria import fit_idc
from idc_core.work.local import Here
from idc_core.work.traces import trace_inputs

if TYPE_CHECKING:
    from idc_core.analysis.result import Analysis
    from idc_core.base.progress import Progress
    from idc_core.coverage.idc_settings import IdcSettings
    from idc_core.importance.training_pass import RankedLayer
    from idc_core.store import Unfinished
    from idc_core.tracing.traces import Traces
    from idc_core.work.executor import Executor
    from idc_core.work.source import Source


def analyze_tests(
    executor: Executor,
    train: Source,
    tests: Source,
    layer: str,
    m: int | None,
    settings: IdcSettings,
    *,
    traces: tuple[Traces, Traces] | None = None,
    unfinished: tuple[Unfinished, Unfinished] | None = None,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
) -> Analysis:
    """Analyse as `analyze` does.

    In one piece relevance is summed over all inputs at once; by blocks only the important neurons' rows come here, and
    sums differ by 1e-6 at most.

    Parameters
    ----------
    executor : Executor
    train, tests : Source
        Training inputs and tests.
    layer, m, settings
        As in `IDC`.
    traces, unfinished
        In one piece, as `analyze` takes them.
    batch_size : int, optional
        By blocks, as in `IDC`.
    on_progress : Progress, optional

    Raises
    ------
    IdcError
        As `analyze`.
    """
    here = Here()
    opened = here.open(tests)
    if isinstance(executor, Here):
        return analyze(
            opened.model,
            here.open(train).data,
            opened.data,
            layer,
            m,
            settings,
            traces=traces,
            unfinished=unfinished,
            on_progress=on_progress,
        )
    criterion, seconds = IDC(opened.model, layer, m, settings), dict[str, float]()
    with timed(seconds, "run the training inputs and cluster"):
        ranked = cast("RankedLayer", fit_idc(executor, criterion, train, batch_size, on_progress, rows=True))
    with timed(seconds, "run the tests"):
        traced = trace_inputs(
            executor,
            tests,
            (layer,),
            settings.relevance,
            only=criterion.important,
            batch_size=batch_size,
            on_progress=on_progress,
        )
    measured = Measured(traced.scores, traced.activations[layer], traced.relevance[layer])
    return assembled(criterion, ranked, opened.data, measured, seconds)
