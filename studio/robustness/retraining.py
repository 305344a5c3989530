"""RQ6 on the page: what is retrained for a setup, and what is finished of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from idc_core.base.progress import Progress
from studio.jobs.results import View
from studio.widgets.retraining import RetrainingRun

if TYPE_CHECKING:
    from idc_core.datasets import Dataset
    from idc_core.experiments.retraining import RetrainingPlan
    from idc_core.experiments.retraining_results import Retraining
    from idc_core.experiments.rq6 import RQ6Settings


@dataclass(frozen=True, eq=False, kw_only=True)
class RQ6Run(RetrainingRun):
    """RQ6 on the tests of a setup."""

    view: View
    settings: RQ6Settings
    tests: Dataset

    @cached_property
    def result(self) -> Retraining:
        """The networks finished as this run of the page began."""
        from idc_core.experiments.rq6 import rq6_results

        return rq6_results(self.view.model, self.view.train, self.settings, self.seeds, self.networks)


def rq6_run(view: View, settings: RQ6Settings, seeds: tuple[int, ...]) -> RQ6Run:
    """Return the run of a setup, on the tests that pass the filter; none of it starts by itself."""
    from idc_core.experiments.rq6 import ADDITIONS, run_store

    tests = view.test if len(view.chosen) == len(view.test) else view.test.only(view.chosen)

    def prepare(report: Progress) -> RetrainingPlan:
        from idc_core.analysis.analysis import analyze
        from idc_core.experiments.rq6 import prepare_rq6

        learnt = analyze(
            view.model,
            view.train,
            tests,
            settings.layer,
            settings.m,
            traces=(view.train_traces, view.test_traces.only(view.chosen)),
            on_progress=report,
            **settings.options,
        )
        return prepare_rq6(view.model, view.train, tests, learnt, settings, on_progress=report)

    path = run_store(view.model, view.train, tests, settings).path
    return RQ6Run(path, tuple(ADDITIONS), seeds, prepare, starts=False, view=view, settings=settings, tests=tests)
