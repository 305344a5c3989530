"""Ready-made hypotheses: every file of this folder is imported, so that its families enter `FAMILIES`."""

import pkgutil
from importlib import import_module

from idc_core.inspection.families.custom import attribute, predictions, unit
from idc_core.inspection.families.text import keyword, run_of

for _module in pkgutil.iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["attribute", "keyword", "predictions", "run_of", "unit"]
