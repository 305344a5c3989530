"""Networks by name: architectures, recipes, trained and published weights."""

from idc_core.models.entry import ModelCard, ModelEntry, Network, Recipe
from idc_core.models.loading import load_model
from idc_core.models.registry import MODELS, find_entry
from idc_core.models.training import train

__all__ = ["MODELS", "ModelCard", "ModelEntry", "Network", "Recipe", "find_entry", "load_model", "train"]
