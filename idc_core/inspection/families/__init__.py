"""Ready-made hypotheses, one family a file."""

# The order of these imports is the order of the registry.
from idc_core.inspection.families import labels  # noqa: F401
