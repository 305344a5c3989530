"""Suites that differ by their seed alone: how many cells each adds to the tests, and how they are classified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import nn

from idc_core.analysis.result import Analysis
from idc_core.base.arrays import Floats, Ints
from idc_core.base.progress import Progress, part_of
from idc_core.coverage.idc import IDC
from idc_core.perturbation.guided import places_once
from idc_core.suites.comparison import MS, compare_responses
from idc_core.suites.responses import PartResponses, part_responses
from idc_core.suites.suite import Suite


@dataclass(frozen=True, eq=False)
class SeedGains:
    """What each of several suites adds to the tests.

    `added` (suites, ms) are numbers of cells; `quality` (suites,) is the accuracy on the added inputs, or the root mean
    squared error of a regression; NaN where a suite adds no inputs.
    """

    added: Ints
    quality: Floats


def gains_by_seed(
    model: nn.Module,
    tests: Suite,
    suites: Sequence[Suite],
    learnt: IDC | Analysis,
    ms: Sequence[int] = MS,
    *,
    known: PartResponses,
    on_progress: Progress | None = None,
) -> SeedGains:
    """Measure what each suite adds to the tests, one at a time; errors as `compare_suites`.

    `known` are the responses to the tests, which are of one part.
    """
    (own,) = tests.parts
    important = learnt.important[: max(ms)]
    added, quality = [], []
    with places_once():  # the suites are made of the same inputs
        for place, suite in enumerate(suites):
            progress = part_of(on_progress, place, len(suites))
            responses = {own.fingerprint: known} | {
                part.fingerprint: part_responses(model, part, targets, suite.task, learnt.layer, important, progress)
                for part, targets in suite.parts_with_targets
                if part.fingerprint != own.fingerprint
            }
            result = compare_responses((tests, suite), responses, learnt, ms).suites[1]
            added.append([len(result.cells[m].added) for m in ms])
            worth = result.extra_accuracy if result.extra_rmse is None else result.extra_rmse
            quality.append(np.nan if worth is None else worth)
    return SeedGains(np.array(added, np.int64).reshape(len(suites), len(ms)), np.array(quality, np.float64))
