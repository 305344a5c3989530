"""Coverage criteria: one module a family, and the registry that lists them."""

from idc_core.coverage.idc import IDC
from idc_core.coverage.registry import CRITERIA, Criterion, CriterionCard, criterion

__all__ = ["CRITERIA", "IDC", "Criterion", "CriterionCard", "criterion"]
