"""Suites: named test sets that are made lazily from a data set, and how they compare."""

from idc_core.suites.attacked import as_suite, attack_block
from idc_core.suites.compare import SuiteComparison, compare, parts_of, weigh
from idc_core.suites.custom_tests import own_suite
from idc_core.suites.library import forget, keep, kept, open_kept, pack
from idc_core.suites.registry import SUITES, SuiteKind, make_suite, perturbed
from idc_core.suites.responses import Seen, look, seen_of
from idc_core.suites.subset import chosen, sample, subset
from idc_core.suites.suite import Step, Suite, original, union

__all__ = [
    "SUITES",
    "Seen",
    "Step",
    "Suite",
    "SuiteComparison",
    "SuiteKind",
    "as_suite",
    "attack_block",
    "chosen",
    "compare",
    "forget",
    "keep",
    "kept",
    "look",
    "make_suite",
    "open_kept",
    "original",
    "own_suite",
    "pack",
    "parts_of",
    "perturbed",
    "sample",
    "seen_of",
    "subset",
    "union",
    "weigh",
]
