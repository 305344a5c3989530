"""Records of filled grids beside random transforms and fuzzing with as many passes."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from idc_core.cli.experiments.base import Experiment, Record, load

if TYPE_CHECKING:
    from idc_core.base.progress import Progress


def _run(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Fill the grid of one network: one record for each m, seed and way."""
    from idc_core.analysis.analysis import analyze
    from idc_core.experiments.filling import compare_ways
    from idc_core.filling import FillSettings, fit_judge

    model, train, test = load(arguments, name, on_progress)
    layer = model.card.default_layer
    records: list[Record] = []
    for m in arguments.m:
        analysis = analyze(model, train, test, layer, m, rule=arguments.rule, on_progress=on_progress)
        about: Record = {"model": name, "layer": layer, "m": m, "tests": len(test), "total": analysis.total}
        about |= {"covered": analysis.covered, "uncovered": analysis.total - analysis.covered}
        for seed in range(arguments.seeds):
            judge = fit_judge(model, layer, train, test, seed=seed, on_progress=on_progress)
            bad = judge.validity.bad
            told: Record = {
                "natural": judge.validity.natural.share,
                "bad": bad.share,
                "bad_high": bad.interval[1],
                "detector": judge.validity.detector,
            }
            for one in compare_ways(model, analysis, test, judge, FillSettings(seed=seed), on_progress=on_progress):
                records.append(about | asdict(one) | told)
    return records


EXPERIMENTS = (
    Experiment(
        "filling",
        "how many uncovered cells do changes and a directed search reach, and how many random transforms and fuzzing "
        "with as many passes?",
        ("lenet5-digits", "lenet5-mnist"),
        (
            "model",
            "m",
            "covered",
            "uncovered",
            "way",
            "seed",
            "cells",
            "valid_cells",
            "inputs",
            "valid",
            "bad",
            "passes",
            "seconds",
        ),
        _run,
        (6, 8),
    ),
)
