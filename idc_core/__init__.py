"""IDC Studio's engine: see which behaviour of a neural network its tests have not exercised."""

from idc_core.analysis import Analysis, analyze
from idc_core.attribution.relevance import relevance
from idc_core.coverage import CRITERIA, IDC
from idc_core.datasets import load_dataset
from idc_core.errors import IdcError
from idc_core.models import load_model

__all__ = ["CRITERIA", "IDC", "Analysis", "IdcError", "analyze", "load_dataset", "load_model", "relevance"]
__version__ = "0.1.0"
