"""Networks by name: architectures, recipes, trained and published weights.

The list of networks is here at once; what needs torch is imported when it is first used.
"""

from typing import TYPE_CHECKING

from idc_core.base.lazy import lazy
from idc_core.models.card import ModelCard as ModelCard
from idc_core.models.entry import ModelEntry as ModelEntry
from idc_core.models.entry import Recipe as Recipe
from idc_core.models.registry import MODELS as MODELS
from idc_core.models.registry import find_entry as find_entry

if TYPE_CHECKING:
    from idc_core.models.checkpoints import CheckpointRecorder as CheckpointRecorder
    from idc_core.models.loading import load_model as load_model
    from idc_core.models.network import Network as Network
    from idc_core.models.training import train as train
else:
    __all__, __getattr__ = lazy(__name__, __file__)
