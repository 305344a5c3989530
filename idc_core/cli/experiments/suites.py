"""Records of RQ2 to RQ5, and of uncovered cells that searches reach: coverage of suites, criteria and layers."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from idc_core.cli.experiments.base import PAPER, Experiment, Record, load

if TYPE_CHECKING:
    from idc_core.base.progress import Progress
    from idc_core.experiments.criterion_scores import CriterionScores


@dataclass(frozen=True, eq=False)
class _Parts:
    """The scores of one network: of all tests, and of the parts that the protocol measures IDC of."""

    whole: CriterionScores
    classes: tuple[CriterionScores, ...]
    """Those of every class; none where IDC is of all tests."""
    about: Record

    def of_idc(self, rows: Callable[[CriterionScores], list[Record]]) -> list[Record]:
        """Return rows of IDC: the means of the classes', or those of all tests."""
        from idc_core.experiments.suites import averaged

        return [self.about | row for row in averaged([rows(one) for one in self.classes or (self.whole,)])]


def _parts(arguments: argparse.Namespace, name: str, on_progress: Progress) -> _Parts:
    from idc_core.analysis.layer_sweep import check_ms
    from idc_core.experiments.criterion_scores import MOST, CriterionScores

    ms, protocol = check_ms(arguments.m), arguments.protocol
    model, train, test = load(arguments, name, on_progress)
    score = partial(
        CriterionScores, model, protocol=protocol, most=max(MOST, *ms), fresh=arguments.fresh, on_progress=on_progress
    )
    parts = list(protocol.parts(arguments.name, train, test))
    classes = tuple(score(*part, others=False) for part in parts) if len(parts) > 1 else ()
    about: Record = {"model": name, "layer": model.card.default_layer, "train": len(train), "tests": len(test)}
    about |= {"rule": protocol.rule, "bias": protocol.bias, "fingerprint": model.card.fingerprint}
    return _Parts(score(train, test), classes, about)


def _run_rq2(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Return a record a suite and number of neurons."""
    from idc_core.experiments.suites import rq2

    parts = _parts(arguments, name, on_progress)
    return parts.of_idc(lambda scores: rq2(scores, arguments.seeds, arguments.m, arguments.share))


def _run_rq3(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Return a record a number of tests, suite and criterion."""
    from idc_core.experiments.suites import rq3

    parts = _parts(arguments, name, on_progress)

    def ask(scores: CriterionScores, sizes: Sequence[int] = ()) -> list[Record]:
        slow, paper_cw = (attackable(asked, sizes) for asked in (arguments.attacked, arguments.cw))
        how = {"slow": slow, "paper_cw": paper_cw, "share": arguments.share}
        return rq3(scores, arguments.seeds, arguments.m, **how)

    if not parts.classes:
        return parts.of_idc(ask)
    others = [parts.about | row for row in ask(parts.whole) if not str(row.get("criterion")).startswith("idc")]
    return parts.of_idc(partial(ask, sizes=[len(one.test) for one in parts.classes])) + others


def attackable(asked: int, sizes: Sequence[int]) -> int:
    """Return how many tests of each part are attacked where some parts, of these sizes, have fewer than are asked for.

    Every part has the same rows: all of its tests are attacked in each, or a number that is less than all in each.
    """
    return asked if not sizes or asked < min(sizes) or asked >= max(sizes) else min(sizes) - 1


def _run_rq4(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Return a record a set of points, criterion and number of neurons."""
    from idc_core.experiments.suites import rq4

    parts = _parts(arguments, name, on_progress)
    return [parts.about | row for row in rq4(parts.whole, arguments.m, arguments.share, parts.classes)]


def _run_rq5(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Return a record a suite, layer and number of neurons."""
    from idc_core.experiments.suites import rq5

    parts = _parts(arguments, name, on_progress)
    return parts.of_idc(lambda scores: rq5(scores, arguments.seeds, arguments.m, arguments.share))


def _run_cells(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Search for 20 uncovered cells of one network: one record for each m."""
    from idc_core.analysis.analysis import analyze
    from idc_core.experiments.cells_reached import reach_cells

    model, train, test = load(arguments, name, on_progress)
    card = model.card
    records: list[Record] = []
    for m in arguments.m:
        analysis = analyze(model, train, test, card.default_layer, m, rule=arguments.rule, on_progress=on_progress)
        result = reach_cells(model, analysis, test.inputs, on_progress=on_progress)
        records.append(
            {
                "model": name,
                "layer": card.default_layer,
                "m": m,
                "tests": len(test),
                "covered": analysis.covered,
                "total": str(analysis.total),
                "cells": len(result.cells),
                "seeds": result.seeds,
                "guided": int((result.guided > 0).sum()),
                "noise": int((result.noise > 0).sum()),
                "guided_inputs": int(result.guided.sum()),
                "noise_inputs": int(result.noise.sum()),
                "answered_as_seed": int(result.kept.sum()),
                "farthest": float(result.closest.max(initial=0.0)),
                "searched": " ".join("-".join(map(str, cell)) for cell in result.cells),
            }
        )
    return records


EXPERIMENTS = (
    Experiment(
        "rq2",
        "is coverage raised more by noise on the pixels that decide than by noise on random ones?",
        PAPER,
        ("model", "suite", "m", "inputs", "seeds", "total", "covered", "idc", "idc_deviation", "alone", "achieved"),
        _run_rq2,
        (6, 8, 10, 12),
        protocols=True,
        trainings=True,
    ),
    Experiment(
        "rq3",
        "do adversarial suites raise coverage, by this criterion and by others?",
        PAPER,
        (
            "model",
            "tests",
            "suite",
            "achieved",
            "criterion",
            "original",
            "together",
            "together_deviation",
            "alone",
            "note",
        ),
        _run_rq3,
        (6, 12),
        protocols=True,
        trainings=True,
    ),
    Experiment(
        "rq4",
        "do other criteria rank suites and random subsets as this one does?",
        PAPER,
        ("model", "points", "m", "criterion", "spearman", "kendall"),
        _run_rq4,
        (6, 12),
        protocols=True,
        trainings=True,
    ),
    Experiment(
        "rq5",
        "how does coverage depend on the layer?",
        PAPER,
        ("model", "suite", "layer", "m", "used", "total", "covered", "idc", "idc_deviation", "alone"),
        _run_rq5,
        (4, 6),
        protocols=True,
        trainings=True,
    ),
    Experiment(
        "cells",
        "how many uncovered cells beside covered ones does a guided search reach, and how many does random noise?",
        PAPER,
        (
            "model",
            "layer",
            "m",
            "tests",
            "covered",
            "total",
            "cells",
            "guided",
            "noise",
            "guided_inputs",
            "noise_inputs",
            "answered_as_seed",
        ),
        _run_cells,
    ),
)
