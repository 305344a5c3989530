"""Layer-wise relevance propagation: its rules, carried through any network by intercepting operations."""

from idc_core.lrp import composites  # noqa: F401 - it enters the composites of the field
