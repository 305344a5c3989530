"""What the other coverage criteria say of the same tests."""

from __future__ import annotations

import math
from collections.abc import Callable

from idc_core import store
from idc_core.base.progress import Progress, report
from idc_core.coverage import CRITERIA, registry
from idc_core.coverage.agreement import MANY_PAIRS, WHOLE, CriterionResult, score_suites
from idc_core.errors import CancelledError, IdcError
from idc_core.report.bounds import LONGEST_TEXT, cut
from idc_core.report.content import Criterion
from idc_core.report.material import Material
from idc_core.runs import Planned, criterion_key, digest


def score_criteria(material: Material, on_progress: Progress | None = None) -> tuple[Criterion, ...]:
    """Return every criterion's score for the tests looked at, with its default parameters."""
    return tuple(_scored(material, name, on_progress) for name in CRITERIA)


def _scored(material: Material, name: str, on_progress: Progress | None) -> Criterion:
    card, score = CRITERIA[name].card, None
    missing = _left_out(material, name)
    if not missing:
        report(on_progress, 0, 1, f"measuring {card.label}")
        try:
            score = _score(material, name, on_progress)
        except CancelledError:
            raise
        except IdcError as error:
            missing = cut(str(error), LONGEST_TEXT)
    if score is not None and not math.isfinite(score):
        score, missing = None, "Not defined for these tests."
    return Criterion(name, card.label, card.help, card.unit, score, missing)


def _left_out(material: Material, name: str) -> str:
    """Say why a criterion is not measured; empty where it is."""
    card = CRITERIA[name].card
    if card.needs_classes and not material.test.class_names:
        return "Compares classes, and these tests have none."
    if card.pairwise and len(material.train) * len(material.chosen) > MANY_PAIRS:
        return "Compares every test with many other inputs: left out for so many of them."
    return ""


def _score(material: Material, name: str, on_progress: Progress | None) -> float:
    if name == "idc":
        return material.table.covered / material.table.total
    layer = material.analysis.layer
    make: Callable[..., registry.Criterion] = CRITERIA[name]  # each has a constructor of its own
    usual = {one.name: one.default for one in CRITERIA[name].card.parameters}
    key = criterion_key(material.fingerprints, layer, digest(material.chosen), name, usual)

    def measure(on_progress: Progress | None) -> float:
        known = store.find(store.place("criteria", key))  # of the dashboard, with what each test covers
        if isinstance(known, CriterionResult):
            return known.scores[WHOLE]
        tests = material.test_traces.only(material.chosen)
        one = make(material.open_model(), layer, **usual)
        return float(score_suites([one], material.train_traces, [tests], on_progress=on_progress)[0, 0])

    return Planned("criterion-scores", key, measure).kept(on_progress)
