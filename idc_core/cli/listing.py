"""`list`: models with their layers, data sets and coverage criteria, straight from the registries."""

from __future__ import annotations

import argparse

from idc_core.cli.console import Subparsers, table


def add_parser(subparsers: Subparsers) -> None:
    """Add the parser of `list`."""
    subparsers.add_parser(
        "list",
        help="list models with their layers, data sets and coverage criteria",
        description="Lists the names that the other commands take: models with their layers, data sets, criteria.",
        allow_abbrev=False,
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the tables and return the exit status."""
    from idc_core.coverage import CRITERIA
    from idc_core.datasets import DATASETS
    from idc_core.models import MODELS

    models = [("MODEL", "TRAINED ON", "LAYERS (the default one in brackets)")]
    for model in MODELS.values():
        layers = (f"[{name}]" if name == model.default_layer else name for name in model.layers)
        models.append((model.name, model.dataset, " ".join(layers)))
    datasets = [("DATA", "WHAT IT IS"), *((data.name, data.help) for data in DATASETS.values())]
    cards = [kind.card for kind in CRITERIA.values()]
    criteria = [("CRITERION", "NAME", "SCORE"), *((card.name, card.label, card.help) for card in cards)]
    print(table(models, "<<<"))
    print()
    print(table(datasets, "<<"))
    print()
    print(table(criteria, "<<<"))
    return 0
