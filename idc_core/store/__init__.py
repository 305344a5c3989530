"""Results kept on disk: one file each, found again by everything that they depend on."""

from idc_core.store.marks import Mark, mark, marks
from idc_core.store.result_file import ENDING, MISSING, Facts, find, read, read_facts
from idc_core.store.results import Unfinished, clean, delete, is_empty, keep, kept, place, results_folder
from idc_core.store.values import UnkeptError

__all__ = [
    "ENDING",
    "MISSING",
    "Facts",
    "Mark",
    "Unfinished",
    "UnkeptError",
    "clean",
    "delete",
    "find",
    "is_empty",
    "keep",
    "kept",
    "mark",
    "marks",
    "place",
    "read",
    "read_facts",
    "results_folder",
]
