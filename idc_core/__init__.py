"""IDC Studio's engine: see which behaviour of a neural network its tests have not exercised.

The public names are imported when they are first used, so that the command line and the pages start at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from idc_core import confusion, testing
    from idc_core.analysis.analysis import analyze
    from idc_core.analysis.result import Analysis
    from idc_core.attribution.relevance import relevance
    from idc_core.coverage import CRITERIA, IDC
    from idc_core.coverage.idc_settings import IdcSettings
    from idc_core.coverage.saved import load_criterion
    from idc_core.datasets import load_dataset
    from idc_core.datasets.registry import dataset
    from idc_core.errors import IdcError
    from idc_core.explained import explaining
    from idc_core.generation import differential_search
    from idc_core.inspection import Hypothesis, inspect
    from idc_core.lrp.rules import RelevanceSettings, composite
    from idc_core.models import load_model
    from idc_core.models.registry import network
    from idc_core.opening.setup_files import open_setup
    from idc_core.perturbation.attacks import attack
    from idc_core.tracing.trace import trace

    launch: Callable[..., Any]

__all__ = [
    "CRITERIA",
    "IDC",
    "Analysis",
    "Hypothesis",
    "IdcError",
    "IdcSettings",
    "RelevanceSettings",
    "analyze",
    "attack",
    "composite",
    "confusion",
    "dataset",
    "differential_search",
    "explaining",
    "inspect",
    "launch",
    "load_criterion",
    "load_dataset",
    "load_model",
    "network",
    "open_setup",
    "relevance",
    "testing",
    "trace",
]
__version__ = "0.1.0"

_HOMES = {
    "CRITERIA": "idc_core.coverage",
    "IDC": "idc_core.coverage",
    "Analysis": "idc_core.analysis.result",
    "Hypothesis": "idc_core.inspection",
    "IdcError": "idc_core.errors",
    "IdcSettings": "idc_core.coverage.idc_settings",
    "RelevanceSettings": "idc_core.lrp.rules",
    "analyze": "idc_core.analysis.analysis",
    "attack": "idc_core.perturbation.attacks",
    "composite": "idc_core.lrp.rules",
    "dataset": "idc_core.datasets.registry",
    "differential_search": "idc_core.generation",
    "explaining": "idc_core.explained",
    "inspect": "idc_core.inspection",
    "launch": "studio.launching",  # a name for the dashboard's own function: the engine itself imports none of it
    "load_criterion": "idc_core.coverage.saved",
    "load_dataset": "idc_core.datasets",
    "load_model": "idc_core.models",
    "network": "idc_core.models.registry",
    "open_setup": "idc_core.opening.setup_files",
    "relevance": "idc_core.attribution.relevance",
    "trace": "idc_core.tracing.trace",
}


def __getattr__(name: str) -> object:
    if name in ("confusion", "testing"):
        return import_module(f"idc_core.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'idc_core' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
