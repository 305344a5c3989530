"""The registries whose names the command line lists and takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from idc_core.cli.experiments.base import Experiment
    from idc_core.coverage.registry import Criterion
    from idc_core.generation import Constraint
    from idc_core.models import ModelEntry
    from idc_core.runs.kinds import RunKind

_Row = tuple[str, ...]

RULES = "rules"
"""The word for relevance rules, which are named by tables too."""


def read_table(text: str) -> str:
    """Return a table of rules as it reads in full; SettingError where it is none."""
    from idc_core.lrp.tables import Table

    return str(Table.of(text))


class _Described(Protocol):
    @property
    def label(self) -> str: ...
    @property
    def help(self) -> str: ...


def _described(name: str, entry: _Described) -> _Row:
    return name, entry.label, entry.help


def _carded(name: str, entry: type[Criterion | Constraint]) -> _Row:
    return _described(name, entry.card)


def _run_kind(name: str, entry: RunKind) -> _Row:
    return name, entry.label, f"Main figure: {entry.scores[0].label}."


def _experiment(name: str, entry: Experiment) -> _Row:
    return name, "", entry.help


def _limit(name: str, entry: type) -> _Row:
    return name, "", str(entry.__doc__).splitlines()[0]


def _model(name: str, entry: ModelEntry) -> _Row:
    layers = (f"[{layer}]" if layer == entry.default_layer else layer for layer in entry.layers)
    return name, entry.dataset, " ".join(layers)


@dataclass(frozen=True)
class _Registered:
    """A registry: where it is, what an entry is called, and its row, by default its name, label and help."""

    home: str
    registry: str
    one: str
    row: Callable[[str, Any], _Row] = _described
    columns: _Row = ("", "")

    @property
    def entries(self) -> Mapping[str, object]:
        """The registry itself, imported now."""
        entries: Mapping[str, object] = getattr(import_module(self.home), self.registry)
        return entries

    @property
    def rows(self) -> Iterable[_Row]:
        """A row per entry."""
        return (self.row(name, entry) for name, entry in self.entries.items())


KINDS = {
    "models": _Registered(
        "idc_core.models", "MODELS", "model", _model, ("TRAINED ON", "LAYERS (the default one in brackets)")
    ),
    "data": _Registered("idc_core.datasets", "DATASETS", "dataset"),
    RULES: _Registered("idc_core.lrp.rules", "RULES", "rule"),
    "layer-rules": _Registered("idc_core.lrp.layer_rules", "LAYER_RULES", "rule for a layer"),
    "methods": _Registered("idc_core.attribution.methods", "METHODS", "method"),
    "priorities": _Registered("idc_core.importance.important_neurons", "PRIORITIES", "priority"),
    "clusterings": _Registered("idc_core.clustering.methods", "CLUSTERINGS", "clustering"),
    "criteria": _Registered("idc_core.coverage", "CRITERIA", "criterion", _carded),
    "attacks": _Registered("idc_core.perturbation", "ATTACKS", "attack"),
    "transforms": _Registered("idc_core.perturbation", "TRANSFORMS", "transform"),
    "text-changes": _Registered("idc_core.perturbation", "TEXT_CHANGES", "change of texts"),
    "corruptions": _Registered("idc_core.perturbation", "CORRUPTIONS", "corruption"),
    "suites": _Registered("idc_core.suites", "SUITES", "suite"),
    "constraints": _Registered("idc_core.generation", "CONSTRAINTS", "constraint", _carded),
    "objectives": _Registered("idc_core.generation", "OBJECTIVES", "objective"),
    "seeds": _Registered("idc_core.generation", "SEEDS", "way to choose seeds"),
    "families": _Registered("idc_core.inspection", "FAMILIES", "family"),
    "measures": _Registered("idc_core.inspection", "MEASURES", "measure"),
    "limits": _Registered("idc_core.gate", "LIMITS", "kind of limit", _limit),
    "engines": _Registered("idc_core.work", "EXECUTORS", "engine"),
    "runs": _Registered("idc_core.runs", "RUN_KINDS", "kind of run", _run_kind),
    "experiments": _Registered("idc_core.cli.experiments", "EXPERIMENTS", "experiment", _experiment),
}
"""Every registry by the word that `list` takes. Its module is imported when it is listed: most of them need torch."""
