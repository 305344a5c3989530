"""Networks by name: architectures, recipes, trained and published weights.

The list of networks is here at once; what needs torch is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from idc_core.models.card import ModelCard
from idc_core.models.entry import ModelEntry, Recipe
from idc_core.models.registry import MODELS, find_entry

if TYPE_CHECKING:
    from idc_core.models.checkpoint_recorder import CheckpointRecorder
    from idc_core.models.loading import load_model
    from idc_core.models.network import Network
    from idc_core.models.training import train

__all__ = [
    "MODELS",
    "CheckpointRecorder",
    "ModelCard",
    "ModelEntry",
    "Network",
    "Recipe",
    "find_entry",
    "load_model",
    "train",
]

_HOMES = {
    "CheckpointRecorder": "idc_core.models.checkpoint_recorder",
    "Network": "idc_core.models.network",
    "load_model": "idc_core.models.loading",
    "train": "idc_core.models.training",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'idc_core.models' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
