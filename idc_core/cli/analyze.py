"""`analyze`: which combinations of important-neuron behaviour a test set reaches, as text and as JSON."""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

from idc_core.base.ranges import EPSILON, INPUTS, M
from idc_core.cli.arguments import FileToWrite, Name, Number, Text
from idc_core.cli.console import ProgressLine, Subparsers, check_fit, check_layers, table, write_whole
from idc_core.cli.executors import add_engine, executor_of, source_of
from idc_core.cli.options import add_fields, options_of
from idc_core.coverage.idc_settings import OPTIONS, IdcSettings
from idc_core.errors import DataError

if TYPE_CHECKING:
    from idc_core.analysis.result import Analysis
    from idc_core.base.progress import Progress
    from idc_core.clustering.kmeans import Clusters
    from idc_core.datasets import Dataset
    from idc_core.models import ModelCard, Network
    from idc_core.runs import PlannedAnalysis
    from idc_core.runs.analysis_run import Sources

_JSON_FORMAT = 1
"""Raised whenever a field of the JSON document is renamed, removed or changes its meaning."""


def add_parser(subparsers: Subparsers) -> None:
    """Add the parser of `analyze`."""
    parser = subparsers.add_parser(
        "analyze",
        help="measure which combinations of important-neuron behaviour a test set reaches",
        description="Ranks the neurons of a layer by relevance, splits the activations of the first m into "
        "clusters, and counts which combinations of clusters the tests reach. `list` shows the names of models, data "
        "sets and layers.",
        allow_abbrev=False,
    )
    add_options(parser)
    parser.add_argument("--fresh", action="store_true", help="analyse anew, even where the same analysis is kept")
    parser.add_argument("--json", type=FileToWrite(), metavar="FILE", help="also write everything to FILE")
    add_engine(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what is analysed, and how."""
    add = parser.add_argument
    add("--model", type=Name("models"), default="lenet5-digits", metavar="NAME", help="the network (%(default)s)")
    add(
        "--data",
        type=Name("data"),
        metavar="NAME",
        help="the data set whose test split is examined (the network's own)",
    )
    add(
        "--layer",
        type=Text(),
        metavar="NAME",
        help="the layer whose neurons are examined (the network's default layer)",
    )
    add("--m", type=Number(M), metavar="N", help=f"number of important neurons ({M.default}, or all of fewer)")
    add(
        "--rule",
        type=Name("rules"),
        default="epsilon",
        metavar="NAME",
        help="relevance rule, see `list rules` (%(default)s)",
    )
    add("--epsilon", type=Number(EPSILON), default=1e-6, metavar="X", help="stabiliser of that rule (%(default)s)")
    add_fields(add, OPTIONS)
    add("--limit-train", type=Number(INPUTS), metavar="N", help="use only the first N training inputs")
    add("--limit-test", type=Number(INPUTS), metavar="N", help="use only the first N test inputs")


def run(arguments: argparse.Namespace) -> int:
    """Analyse, print the result, write it where asked, and return the exit status."""
    started = time.perf_counter()
    import_module("idc_core.models")
    open_executor = executor_of(arguments)
    seconds = {"import": time.perf_counter() - started}
    with ProgressLine() as progress:
        model, train, test, layer = open_setup(arguments, seconds, progress)
        sources = sources_of(arguments, model, train, test)
        plan = planned(arguments, model.card, train, test, layer).planned(sources, open_executor)
        started = time.perf_counter()
        kept = None if arguments.fresh else plan.found()
        if kept is None:
            analysis = plan.kept(progress, fresh=arguments.fresh, on_problem=_tell)
            seconds |= analysis.seconds
        else:
            analysis = kept
            seconds["read the kept analysis"] = time.perf_counter() - started
    document = _make_document(arguments, model.card, train, test, analysis, seconds)
    print(render(document))
    if kept is not None:
        print("\nThis analysis was made before and is kept; --fresh makes it anew.")
    if arguments.json is not None:
        write_whole(arguments.json, json.dumps(document, indent=2, allow_nan=False) + "\n", "--json")
        print(f"\nwritten to {arguments.json}")
    return 0


def sources_of(arguments: argparse.Namespace, model: Network, train: Dataset, test: Dataset) -> Sources:
    """Return training inputs and tests, as they were opened here and as workers open them."""
    return (
        source_of(arguments, model, train, arguments.limit_train),
        source_of(arguments, model, test, arguments.limit_test),
    )


def open_setup(
    arguments: argparse.Namespace, seconds: dict[str, float], progress: Progress
) -> tuple[Network, Dataset, Dataset, str]:
    """Check what the options say of each other, and return network, training inputs, tests and layer.

    How long it took to load them is entered in `seconds`, and m among the options where it was left out.
    """
    from idc_core.analysis.analysis import usual_m
    from idc_core.clustering.methods import CLUSTERINGS
    from idc_core.datasets import load_dataset
    from idc_core.models import load_model

    started = time.perf_counter()
    model = load_model(arguments.model)
    seconds["load model"] = time.perf_counter() - started
    card = model.card
    tests = card.dataset if arguments.data is None else arguments.data
    layer = card.default_layer if arguments.layer is None else arguments.layer
    check_fit(card, tests)
    check_layers(model, [layer])
    CLUSTERINGS[arguments.clustering].check(arguments.clusters)
    started = time.perf_counter()
    # The clusters describe what the network was trained on, whatever tests are put to it.
    train = load_dataset(card.dataset, "train", arguments.limit_train, on_progress=progress)
    test = load_dataset(tests, "test", arguments.limit_test, on_progress=progress)
    seconds["load data"] = time.perf_counter() - started
    if arguments.m is None:
        arguments.m = usual_m(model, train, layer)
    return model, train, test, layer


def planned(
    arguments: argparse.Namespace, card: ModelCard, train: Dataset, test: Dataset, layer: str
) -> PlannedAnalysis:
    """Return the analysis that the options ask for."""
    from idc_core.datasets import DATASETS
    from idc_core.runs import PlannedAnalysis

    parts = arguments.limit_test is not None or arguments.limit_train != DATASETS[card.dataset].learns_from
    return PlannedAnalysis(card, train, test, layer, arguments.m, _chosen(arguments), parts)


def _chosen(arguments: argparse.Namespace) -> IdcSettings:
    """Return how IDC is measured."""
    return IdcSettings.of(arguments.rule, epsilon=arguments.epsilon, **options_of(arguments, OPTIONS))


def _tell(problem: DataError) -> None:
    """Say that the analysis cannot be kept; it is shown all the same."""
    print(problem, file=sys.stderr)


def _make_document(
    arguments: argparse.Namespace,
    card: ModelCard,
    train: Dataset,
    test: Dataset,
    analysis: Analysis,
    seconds: dict[str, float],
) -> dict[str, Any]:
    """Return everything about a run as plain values that JSON can hold.

    `total` is an exact whole number that may need more than 64 bits.
    """
    import numpy
    import torch

    from idc_core.clustering.kmeans import sketch_sentence

    neurons = [
        {
            "rank": rank,
            "neuron": int(neuron),
            "importance": float(analysis.importance[neuron]),
            "clusters": clustering.k,
            "centroids": [float(value) for value in clustering.centroids],
            "boundaries": [float(value) for value in clustering.boundaries],
            "counts": [int(count) for count in clustering.counts],
            "silhouettes": {str(k): float(value) for k, value in clustering.silhouettes.items()},
            **_sketched(clustering),
        }
        for rank, (neuron, clustering) in enumerate(zip(analysis.important, analysis.clusters, strict=True), 1)
    ]
    return {
        "format": _JSON_FORMAT,
        "versions": {"python": platform.python_version(), "torch": torch.__version__, "numpy": numpy.__version__},
        "model": {"name": card.name, "label": card.label, "fingerprint": card.fingerprint},
        "train": _described(train),
        "test": _described(test),
        "settings": {
            "layer": analysis.layer,
            "m": analysis.m,
            "rule": arguments.rule,
            "epsilon": arguments.epsilon,
            **_chosen(arguments).options,
            "clusters": list(arguments.clusters),
        },
        # Answers in the classes of the training data are neither right nor wrong about tests with other classes.
        "accuracy": analysis.accuracy if train.class_names == test.class_names else None,
        "rmse": analysis.rmse,
        "importance": [float(value) for value in analysis.importance],
        "neurons": neurons,
        "sketch": sketch_sentence([clusters.sketch for clusters in analysis.clusters], len(analysis.train_activations)),
        "covered": int(analysis.covered),
        "total": int(analysis.total),
        "idc": float(analysis.score),
        "seconds": {step: float(value) for step, value in seconds.items()},
    }


def _sketched(found: Clusters) -> dict[str, object]:
    """Return how far a neuron's clusters can be from the exact ones, where a sketch of its values was clustered."""
    bounds = found.sketch
    if bounds is None:
        return {}
    return {
        "sketch": {
            "cells": bounds.cells,
            "width": bounds.width,
            "centroids": [float(value) for value in bounds.centroids],
            "boundaries": [float(value) for value in bounds.boundaries],
            "silhouettes": {str(k): float(value) for k, value in bounds.silhouettes.items()},
        }
    }


def _described(data: Dataset) -> dict[str, object]:
    notes = list(data.notes)
    return {"name": data.name, "inputs": len(data), "fingerprint": data.fingerprint, "notes": notes}


def render(document: dict[str, Any]) -> str:
    """Return the document as the text that the command prints."""
    settings, train, test = document["settings"], document["train"], document["test"]
    neurons: list[tuple[str, ...]] = [("RANK", "NEURON", "IMPORTANCE", "CLUSTERS", "CENTROIDS")]
    for entry in document["neurons"]:
        centroids = "  ".join(f"{value:.4g}" for value in entry["centroids"])
        row = (entry["rank"], entry["neuron"], f"{entry['importance']:.4g}", entry["clusters"], centroids)
        neurons.append(tuple(str(cell) for cell in row))
    steps = [("STEP", "SECONDS"), *((step, f"{value:.2f}") for step, value in document["seconds"].items())]
    return "\n\n".join(
        (
            f"{document['model']['label']}, layer {settings['layer']}, m = {settings['m']}\n"
            f"fitted on {train['inputs']:,} training inputs of {train['name']}, "
            f"examined with {test['inputs']:,} tests of {test['name']}: "
            + _quality(document["accuracy"], document["rmse"])
            + (f"\ntests read as: {'; '.join(test['notes'])}" if test["notes"] else ""),
            table(neurons, ">>>><") + (f"\n{document['sketch']}" if document["sketch"] else ""),
            f"covered {document['covered']:,} of {document['total']:,} cells: IDC {_percent(document['idc'])}",
            table(steps, "<>"),
        )
    )


def _quality(accuracy: float | None, rmse: float | None) -> str:
    if rmse is not None:
        return f"RMSE {rmse:.4f}"  # in the unit of the targets, which the data set defines
    if accuracy is None:
        return "their classes are not the network's, so there is no accuracy"
    return f"accuracy {_percent(accuracy)}"


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"
