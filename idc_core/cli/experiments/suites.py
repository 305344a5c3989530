"""Records of RQ2 to RQ5, and of uncovered cells that searches reach: coverage of suites, criteria and layers."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from idc_core.cli.experiments.base import PAPER, Experiment, Record, load

if TYPE_CHECKING:
    from idc_core.base.progress import Progress
    from idc_core.experiments.criterion_scores import CriterionScores


def _scores(arguments: argparse.Namespace, name: str, on_progress: Progress) -> tuple[CriterionScores, Record]:
    from idc_core.analysis.layer_sweep import check_ms
    from idc_core.experiments.criterion_scores import MOST, CriterionScores

    ms = check_ms(arguments.m)
    model, train, test = load(arguments, name, on_progress)
    scores = CriterionScores(
        model, train, test, rule=arguments.rule, most=max(MOST, *ms), fresh=arguments.fresh, on_progress=on_progress
    )
    about: Record = {"model": name, "layer": scores.layer, "train": len(train), "tests": len(test)}
    return scores, about | {"rule": arguments.rule, "fingerprint": model.card.fingerprint}


def _run_rq2(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Return a record a suite and number of neurons."""
    from idc_core.experiments.suites import rq2

    scores, about = _scores(arguments, name, on_progress)
    return [about | row for row in rq2(scores, arguments.seeds, arguments.m, arguments.share)]


def _run_rq3(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Return a record a number of tests, suite and criterion."""
    from idc_core.experiments.suites import rq3

    scores, about = _scores(arguments, name, on_progress)
    rows = rq3(
        scores, arguments.seeds, arguments.m, slow=arguments.attacked, paper_cw=arguments.cw, share=arguments.share
    )
    return [about | row for row in rows]


def _run_rq4(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Return a record a set of points, criterion and number of neurons."""
    from idc_core.experiments.suites import rq4

    scores, about = _scores(arguments, name, on_progress)
    return [about | row for row in rq4(scores, arguments.m, arguments.share)]


def _run_rq5(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Return a record a suite, layer and number of neurons."""
    from idc_core.experiments.suites import rq5

    scores, about = _scores(arguments, name, on_progress)
    return [about | row for row in rq5(scores, arguments.seeds, arguments.m, arguments.share)]


def _run_cells(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Search for 20 uncovered cells of one network: one record for each m."""
    from idc_core.analysis.analysis import analyze
    from idc_core.experiments.cells_reached import reach_cells

    model, train, test = load(arguments, name, on_progress)
    card = model.card
    records: list[Record] = []
    for m in arguments.m:
        analysis = analyze(model, train, test, card.default_layer, m, rule=arguments.rule, on_progress=on_progress)
        result = reach_cells(model, analysis, test.inputs, on_progress=on_progress)
        records.append(
            {
                "model": name,
                "layer": card.default_layer,
                "m": m,
                "tests": len(test),
                "covered": analysis.covered,
                "total": str(analysis.total),
                "cells": len(result.cells),
                "seeds": result.seeds,
                "guided": int((result.guided > 0).sum()),
                "noise": int((result.noise > 0).sum()),
                "guided_inputs": int(result.guided.sum()),
                "noise_inputs": int(result.noise.sum()),
                "answered_as_seed": int(result.kept.sum()),
                "farthest": float(result.closest.max(initial=0.0)),
                "searched": " ".join("-".join(map(str, cell)) for cell in result.cells),
            }
        )
    return records


EXPERIMENTS = (
    Experiment(
        "rq2",
        "is coverage raised more by noise on the pixels that decide than by noise on random ones?",
        PAPER,
        ("model", "suite", "m", "inputs", "seeds", "total", "covered", "idc", "idc_deviation", "alone", "achieved"),
        _run_rq2,
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
        _run_rq3,
        (6, 12),
    ),
    Experiment(
        "rq4",
        "do other criteria rank suites and random subsets as this one does?",
        PAPER,
        ("model", "points", "m", "criterion", "spearman", "kendall"),
        _run_rq4,
        (6, 12),
    ),
    Experiment(
        "rq5",
        "how does coverage depend on the layer?",
        PAPER,
        ("model", "suite", "layer", "m", "used", "total", "covered", "idc", "idc_deviation", "alone"),
        _run_rq5,
        (4, 6),
    ),
    Experiment(
        "cells",
        "how many uncovered cells beside covered ones does a guided search reach, and how many does random noise?",
        PAPER,
        (
            "model",
            "layer",
            "m",
            "tests",
            "covered",
            "total",
            "cells",
            "guided",
            "noise",
            "guided_inputs",
            "noise_inputs",
            "answered_as_seed",
        ),
        _run_cells,
    ),
)
