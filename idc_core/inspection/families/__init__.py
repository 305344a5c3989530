"""Ready-made hypotheses, one family a file."""

# The order of these imports is the order of the registry.
from idc_core.inspection.families import labels, symbols, grammar, pictures  # noqa: F401, I001
from idc_core.inspection.families.given import attribute, predictions, unit
from idc_core.inspection.families.symbols import keyword, run_of

__all__ = ["attribute", "keyword", "predictions", "run_of", "unit"]
