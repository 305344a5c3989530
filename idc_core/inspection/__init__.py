"""Hypothesis inspection: which units behave like a thing that can be named."""

from idc_core.base.statistics import passing
from idc_core.inspection import families  # noqa: F401 - they enter FAMILIES
from idc_core.inspection.hypothesis import FAMILIES, Hypothesis, Records, library, register_family, shuffled
from idc_core.inspection.planning import MEASURES, Speed, find_measure
from idc_core.inspection.result import Inspection, discoveries
from idc_core.inspection.resume import Reading
from idc_core.inspection.running import inspect

__all__ = [
    "FAMILIES",
    "MEASURES",
    "Hypothesis",
    "Inspection",
    "Reading",
    "Records",
    "Speed",
    "discoveries",
    "find_measure",
    "inspect",
    "library",
    "passing",
    "register_family",
    "shuffled",
]
