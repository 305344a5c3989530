"""Engines: work on blocks of inputs in this process, or on the machines of a Ray cluster, with the same result.

What they run is imported from its module, such as `fit_on` from `idc_core.engines.criteria`: workers load no more.
"""

from idc_core.engines import local, ray_cluster  # they enter their engines
from idc_core.engines.engine import ENGINES, Engine, Work
from idc_core.engines.source import Opened, Source

__all__ = ["ENGINES", "Engine", "Opened", "Source", "Work", "local", "ray_cluster"]
