"""Records of reached cells: how many uncovered cells a guided search reaches, and random noise beside it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from idc_core.cli.experiments.base import Experiment, Record

if TYPE_CHECKING:
    from idc_core.progress import Progress

MODELS = ("lenet1-mnist", "lenet4-mnist", "lenet5-mnist", "convnet-cifar10", "dave2-udacity")


def run(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Search for 20 uncovered cells of one network: one record for each m."""
    from idc_core.analysis.analysis import analyze
    from idc_core.datasets import load_dataset
    from idc_core.experiments.cells_reached import reach_cells
    from idc_core.models import load_model

    model = load_model(name)
    card = model.card
    train = load_dataset(card.dataset, "train", arguments.limit_train, on_progress=on_progress)
    test = load_dataset(card.dataset, "test", arguments.limit, on_progress=on_progress)
    records: list[Record] = []
    for m in arguments.m:
        analysis = analyze(model, train, test, card.default_layer, m, rule=arguments.rule, on_progress=on_progress)
        found = reach_cells(model, analysis, test.inputs, on_progress=on_progress)
        records.append(
            {
                "model": name,
                "layer": card.default_layer,
                "m": m,
                "tests": len(test),
                "covered": analysis.covered,
                "total": str(analysis.total),
                "cells": len(found.cells),
                "seeds": found.seeds,
                "guided": int((found.guided > 0).sum()),
                "noise": int((found.noise > 0).sum()),
                "guided_inputs": int(found.guided.sum()),
                "noise_inputs": int(found.noise.sum()),
                "answered_as_seed": int(found.kept.sum()),
                "farthest": float(found.closest.max(initial=0.0)),
                "searched": " ".join("-".join(map(str, cell)) for cell in found.cells),
            }
        )
    return records


EXPERIMENT = Experiment(
    "cells",
    "how many uncovered cells beside covered ones does a guided search reach, and how many does random noise?",
    MODELS,
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
    run,
)
