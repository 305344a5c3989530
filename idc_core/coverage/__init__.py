"""Coverage criteria: one module a family, and the registry that lists them."""

from idc_core.coverage.registry import CRITERIA, Criterion, CriterionCard, criterion

__all__ = ["CRITERIA", "Criterion", "CriterionCard", "criterion"]
