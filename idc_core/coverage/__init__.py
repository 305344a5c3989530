"""Coverage criteria and the registry that lists them.

Criteria are imported when they are first used: what only counts cells does not need torch.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from idc_core.coverage.idc import IDC
    from idc_core.coverage.registry import CRITERIA

__all__ = ["CRITERIA", "IDC"]

_FIRST = ("idc", "neuron", "boundary", "surprise", "distribution")
"""Modules whose criteria come first in menus; those of all others in this folder follow."""


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'idc_core.coverage' has no attribute {name!r}")
    for module in dict.fromkeys([*_FIRST, *(one.name for one in iter_modules(__path__))]):
        import_module(f"idc_core.coverage.{module}")
    return getattr(import_module(f"idc_core.coverage.{'idc' if name == 'IDC' else 'registry'}"), name)
