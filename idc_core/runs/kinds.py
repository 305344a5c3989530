"""What sorts of results are runs: their names and their figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from idc_core.base.registry import Registry

if TYPE_CHECKING:
    from idc_core.analysis.result import Analysis
    from idc_core.confusion.report import ClassErrors
    from idc_core.generation import Disagreements
    from idc_core.inspection import Inspection
    from idc_core.runs.attack_run import AttackRun
    from idc_core.suites import SuiteComparison

_Settings = Mapping[str, object]
_Figures = Mapping[str, float | None]

OTHER_CLASSES = "other classes"
"""What a run's settings say of the targets of tests whose classes are not the network's."""


@dataclass(frozen=True)
class Score:
    """One figure of a run: its name, what a person reads, and whether it is a share of one, a count or a number."""

    name: str
    label: str
    form: Literal["share", "count", "number"] = "count"


@dataclass(frozen=True)
class RunKind:
    """A sort of run.

    Attributes
    ----------
    name : str
        What the store calls results of this kind.
    label : str
        What a person calls one.
    scores : tuple of Score
        Its figures, the most telling one first.
    measure : callable
        Gives the figures of a result and its settings by the names in `scores`; None where one is not defined.
    result : str
        Module and class of the result, as ``module:class``.
    """

    name: str
    label: str
    scores: tuple[Score, ...]
    measure: Callable[[Any, _Settings], _Figures]
    result: str

    def figures(self, value: object, settings: _Settings) -> dict[str, float]:
        """Return the figures of a result that are defined and finite."""
        figures = {
            name: _number(figure) for name, figure in self.measure(value, settings).items() if figure is not None
        }
        return {name: figure for name, figure in figures.items() if math.isfinite(figure)}


RUN_KINDS: Registry[RunKind] = Registry("kind of run")
"""Kinds of runs by the names of their results."""


def register_run_kind(kind: RunKind) -> None:
    """Make finished results of a kind runs; lists read the registry."""
    RUN_KINDS[kind.name] = kind


def score_of(kind: str, name: str) -> Score:
    """Return what is known of a figure; one that this program does not know is a number of its own name."""
    known = RUN_KINDS[kind].scores if kind in RUN_KINDS else ()
    return next((score for score in known if score.name == name), Score(name, name.replace("_", " "), "number"))


def _number(value: float) -> float:
    """Return a number as a float; not one where it is beyond all floats, as cells of many neurons can be."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _of_analysis(found: Analysis, settings: _Settings) -> _Figures:
    judged = settings.get("targets") != OTHER_CLASSES
    return {
        "idc": found.score,
        "covered": found.covered,
        "cells": found.total,
        "accuracy": found.accuracy if judged else None,
        "rmse": found.rmse,
        "tests": len(found.codes),
    }


def _of_comparison(found: SuiteComparison, settings: _Settings) -> _Figures:
    m = settings.get("m")
    m = m if m in found.ms else found.ms[0]
    added = [len(suite.cells[m].added) for suite in found.suites[1:]]
    together = set().union(*(set(suite.cells[m].codes.tolist()) for suite in found.suites))
    first = found.suites[0].cells[m]
    return {
        "added": max(added, default=0),
        "original": first.score,
        "together": len(together) / first.total,
        "suites": len(added),
    }


def _of_attack(found: AttackRun, settings: _Settings) -> _Figures:
    return {
        "success": found.success.mean() if len(found.success) else None,
        "added": found.added,
        "l2": found.l2[found.success].mean() if found.success.any() else None,
        "linf": found.linf[found.success].mean() if found.success.any() else None,
        "attacked": len(found.success),
    }


def _of_search(found: Disagreements, settings: _Settings) -> _Figures:
    return {
        "disagreements": found.found,
        "share": found.share,
        "steps": float(np.median(found.iterations[found.made])) if found.found else None,
        "seeds": found.agreed,
    }


def _of_inspection(found: Inspection, settings: _Settings) -> _Figures:
    scores = np.abs(found.table["score"])
    return {
        "strongest": scores[np.isfinite(scores)].max(initial=0.0),
        "hypotheses": len(found.hypotheses),
        "units": sum(len(units) for units in found.units.values()),
        "records": int(found.table["records"].max(initial=0)),
    }


def _of_class_errors(found: ClassErrors, settings: _Settings) -> _Figures:
    measured = found.confusion_found
    below = found.distance[np.triu_indices(len(found.distance), 1)] < found.confusion_cutoff
    return {
        "reported": int(below.sum()),
        "confused": None if measured is None else measured.true_pairs,
        "agreement": None if measured is None else measured.spearman,
        "classes": len(found.class_names),
    }


for _one in (
    RunKind(
        "analysis",
        "Analysis",
        (
            Score("idc", "IDC", "share"),
            Score("covered", "covered cells"),
            Score("cells", "cells"),
            Score("accuracy", "accuracy", "share"),
            Score("rmse", "RMSE", "number"),
            Score("tests", "tests"),
        ),
        _of_analysis,
        "idc_core.analysis.result:Analysis",
    ),
    RunKind(
        "comparisons",
        "Suite comparison",
        (
            Score("added", "most added cells"),
            Score("original", "IDC of the original tests", "share"),
            Score("together", "IDC of all together", "share"),
            Score("suites", "suites"),
        ),
        _of_comparison,
        "idc_core.suites.comparison:SuiteComparison",
    ),
    RunKind(
        "attack-runs",
        "Attack",
        (
            Score("success", "success rate", "share"),
            Score("added", "added cells"),
            Score("l2", "mean L2 size", "number"),
            Score("linf", "mean largest change", "number"),
            Score("attacked", "attacked tests"),
        ),
        _of_attack,
        "idc_core.runs.attack_run:AttackRun",
    ),
    RunKind(
        "searches",
        "Differential search",
        (
            Score("disagreements", "disagreements"),
            Score("share", "share of the seeds", "share"),
            Score("steps", "median steps", "number"),
            Score("seeds", "seeds"),
        ),
        _of_search,
        "idc_core.generation.search:Disagreements",
    ),
    RunKind(
        "inspections",
        "Inspection",
        (
            Score("strongest", "strongest score", "number"),
            Score("hypotheses", "hypotheses"),
            Score("units", "units"),
            Score("records", "records read"),
        ),
        _of_inspection,
        "idc_core.inspection.result:Inspection",
    ),
    RunKind(
        "class-errors",
        "Class errors",
        (
            Score("reported", "reported pairs"),
            Score("confused", "confused pairs"),
            Score("agreement", "rank correlation with confusion", "number"),
            Score("classes", "classes"),
        ),
        _of_class_errors,
        "idc_core.confusion.report:ClassErrors",
    ),
):
    register_run_kind(_one)
