"""Records of class errors found by activations, by last-layer weights, and by chance."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from idc_core.cli.experiments.base import Experiment, Record, load

if TYPE_CHECKING:
    from idc_core.base.progress import Progress


def _run(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Return a record a kind of errors and method; those of one network share the effect sizes of its coverage."""
    from idc_core.experiments.class_errors import class_error_rivals

    model, _, test = load(arguments, name, on_progress)
    result = class_error_rivals(model, test, on_progress)
    told = result.coverage
    apart: Record = {"kruskal": told.statistic, "kruskal_p": told.p, **told.sizes}
    # A random order has no coefficient.
    rows = [{key: None if value != value else value for key, value in asdict(row).items()} for row in result.rows]
    return [{"model": name, "tests": len(test), **row, **apart} for row in rows]


EXPERIMENTS = (
    Experiment(
        "class-errors",
        "are confused and unequally treated classes found better by activations than by last-layer weights, and than "
        "by chance; does neuron coverage tell classes apart (only --limit applies)?",
        ("convnet-cifar10", "lenet1-mnist", "lenet4-mnist", "lenet5-mnist"),
        ("model", "errors", "method", "reported", "true_pairs", "found", "low", "high", "spearman", "gain"),
        _run,
    ),
)
