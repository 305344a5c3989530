"""The gate: analyses named in a small file, and limits on their results, so that a test run fails where one is broken.

`read_gate` reads the file, `run_gate` runs it. A kind of limit is one entry of `LIMITS`; one module writes each format.
"""

from importlib import import_module

from idc_core.gate.limits import LIMITS
from idc_core.gate.running import run_gate
from idc_core.gate.settings import Gate, read_gate
from idc_core.gate.verdicts import BROKEN, COULD_NOT_RUN, PASSED, GateReport

__all__ = ["BROKEN", "COULD_NOT_RUN", "LIMITS", "PASSED", "Gate", "GateReport", "read_gate", "run_gate"]

# In the order in which the documents list what they enter into the registry.
for _kind in ("coverage", "accuracy", "robustness", "confusion"):
    import_module(f"idc_core.gate.on_{_kind}")
