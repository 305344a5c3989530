"""New tests by search: pictures on which networks disagree, and pictures that reach a chosen cell."""

from importlib import import_module
from pkgutil import iter_modules

from idc_core.generation.cell_search import Reached, noise_to_cell, reach_cell
from idc_core.generation.constraints import CONSTRAINTS, Constraint
from idc_core.generation.feature_ranges import FeatureRanges
from idc_core.generation.guidance import guides, make_guidance
from idc_core.generation.measures import Distances, distances, has_majority, majority, outvoted
from idc_core.generation.objectives import OBJECTIVES
from idc_core.generation.search import Disagreements, differential_search
from idc_core.generation.seeds import SEEDS, Pool, choose_seeds
from idc_core.generation.similar_models import rounded

__all__ = [
    "CONSTRAINTS",
    "OBJECTIVES",
    "SEEDS",
    "Constraint",
    "Disagreements",
    "Distances",
    "FeatureRanges",
    "Pool",
    "Reached",
    "choose_seeds",
    "differential_search",
    "distances",
    "guides",
    "has_majority",
    "majority",
    "make_guidance",
    "noise_to_cell",
    "outvoted",
    "reach_cell",
    "rounded",
]

# A file with a constraint, an objective or a choice of seeds needs no entry elsewhere.
for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
