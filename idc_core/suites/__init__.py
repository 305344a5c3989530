"""Suites: named test sets that are made lazily from a data set, and how they compare.

Saved suites are listed at once; what needs torch is imported when it is first used.
"""

from typing import TYPE_CHECKING

from idc_core.base.lazy import lazy
from idc_core.suites.saved_suites import SAVED as SAVED
from idc_core.suites.saved_suites import SavedSuite as SavedSuite
from idc_core.suites.saved_suites import change_saved as change_saved
from idc_core.suites.saved_suites import open_saved as open_saved
from idc_core.suites.saved_suites import pack_suite as pack_suite
from idc_core.suites.saved_suites import save_suite as save_suite
from idc_core.suites.saved_suites import saved_suites as saved_suites

if TYPE_CHECKING:
    from idc_core.suites.attacked import attack_block as attack_block
    from idc_core.suites.attacked import attacked_suite as attacked_suite
    from idc_core.suites.class_folders import pack_class_folders as pack_class_folders
    from idc_core.suites.comparison import SuiteComparison as SuiteComparison
    from idc_core.suites.comparison import compare_responses as compare_responses
    from idc_core.suites.comparison import compare_suites as compare_suites
    from idc_core.suites.custom_tests import custom_suite as custom_suite
    from idc_core.suites.registry import SUITES as SUITES
    from idc_core.suites.registry import SuiteKind as SuiteKind
    from idc_core.suites.registry import make_suite as make_suite
    from idc_core.suites.registry import perturbed as perturbed
    from idc_core.suites.responses import PartResponses as PartResponses
    from idc_core.suites.responses import part_responses as part_responses
    from idc_core.suites.responses import responses_from_traces as responses_from_traces
    from idc_core.suites.saved_tests import enter_saved as enter_saved
    from idc_core.suites.subsets import find_tests as find_tests
    from idc_core.suites.subsets import sample_tests as sample_tests
    from idc_core.suites.subsets import select_tests as select_tests
    from idc_core.suites.suite import ProvenanceStep as ProvenanceStep
    from idc_core.suites.suite import Suite as Suite
    from idc_core.suites.suite import original as original
    from idc_core.suites.suite import union as union
else:
    __all__, __getattr__ = lazy(__name__, __file__)
