"""Coverage criteria and the registry that lists them.

Criteria are imported when they are first used: what only counts cells does not need torch.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from idc_core.base.lazy import lazy

if TYPE_CHECKING:
    from idc_core.coverage.idc import IDC as IDC
    from idc_core.coverage.registry import CRITERIA as CRITERIA
else:
    __all__, _find = lazy(__name__, __file__)

    def __getattr__(name):  # noqa: ANN001, ANN202
        if name in __all__:
            for module in iter_modules(__path__):
                import_module(f"idc_core.coverage.{module.name}")
        return _find(name)
