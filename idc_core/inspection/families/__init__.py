"""Ready-made hypotheses, one family a file."""

# The order of these imports is the order of the registry.
from idc_core.inspection.families import classes, text, pictures  # noqa: F401, I001
from idc_core.inspection.families.custom import attribute, predictions, unit
from idc_core.inspection.families.text import keyword, run_of

__all__ = ["attribute", "keyword", "predictions", "run_of", "unit"]
