"""New tests by search: pictures on which networks disagree, and pictures that reach a chosen cell."""

from idc_core.generation import appearance, pixels  # noqa: F401 - they enter constraints
from idc_core.generation.constraints import CONSTRAINTS, Constraint
from idc_core.generation.reach import Reached, noise_to_cell, reach_cell
from idc_core.generation.search import Finds, differential_search

__all__ = ["CONSTRAINTS", "Constraint", "Finds", "Reached", "differential_search", "noise_to_cell", "reach_cell"]
