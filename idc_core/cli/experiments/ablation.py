"""Records of the ablation: what a network can do with neurons silenced."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from idc_core.cli.experiments.base import PAPER, Experiment, Record, bench

if TYPE_CHECKING:
    from idc_core.progress import Progress


def run(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Silence neurons of one network: one record for each number of neurons, from none to m."""
    from idc_core.experiments.ablation import ablate

    ready = bench(arguments, name, on_progress)
    result = ablate(
        ready.model,
        ready.test,
        ready.test.targets,
        ready.layer,
        ready.ranking[: arguments.m[0]],
        range(arguments.m[0] + 1),
        arguments.seeds,
        task=ready.test.task,
        on_progress=on_progress,
    )
    rows = (result.counts, result.important, result.random_mean, result.random_low, result.random_high)
    return [
        ready.about
        | {
            "unit": result.unit,
            "silenced": int(count),
            "important": float(own),
            "random": float(mean),
            "lowest": float(low),
            "highest": float(high),
        }
        for count, own, mean, low, high in zip(*rows, strict=True)
    ]


EXPERIMENT = Experiment(
    "ablation",
    "what does silencing the most important neurons cost, beside silencing as many random ones?",
    PAPER,
    ("model", "layer", "tests", "unit", "silenced", "important", "random", "lowest", "highest"),
    run,
)
