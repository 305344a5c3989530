"""`list`: the names that other commands take, with a line on each, straight from the registries."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from idc_core.cli.console import Subparsers, table

Row = tuple[str, ...]


def _described(name: str, entry: Any) -> Row:
    return name, entry.label, entry.help


def _carded(name: str, entry: Any) -> Row:
    return _described(name, entry.card)


def _experiment(name: str, entry: Any) -> Row:
    return name, "", entry.help


def _model(name: str, entry: Any) -> Row:
    layers = (f"[{layer}]" if layer == entry.default_layer else layer for layer in entry.layers)
    return name, entry.dataset, " ".join(layers)


@dataclass(frozen=True)
class Kind:
    """A registry: where it is, and the row of an entry, by default its name, label and help."""

    home: str
    registry: str
    row: Callable[[str, Any], Row] = _described
    columns: Row = ("", "")

    @property
    def rows(self) -> Iterable[Row]:
        """A row per entry."""
        entries: Mapping[str, Any] = getattr(import_module(self.home), self.registry)
        return (self.row(name, entry) for name, entry in entries.items())


KINDS = {
    "models": Kind("idc_core.models", "MODELS", _model, ("TRAINED ON", "LAYERS (the default one in brackets)")),
    "data": Kind("idc_core.datasets", "DATASETS"),
    "rules": Kind("idc_core.lrp.rules", "RULES"),
    "methods": Kind("idc_core.attribution.methods", "METHODS"),
    "priorities": Kind("idc_core.importance.important_neurons", "PRIORITIES"),
    "clusterings": Kind("idc_core.clustering.methods", "CLUSTERINGS"),
    "criteria": Kind("idc_core.coverage", "CRITERIA", _carded),
    "attacks": Kind("idc_core.perturbation", "ATTACKS"),
    "transforms": Kind("idc_core.perturbation", "TRANSFORMS"),
    "suites": Kind("idc_core.suites", "SUITES"),
    "constraints": Kind("idc_core.generation", "CONSTRAINTS", _carded),
    "objectives": Kind("idc_core.generation", "OBJECTIVES"),
    "seeds": Kind("idc_core.generation", "SEEDS"),
    "families": Kind("idc_core.inspection", "FAMILIES"),
    "measures": Kind("idc_core.inspection", "MEASURES"),
    "experiments": Kind("idc_core.cli.experiments", "EXPERIMENTS", _experiment),
}
"""Every registry by the word that `list` takes. Its module is imported when it is listed: most of them need torch."""


def add_parser(subparsers: Subparsers) -> None:
    """Add the parser of `list`."""
    parser = subparsers.add_parser(
        "list",
        help="list models with their layers, data sets, criteria, attacks and all else that has a name",
        description="Lists the names that the other commands and the engine take, with a line on each.",
        allow_abbrev=False,
    )
    parser.add_argument("kind", nargs="?", choices=KINDS, metavar="KIND", help=f"only these: {', '.join(KINDS)}")


def run(arguments: argparse.Namespace) -> int:
    """Print a table per kind and return the exit status."""
    chosen = KINDS if arguments.kind is None else {arguments.kind: KINDS[arguments.kind]}
    print("\n\n".join(table([(name.upper(), *kind.columns), *kind.rows], "<<<") for name, kind in chosen.items()))
    return 0
