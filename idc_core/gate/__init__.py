"""The gate: analyses named in a small file, and limits on their results, so that a test run fails where one is broken.

`read_gate` reads the file, `run_gate` runs it. A kind of limit is one entry of `LIMITS`; `formats` writes reports.
"""

from importlib import import_module
from pkgutil import iter_modules

from idc_core.gate.limits import LIMITS
from idc_core.gate.running import run_gate
from idc_core.gate.settings import Gate, read_gate
from idc_core.gate.verdicts import BROKEN, COULD_NOT_RUN, PASSED, GateReport

__all__ = ["BROKEN", "COULD_NOT_RUN", "LIMITS", "PASSED", "Gate", "GateReport", "read_gate", "run_gate"]

# The documents list what these enter into the registry first, and then what other files of such a name enter.
_KINDS = ("on_coverage", "on_discovery", "on_accuracy", "on_robustness", "on_confusion")
for _module in (*_KINDS, *(module.name for module in iter_modules(__path__) if module.name.startswith("on_"))):
    import_module(f"{__name__}.{_module}")
