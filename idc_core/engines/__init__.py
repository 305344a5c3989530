"""Executors: work on blocks of inputs in this process, or on the machines of a Ray cluster, with the same result.

What they run is imported from its module, such as `fit_criteria` from `idc_core.engines.criteria`: workers load no
more.
"""

from idc_core.engines import local, ray_cluster  # they enter their executors
from idc_core.engines.executor import EXECUTORS, Executor, Work
from idc_core.engines.local import ByBlocks, Here
from idc_core.engines.source import Opened, Source

__all__ = ["EXECUTORS", "ByBlocks", "Executor", "Here", "Opened", "Source", "Work", "local", "ray_cluster"]
