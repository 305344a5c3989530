"""Coverage criteria: one module a family, and the registry that lists them.

Criteria are imported when they are first used: what only counts cells does not need torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from idc_core.coverage.idc import IDC
    from idc_core.coverage.registry import CRITERIA

__all__ = ["CRITERIA", "IDC"]

_FAMILIES = tuple(
    f"idc_core.coverage.{family}"
    for family in ("idc", "neuron", "boundary", "surprise", "distribution", "cluster_coverage")
)
"""Modules that enter criteria into the registry."""


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'idc_core.coverage' has no attribute {name!r}")
    families = [import_module(family) for family in _FAMILIES]
    return families[0].IDC if name == "IDC" else import_module("idc_core.coverage.registry").CRITERIA
