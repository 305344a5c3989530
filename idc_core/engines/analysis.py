"""The whole method on an engine: an `Analysis` as `analyze` makes it, of inputs that the workers read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from idc_core.analysis.analysis import Measured, assembled, timed
from idc_core.engines.importance import fit_and_rank
from idc_core.engines.traces import collect_on

if TYPE_CHECKING:
    from idc_core.analysis.result import Analysis
    from idc_core.coverage.idc import IDC
    from idc_core.datasets import Dataset
    from idc_core.engines.engine import Engine
    from idc_core.engines.source import Source
    from idc_core.progress import Progress


def analyze_on(
    engine: Engine,
    criterion: IDC,
    train: Source,
    tests: Source,
    test: Dataset,
    *,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
) -> Analysis:
    """Analyse as `analyze` does.

    Parameters
    ----------
    engine : Engine
    criterion : IDC
        Not fitted; the layer, m and all settings.
    train, tests : Source
        What the workers open: training inputs and tests.
    test : Dataset
        The tests that `tests` names, for their classes.
    batch_size : int, optional
        As in `IDC`.
    on_progress : Progress, optional

    Raises
    ------
    IdcError
        As `analyze`.
    """
    seconds: dict[str, float] = {}
    with timed(seconds, "run the training inputs and cluster"):
        ranked = fit_and_rank(engine, criterion, train, batch_size, on_progress)
    with timed(seconds, "run the tests"):
        found = collect_on(
            engine,
            tests,
            (criterion.layer,),
            criterion.settings,
            only=criterion.important,
            batch_size=batch_size,
            on_progress=on_progress,
        )
    measured = Measured(found.scores, found.activations[criterion.layer], found.relevance[criterion.layer])
    return assembled(criterion, ranked, test, measured, seconds)
