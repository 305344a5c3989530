"""What the check of a network looks at: layers, evidence from a sample, and detectors of likely mistakes by name."""

# They enter detectors, which run in this order: each is shown what those before it found.
# isort: off
from idc_core.analysis.checking import passes  # noqa: F401
from idc_core.analysis.checking import inputs  # noqa: F401
from idc_core.analysis.checking import scores  # noqa: F401
from idc_core.analysis.checking import data  # noqa: F401
# isort: on
