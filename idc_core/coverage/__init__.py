"""Coverage criteria and the registry that lists them.

Criteria are imported when they are first used: what only counts cells does not need torch.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from idc_core.base.lazy import lazy

_FIRST = ("idc", "neuron", "boundary", "surprise", "distribution")
"""Modules whose criteria come first in menus; those of all others in this folder follow."""

if TYPE_CHECKING:
    from idc_core.coverage.idc import IDC as IDC
    from idc_core.coverage.registry import CRITERIA as CRITERIA
else:
    __all__, _find = lazy(__name__, __file__)

    def __getattr__(name):  # noqa: ANN001, ANN202
        if name in __all__:
            for module in dict.fromkeys([*_FIRST, *(entry.name for entry in iter_modules(__path__))]):
                import_module(f"idc_core.coverage.{module}")
        return _find(name)
