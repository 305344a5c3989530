"""Records of RQ2 to RQ5: suites, criteria and layers, all read from the same finished units."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from idc_core.cli.experiments.base import PAPER, Experiment, Record

if TYPE_CHECKING:
    from idc_core.experiments.criterion_scores import Readings
    from idc_core.progress import Progress


def _readings(arguments: argparse.Namespace, name: str, on_progress: Progress) -> tuple[Readings, Record]:
    from idc_core.analysis.layer_sweep import check_ms
    from idc_core.datasets import load_dataset
    from idc_core.experiments.criterion_scores import MOST, Readings
    from idc_core.models import load_model

    ms = check_ms(arguments.m)
    model = load_model(name)
    train = load_dataset(model.card.dataset, "train", arguments.limit_train, on_progress=on_progress)
    test = load_dataset(model.card.dataset, "test", arguments.limit, on_progress=on_progress)
    readings = Readings(
        model, train, test, rule=arguments.rule, most=max(MOST, *ms), fresh=arguments.fresh, on_progress=on_progress
    )
    about: Record = {"model": name, "layer": readings.layer, "train": len(train), "tests": len(test)}
    return readings, about | {"rule": arguments.rule, "fingerprint": model.card.fingerprint}


def run_rq2(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Return a record a suite and number of neurons."""
    from idc_core.experiments.rq2 import rq2

    readings, about = _readings(arguments, name, on_progress)
    return [about | row for row in rq2(readings, arguments.seeds, arguments.m, arguments.share)]


def run_rq3(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Return a record a number of tests, suite and criterion."""
    from idc_core.experiments.rq3 import rq3

    readings, about = _readings(arguments, name, on_progress)
    rows = rq3(
        readings, arguments.seeds, arguments.m, slow=arguments.attacked, paper_cw=arguments.cw, share=arguments.share
    )
    return [about | row for row in rows]


def run_rq4(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Return a record a set of points, criterion and number of neurons."""
    from idc_core.experiments.rq4 import rq4

    readings, about = _readings(arguments, name, on_progress)
    return [about | row for row in rq4(readings, arguments.m, arguments.share)]


def run_rq5(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Return a record a suite, layer and number of neurons."""
    from idc_core.experiments.rq5 import rq5

    readings, about = _readings(arguments, name, on_progress)
    return [about | row for row in rq5(readings, arguments.seeds, arguments.m, arguments.share)]


EXPERIMENTS = (
    Experiment(
        "rq2",
        "is coverage raised more by noise on the pixels that decide than by noise on random ones?",
        PAPER,
        ("model", "suite", "m", "inputs", "seeds", "total", "covered", "idc", "idc_deviation", "alone", "achieved"),
        run_rq2,
        (6, 8, 10, 12),
    ),
    Experiment(
        "rq3",
        "do adversarial suites raise coverage, by this criterion and by others?",
        PAPER,
        (
            "model",
            "tests",
            "suite",
            "achieved",
            "criterion",
            "original",
            "together",
            "together_deviation",
            "alone",
            "note",
        ),
        run_rq3,
        (6, 12),
    ),
    Experiment(
        "rq4",
        "do other criteria rank suites and random subsets as this one does?",
        PAPER,
        ("model", "points", "m", "criterion", "spearman", "kendall"),
        run_rq4,
        (6, 12),
    ),
    Experiment(
        "rq5",
        "how does coverage depend on the layer?",
        PAPER,
        ("model", "suite", "layer", "m", "used", "total", "covered", "idc", "idc_deviation", "alone"),
        run_rq5,
        (4, 6),
    ),
)
