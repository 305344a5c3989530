"""Records of RQ1: how far important neurons move, beside random ones."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from idc_core.cli.experiments.base import PAPER, Experiment, Record, bench

if TYPE_CHECKING:
    from idc_core.experiments.rq1 import RQ1
    from idc_core.progress import Progress


def run(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Answer RQ1 for one network: one record with distances as they are, one in standard deviations."""
    from idc_core.experiments.rq1 import rq1

    ready = bench(arguments, name, on_progress)
    result = rq1(
        ready.model,
        ready.test,
        ready.layer,
        ready.ranking[: arguments.m[0]],
        rule=arguments.rule,
        share=arguments.share,
        seeds=arguments.seeds,
        on_progress=on_progress,
    )
    about = ready.about | {
        "m": arguments.m[0],
        "share": arguments.share,
        "changed": float(result.changed.mean()),
        "constant": result.constant,
    }
    return [about | _figures(result, scaled) for scaled in (False, True)]


def _figures(result: RQ1, scaled: bool) -> Record:
    found = result.summary(scaled)
    _, others = result.distances(scaled)
    return {
        "unit": "deviations" if scaled else "activation",
        "important": found.important.mean,
        "random": found.random.mean,
        "ratio": found.ratio,
        "share_more": found.share_more,
        "effect": found.effect,
        "seeds_won": f"{found.seeds_won} of {len(result.seeds)}",
        **{f"important_{key}": value for key, value in asdict(found.important).items() if key != "mean"},
        **{f"random_{key}": value for key, value in asdict(found.random).items() if key != "mean"},
        **{f"random_seed_{seed}": float(row.mean()) for seed, row in zip(result.seeds, others, strict=True)},
    }


EXPERIMENT = Experiment(
    "rq1",
    "do important neurons move more than random ones when an input's most relevant pixels change?",
    PAPER,
    ("model", "layer", "tests", "m", "unit", "important", "random", "ratio", "share_more", "effect", "seeds_won"),
    run,
)
