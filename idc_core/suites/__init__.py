"""Suites: named test sets that are made lazily from a data set, and how they compare."""

from idc_core.suites.attacked import attack_block, attacked_suite
from idc_core.suites.comparison import SuiteComparison, compare_responses, compare_suites
from idc_core.suites.custom_tests import custom_suite
from idc_core.suites.registry import SUITES, SuiteKind, make_suite, perturbed
from idc_core.suites.responses import PartResponses, part_responses, responses_from_traces
from idc_core.suites.saved_suites import (
    SavedSuite,
    damaged_suites,
    delete_saved,
    open_saved,
    pack_suite,
    save_suite,
    saved_suites,
)
from idc_core.suites.subset import sample_tests, select_tests, subset
from idc_core.suites.suite import ProvenanceStep, Suite, original, union

__all__ = [
    "SUITES",
    "PartResponses",
    "ProvenanceStep",
    "SavedSuite",
    "Suite",
    "SuiteComparison",
    "SuiteKind",
    "attack_block",
    "attacked_suite",
    "compare_responses",
    "compare_suites",
    "custom_suite",
    "damaged_suites",
    "delete_saved",
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
    "subset",
    "union",
]
