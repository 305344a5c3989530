"""Records of early stopping: how far the scores of inspections that stop early are from those of all records."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from idc_core.cli.experiments.base import Experiment, Record

if TYPE_CHECKING:
    from idc_core.base.progress import Progress

_FAMILIES = ("grammar", "words", "characters", "position", "symbols", "runs")
_HYPOTHESES = 190
"""The first so many of these families, with which speed is measured too; of data without symbols, of all families."""

_WORK = (
    ("pearson", 1, None),
    ("iou", 5, 2048),
    ("information", 5, 2048),
    ("difference", 5, 2048),
    ("logistic", 32, 4096),
)
"""Measure; every which hypothesis; records. All but the first are computed on all records for every order."""


def run(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Stop inspections of one network early in several orders: one record for each measure and error."""
    from idc_core.datasets import load_dataset
    from idc_core.experiments.stopping import stopping
    from idc_core.inspection import library
    from idc_core.models import load_model

    model = load_model(name)
    card = model.card
    records: list[Record] = []
    for measure, every, most in _WORK:
        limit = min(filter(None, (most, arguments.limit)), default=None)
        data = load_dataset(card.dataset, "train", limit, on_progress=on_progress)
        hypotheses = (library(data, _FAMILIES) or library(data))[:_HYPOTHESES:every]
        for result in stopping(
            model, card.default_layer, data, hypotheses, measure, seeds=range(arguments.seeds), on_progress=on_progress
        ):
            records.append(
                {
                    "model": name,
                    "layer": card.default_layer,
                    "measure": measure,
                    "records": len(data),
                    "hypotheses": len(hypotheses),
                    "error": result.error,
                    "runs": len(result.worst),
                    "kept": result.kept,
                    "scores": int(result.scores[0]),
                    "within": float(result.within.sum() / max(result.scores.sum(), 1)),
                    "worst": float(result.worst.max()),
                    "worst_median": float(sorted(result.worst)[len(result.worst) // 2]),
                    "read": int(sorted(result.median)[len(result.median) // 2]),
                    "read_most": int(result.most.max()),
                    "unscored": int(result.unscored.max()),
                }
            )
    return records


EXPERIMENTS = (
    Experiment(
        "stopping",
        "are the scores of inspections that stop early within the stated error of those of all records?",
        ("charlstm-sql",),
        (
            "measure",
            "records",
            "hypotheses",
            "error",
            "runs",
            "kept",
            "scores",
            "within",
            "worst",
            "read",
            "read_most",
            "unscored",
        ),
        run,
    ),
)
