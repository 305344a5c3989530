"""Suites: named test sets that are made lazily from a data set, and how they compare.

Saved suites are listed at once; what needs torch is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from idc_core.suites.custom_tests import custom_suite
from idc_core.suites.saved_suites import (
    SAVED,
    SavedSuite,
    change_saved,
    open_saved,
    pack_suite,
    save_suite,
    saved_suites,
)
from idc_core.suites.saved_tests import enter_saved
from idc_core.suites.suite import ProvenanceStep, Suite, original, union

if TYPE_CHECKING:
    from idc_core.suites.attacked import attack_block, attacked_suite
    from idc_core.suites.comparison import SuiteComparison, compare_responses, compare_suites
    from idc_core.suites.registry import SUITES, SuiteKind, make_suite, perturbed
    from idc_core.suites.responses import PartResponses, part_responses, responses_from_traces
    from idc_core.suites.subsets import find_tests, sample_tests, select_tests

__all__ = [
    "SAVED",
    "SUITES",
    "PartResponses",
    "ProvenanceStep",
    "SavedSuite",
    "Suite",
    "SuiteComparison",
    "SuiteKind",
    "attack_block",
    "attacked_suite",
    "change_saved",
    "compare_responses",
    "compare_suites",
    "custom_suite",
    "enter_saved",
    "find_tests",
    "make_suite",
    "open_saved",
    "original",
    "pack_suite",
    "part_responses",
    "perturbed",
    "responses_from_traces",
    "sample_tests",
    "save_suite",
    "saved_suites",
    "select_tests",
    "union",
]

_HOMES = {
    "SUITES": "registry",
    "PartResponses": "responses",
    "SuiteComparison": "comparison",
    "SuiteKind": "registry",
    "attack_block": "attacked",
    "attacked_suite": "attacked",
    "compare_responses": "comparison",
    "compare_suites": "comparison",
    "make_suite": "registry",
    "part_responses": "responses",
    "perturbed": "registry",
    "responses_from_traces": "responses",
    "find_tests": "subsets",
    "sample_tests": "subsets",
    "select_tests": "subsets",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'idc_core.suites' has no attribute {name!r}")
    return getattr(import_module(f"idc_core.suites.{_HOMES[name]}"), name)
