"""Suites: named test sets that are made lazily from a data set, and how they compare."""

from idc_core.suites.attacked import as_suite, attack_block
from idc_core.suites.compare import SuiteComparison, compare
from idc_core.suites.kept import forget, keep, kept, open_kept
from idc_core.suites.own import own_suite
from idc_core.suites.registry import SUITES, SuiteKind, make_suite, perturbed
from idc_core.suites.subset import chosen, subset
from idc_core.suites.suite import Step, Suite, original, union

__all__ = [
    "SUITES",
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
    "make_suite",
    "open_kept",
    "original",
    "own_suite",
    "perturbed",
    "subset",
    "union",
]
