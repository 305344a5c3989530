"""RQ3: whether adversarial suites raise coverage, by Importance-Driven Coverage and by other criteria."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from idc_core.cache import Record
from idc_core.errors import SettingError
from idc_core.experiments.criterion_scores import Ask, Readings, other_criteria
from idc_core.experiments.random_neurons import check_seeds
from idc_core.experiments.rq2 import cells_row, deviation, grouped, mean, natural, noisy
from idc_core.perturbation import ATTACKS

EVERYWHERE = {"share": 1.0, "deviation": 0.3}
"""Noise on all pixels, which the published program counts among the attacks."""

FAST: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "U_O+FGSM": ("fgsm", {"epsilon": 0.3}),
    "U_O+BIM": ("bim", {"epsilon": 0.3, "step": 0.05, "steps": 10}),
}
"""Attacks that take seconds, with the parameters of the paper's web page."""

SLOW: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "U_O+JSMA": ("jsma", {"theta": 1.0, "gamma": 1.0}),
    "U_O+CW": ("cw", dict(ATTACKS["cw"].presets["sensible"].settings)),
}
"""Attacks that take minutes."""

PAPER_CW: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "U_O+CW, paper": ("cw", dict(ATTACKS["cw"].presets["paper"].settings))
}
"""Carlini-Wagner with the paper's parameters: ten times as slow."""


def attacked(suites: Mapping[str, tuple[str, Mapping[str, Any]]], tests: int) -> list[Ask]:
    """Return attacked suites of the first tests."""
    return [Ask(name, kind, tests, 0, 1, settings) for name, (kind, settings) in suites.items()]


def rq3(
    readings: Readings,
    seeds: int = 5,
    ms: Sequence[int] = (6, 12),
    *,
    slow: int = 512,
    paper_cw: int = 64,
    share: float = 0.02,
) -> list[Record]:
    """Measure what attacks and noise add to their own original tests, by all criteria.

    Parameters
    ----------
    readings : Readings
    seeds : int
        Draws of the noise on few pixels, from seed 0; everything else is made once, with seed 0.
    ms : sequence of int
        IDC is told for these numbers of important neurons.
    slow, paper_cw : int
        How many tests, from the first one, JSMA and Carlini-Wagner attack, and how many the latter with the paper's
        parameters; 0 leaves them out.
    share : float
        As in `rq2`.

    Returns
    -------
    list of dict
        A row a number of tests, suite and criterion. "original" is the score of the tests that were changed,
        "together" that of them and what was made of them, "alone" that of the latter. Where a network is no
        classifier, attacks and criteria that need classes have a row that says so, without scores.

    Raises
    ------
    SettingError
        If a number of tests is below 0, or as `rq2`.

    References
    ----------
    .. [1] S. Gerasimou, H. F. Eniser, A. Sen, A. Cakan, "Importance-Driven Deep Learning System Testing",
       ICSE 2020, Table 4.
    """
    listed, everything = check_seeds(seeds), len(readings.test)
    if min(slow, paper_cw) < 0:
        raise SettingError(f"Numbers of tests to attack must be at least 0, not {slow} and {paper_cw}.")
    sizes = sorted({min(size, everything) for size in (everything, slow, paper_cw) if size}, reverse=True)
    records = []
    for tests in sizes:
        asks = [
            *natural(readings, tests),
            *noisy(tests, listed, share),
            Ask("U_O+noise", "noise", tests, 0, 1, EVERYWHERE),
        ]
        asks += attacked(FAST, tests)
        asks += attacked(SLOW, tests) if tests <= slow else []
        asks += attacked(PAPER_CW, tests) if tests <= paper_cw else []
        records += _rows(readings, tests, asks, ms)
    return records


def _rows(readings: Readings, tests: int, asks: Sequence[Ask], ms: Sequence[int]) -> list[Record]:
    classifier = readings.test.task == "classification"
    possible = [ask for ask in asks if classifier or not ask.attacked]
    start = readings.read(Ask("U_O", "original", tests))
    rows = []
    for name, found in grouped(readings, possible).items():
        achieved = cells_row(found, readings.layer, 1)[1]
        about = {
            "tests": tests,
            "suite": name,
            "seeds": len(found),
            "unit": achieved["unit"],
            "achieved": achieved["achieved"],
        }
        for m in ms:
            row = cells_row(found, readings.layer, m)[1]
            before = cells_row([start], readings.layer, m)[1]["idc"]
            rows.append(about | _scores(f"idc{m}", before, row))
        rows += [about | _other(name, start, found) for name in other_criteria()]
    left = dict.fromkeys(ask.name for ask in asks if ask not in possible)
    return rows + [{"tests": tests, "suite": name, "note": "attacks need a classifier"} for name in left]


def _scores(criterion: str, before: float, row: Record) -> Record:
    return {
        "criterion": criterion,
        "original": before,
        "together": row["idc"],
        "together_deviation": row["idc_deviation"],
        "increase": row["idc"] - before,
        "alone": row["alone"],
        "alone_deviation": row["alone_deviation"],
        "note": "",
    }


def _other(name: str, start: Record, found: Sequence[Record]) -> Record:
    if name not in start["scores"]:
        return {"criterion": name, "note": "this criterion needs a classifier"}
    before = float(start["scores"][name][0])
    alone, together = ([float(one["scores"][name][place]) for one in found] for place in (0, 1))
    return {
        "criterion": name,
        "original": before,
        "together": mean(together),
        "together_deviation": deviation(together),
        "increase": mean(together) - before,
        "alone": mean(alone),
        "alone_deviation": deviation(alone),
        "note": "",
    }
