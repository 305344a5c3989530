"""Work on inputs, and its executors: this process, in one piece or by blocks, or the machines of a Ray cluster.

A kind of work is imported from its module, such as `fit_criteria` from `idc_core.work.criteria`: workers load no more.
"""

from idc_core.work import local, ray_cluster  # they enter their executors
from idc_core.work.executor import EXECUTORS, Executor, Work
from idc_core.work.local import ByBlocks, Here
from idc_core.work.source import Opened, Source

__all__ = ["EXECUTORS", "ByBlocks", "Executor", "Here", "Opened", "Source", "Work", "local", "ray_cluster"]
