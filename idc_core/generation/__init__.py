"""New tests by search: pictures on which networks disagree, and pictures that reach a chosen cell."""

from idc_core.generation import appearance, pixels  # noqa: F401 - they enter constraints
from idc_core.generation.cell_search import Reached, noise_to_cell, reach_cell
from idc_core.generation.constraints import CONSTRAINTS, Constraint
from idc_core.generation.guidance import guides, make_guidance
from idc_core.generation.measures import Distances, alone, distances, has_majority, majority
from idc_core.generation.search import Finds, differential_search
from idc_core.generation.seeds import SEEDS, Pool, choose_seeds
from idc_core.generation.similar_models import rounded

__all__ = [
    "CONSTRAINTS",
    "SEEDS",
    "Constraint",
    "Distances",
    "Finds",
    "Pool",
    "Reached",
    "alone",
    "choose_seeds",
    "differential_search",
    "distances",
    "guides",
    "has_majority",
    "majority",
    "make_guidance",
    "noise_to_cell",
    "reach_cell",
    "rounded",
]
