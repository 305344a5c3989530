"""Records of DeepXplore's tables beside the published figures."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from idc_core.cli.experiments.base import Experiment, Record, load

if TYPE_CHECKING:
    from idc_core.base.progress import Progress

_SHOWN = ("table", "case", "measure", "unit", "paper", "here", "low", "high", "of")


def _run_tables(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Return a record a figure, of a network and those that were published or trained for the same task."""
    from idc_core.experiments.deepxplore.searches import AgreeingNetworks
    from idc_core.experiments.deepxplore.tables import measure
    from idc_core.experiments.random_neurons import check_seeds
    from idc_core.models import load_model
    from idc_core.models.registry import MODELS, companions

    _, _, test = load(arguments, name, on_progress)
    published = [key for key in MODELS if key.startswith("deepxplore-")]
    names = published if name in published else companions(name)
    at = AgreeingNetworks([load_model(one) for one in names], test, arguments.fresh)
    rows = measure(at, check_seeds(arguments.seeds), on_progress=on_progress)
    return [{"models": " ".join(names), **asdict(row)} for row in rows]


def _run_near(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Return two records a network that was trained almost as the control."""
    from idc_core.experiments.deepxplore.near_networks import near_networks

    _, train, test = load(arguments, name, on_progress)
    return [{"model": name, **asdict(row)} for row in near_networks(name, train, test, on_progress=on_progress)]


def _run_polluted(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Return a record a seed of the pollution and way of ranking training inputs."""
    from idc_core.experiments.deepxplore.polluted_training import WAYS, Pollution, polluted_training
    from idc_core.experiments.random_neurons import check_seeds

    clean, train, test = load(arguments, name, on_progress)
    records: list[Record] = []
    for seed in check_seeds(arguments.seeds):
        found = polluted_training(name, train, test, clean, Pollution(seed=seed), on_progress=on_progress)
        for way, label in WAYS.items():
            records.append(
                {
                    "model": name,
                    "seed": seed,
                    "way": label,
                    "candidates": found.candidates,
                    "polluted": found.polluted,
                    "differences": found.differences,
                    "paper": 0.956 if way == "differences" else None,
                    "found": found.found(way),
                    "auc": found.auc(way),
                }
            )
    return records


EXPERIMENTS = (
    Experiment(
        "deepxplore",
        "what do searches for differences find, beside the figures that DeepXplore prints (--m, --rule and --share do "
        "not apply)?",
        ("deepxplore-model3",),
        _SHOWN,
        _run_tables,
    ),
    Experiment(
        "near",
        "how many steps until a difference is found between networks that were trained almost alike (--m, --rule, "
        "--share and --seeds do not apply)?",
        ("lenet1-mnist",),
        _SHOWN,
        _run_near,
    ),
    Experiment(
        "pollution",
        "are training inputs with a wrong label found by what resembles the differences that they cause (--m, --rule "
        "and --share do not apply)?",
        ("lenet5-mnist",),
        ("model", "seed", "way", "candidates", "polluted", "differences", "paper", "found", "auc"),
        _run_polluted,
    ),
)
