"""A filled grid, kept under the same key by whoever asks for it: the dashboard and the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idc_core import store
from idc_core.base.progress import Progress
from idc_core.errors import CancelledError, DataError
from idc_core.filling.settings import FillSettings
from idc_core.runs.planned import Planned, digest

if TYPE_CHECKING:
    from torch import nn

    from idc_core.analysis.result import Analysis
    from idc_core.filling import Filling
    from idc_core.runs.analysis_run import PlannedAnalysis

_KIND = "fillings"


def planned_filling(
    plan: PlannedAnalysis,
    open_model: Callable[[], nn.Module],
    analysis: Callable[[Progress | None], Analysis],
    settings: FillSettings,
    voters: Sequence[str] = (),
    chosen: NDArray[np.int64] | None = None,
) -> Planned[Filling]:
    """Plan to fill a grid.

    Stopped or killed, it goes on behind the last way that was tried, when it is asked for again.

    Parameters
    ----------
    plan : PlannedAnalysis
        What the grid is of.
    open_model, analysis : callable
        Give the network, and the analysis as planned, where the result is not kept.
    settings : FillSettings
        The budget.
    voters : sequence of str
        Names of the networks that vote on labels.
    chosen : ndarray of int64, optional
        Positions of the tests that count; default all.
    """
    names = tuple(voters)
    rows = np.arange(len(plan.test), dtype=np.int64) if chosen is None else chosen
    key = (*plan.key, digest(rows), settings, names)

    def make(on_progress: Progress | None) -> Filling:
        from idc_core.filling import fill_grid, fit_judge
        from idc_core.models import load_model

        unfinished = _unfinished(key)
        found = unfinished.find(0)

        def keep(part: Filling) -> None:
            with suppress(DataError):  # without room on the disk it begins anew after a stop
                unfinished.keep(0, part)

        model, data = open_model(), (plan.train, plan.test)
        judging = [load_model(name) for name in names]
        judge = fit_judge(model, plan.layer, *data, judging, seed=settings.seed, on_progress=on_progress)
        filling = fill_grid(
            model,
            analysis(on_progress),
            plan.test if len(rows) == len(plan.test) else plan.test.only(rows),
            judge,
            settings,
            voters=names,
            start=None if found is store.MISSING else found,
            on_progress=on_progress,
            on_found=keep,
        )
        if filling.stopped:
            raise CancelledError("Stopped on request; it goes on when it is asked for again.")
        return filling

    return Planned(_KIND, key, make)


def unfinished_filling(plan: Planned[Filling]) -> Filling | None:
    """Return what a stopped filling has found so far; None where it has not begun or is finished."""
    found: Filling = _unfinished(plan.key).find(0)
    return None if found is store.MISSING else found


def _unfinished(key: tuple[object, ...]) -> store.Unfinished:
    return store.Unfinished(store.place(_KIND, key), "ways")
