"""Hypothesis inspection: which units behave like a thing that can be named."""

from idc_core.inspection import families  # noqa: F401 - they enter FAMILIES
from idc_core.inspection.discovery import discoveries, passing
from idc_core.inspection.hypothesis import FAMILIES, Hypothesis, library, shuffled
from idc_core.inspection.records import Records
from idc_core.inspection.result import Inspection
from idc_core.inspection.resume import Reading
from idc_core.inspection.running import MEASURES, Speed, find_measure, inspect

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
    "shuffled",
]
