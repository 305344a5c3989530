"""IDC Studio's engine: see which behaviour of a neural network its tests have not exercised.

The public names are imported when they are first used, so that the command line and the pages start at once.
"""

from typing import TYPE_CHECKING

from idc_core.base.lazy import lazy

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from idc_core import confusion as confusion
    from idc_core import testing as testing
    from idc_core.analysis.analysis import analyze as analyze
    from idc_core.analysis.result import Analysis as Analysis
    from idc_core.attribution.relevance import relevance as relevance
    from idc_core.coverage import CRITERIA as CRITERIA
    from idc_core.coverage import IDC as IDC
    from idc_core.coverage.discovery import discovery as discovery
    from idc_core.coverage.idc_settings import IdcSettings as IdcSettings
    from idc_core.coverage.saved import load_criterion as load_criterion
    from idc_core.datasets import load_dataset as load_dataset
    from idc_core.datasets.registry import dataset as dataset
    from idc_core.errors import IdcError as IdcError
    from idc_core.generation import differential_search as differential_search
    from idc_core.inspection import Hypothesis as Hypothesis
    from idc_core.inspection import inspect as inspect
    from idc_core.lrp.explained import explaining as explaining
    from idc_core.lrp.rules import RelevanceSettings as RelevanceSettings
    from idc_core.lrp.rules import composite as composite
    from idc_core.models import load_model as load_model
    from idc_core.models.registry import network as network
    from idc_core.opening.setup_files import open_setup as open_setup
    from idc_core.perturbation.attacks import attack as attack
    from idc_core.tracing.trace import trace as trace

    launch: Callable[..., Any]
else:
    # `launch` is the dashboard's own: the engine itself imports none of it.
    __all__, __getattr__ = lazy(__name__, __file__, launch="studio.launching")

__version__ = "0.1.0"
