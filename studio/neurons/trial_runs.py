"""Two experiments on the important neurons, run once each: silence them, and change the most relevant pixels.

Without what draws the page: a process that does the work loads this module.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idc_core.base.progress import Progress
from studio.jobs.jobs import JobKind, Waiting
from studio.jobs.results import View

if TYPE_CHECKING:
    from idc_core.datasets import Dataset
    from idc_core.experiments.ablation import Ablation
    from idc_core.experiments.rq1 import RQ1, Changes

_TRIALS = JobKind("trials", is_long=True)

_STEPS = 12
"""Numbers of silenced neurons measured, besides none."""

CURVE_DRAWS, DRAWS, MOVED_DRAWS = 5, 39, 79
"""Draws of random neurons for the curve, and for the two numbers that are compared.

Fewer could not stand out among two looks: silencing counts at the lower end alone, moving at both.
"""


def comparable(m: int, neurons: int) -> int:
    """Return how many neurons of a layer can be compared with as many others; 0 where none can."""
    return min(m, neurons // 2)


def _some_tests(view: View, number: int) -> Dataset:
    """Return so many of the chosen tests, at even distances; 0 for all of them."""
    from idc_core.importance.ranking import spread_evenly

    places = view.chosen[spread_evenly(len(view.chosen), number or len(view.chosen))]
    test = view.test
    return replace(
        test,
        inputs=test.inputs[places],
        targets=test.targets[places],
        ids=test.ids[places],
        texts=tuple(test.texts[place] for place in places) if test.texts else (),
    )


def silence(view: View, order: NDArray[np.int64], number: int) -> tuple[Ablation, Ablation]:
    """Measure the network with the first neurons of a ranking silenced, and with random ones.

    `order` has all neurons, the first one to be silenced first; `number` is how many tests, 0 for all. The first result
    reaches up to half of the layer, the second one has many draws of as many random neurons as are important.
    """
    from idc_core.experiments.random_neurons import seeds_of_draws

    m, most = comparable(view.analysis.m, len(order)), len(order) // 2
    counts = np.union1d(np.linspace(0, most, min(most, _STEPS) + 1).round().astype(np.int64), [m])
    waiting = Waiting(2)
    curve = _ablate(waiting, view, order[:most], number, tuple(counts.tolist()), tuple(range(CURVE_DRAWS)))
    return curve, _ablate(waiting, view, order[:m], number, (m,), seeds_of_draws(order[:m], len(order), DRAWS))


def _ablate(
    waiting: Waiting, view: View, order: NDArray[np.int64], number: int, counts: tuple[int, ...], seeds: tuple[int, ...]
) -> Ablation:
    """Measure the network with some numbers of the first neurons silenced, and with draws of random ones."""

    def work(report: Progress) -> Ablation:
        from idc_core.experiments.ablation import ablate

        tests = _some_tests(view, number)
        return ablate(
            view.model,
            tests.inputs,
            tests.targets,
            view.setup.layer,
            order,
            counts,
            seeds,
            task=tests.task,
            on_progress=report,
        )

    key = ("ablation", *_key(view, number), tuple(order.tolist()), counts, seeds)
    return waiting.get(_TRIALS, key, "silencing neurons", work)


def move(view: View, order: NDArray[np.int64], number: int, share: int) -> RQ1:
    """Change the most relevant part of tests, and compare how far the first neurons of a ranking and others move.

    `share` is the per cent of an input that are changed; `order` and `number` are as in `silence`.
    """
    from idc_core.experiments.random_neurons import seeds_of_draws
    from idc_core.experiments.rq1 import compare_neurons

    def work(report: Progress) -> Changes:
        from idc_core.experiments.rq1 import measure

        return measure(view.model, _some_tests(view, number), view.setup.layer, share=share / 100, on_progress=report)

    changes = Waiting(1).get(_TRIALS, ("rq1", *_key(view, number), share), "changing the most relevant pixels", work)
    first = order[: comparable(view.analysis.m, len(order))]
    return compare_neurons(changes, first, seeds_of_draws(first, len(order), MOVED_DRAWS))


def _key(view: View, number: int) -> tuple[object, ...]:
    return *view.key, view.setup.layer, view.chosen_key, number
