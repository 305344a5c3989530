"""RQ2 to RQ5: coverage of suites by IDC and by other criteria, all read from the same scores.

S. Gerasimou, H. F. Eniser, A. Sen, A. Cakan, "Importance-Driven Deep Learning System Testing",
ICSE 2020, Tables 3 to 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from idc_core.coverage.agreement import Method, correlations, subset_correlations
from idc_core.datasets.reading import Reading
from idc_core.errors import SettingError
from idc_core.experiments.criterion_scores import CriterionScores, SuiteSpec, other_criteria
from idc_core.experiments.random_neurons import check_seeds
from idc_core.perturbation import ATTACKS, TEXT_CHANGES, TRANSFORMS
from idc_core.store.cache import Record

_DEVIATION = 0.75
"""Standard deviation of the noise in parts of a pixel's range, as in the program published with the paper."""

_NOISES = (("S", "noise"), ("DI", "guided"))
"""Names of the two suites in the paper's tables, and their kinds."""


def noisy(tests: int, seeds: Sequence[int], share: float = 0.02) -> list[SuiteSpec]:
    """Return the suites U_O+S and U_O+DI, one a seed."""
    settings = {"share": share, "deviation": _DEVIATION}
    return [SuiteSpec(f"U_O+{name}", kind, tests, seed, 1, settings) for name, kind in _NOISES for seed in seeds]


def _kinds(scores: CriterionScores, share: float) -> list[tuple[str, str, dict[str, float]]]:
    """Return what is made of the tests: name, kind and settings; of texts, which have no noise, one per change."""
    if Reading.of(scores.test) is not None:
        return [(name, name, {"share": share}) for name in TEXT_CHANGES]
    return [(name, kind, {"share": share, "deviation": _DEVIATION}) for name, kind in _NOISES]


def _natural(scores: CriterionScores, tests: int) -> list[SuiteSpec]:
    """Return the suite that adds as many training inputs; none where there are too few of them."""
    return [SuiteSpec("U_O+train", "train", tests)] if len(scores.train) >= tests else []


def rq2(
    scores: CriterionScores, seeds: int = 5, ms: Sequence[int] = (6, 8, 10, 12), share: float = 0.02
) -> list[Record]:
    """RQ2: measure IDC of the original tests, and of these with noise added; of texts, with changed ones.

    One row per suite and m: means over the seeds, and their standard deviation (None for one seed). "idc" is of the
    suite with the original tests, "alone" without them, "added" the cells that the original tests do not reach.
    "seeds_won" of U_O+DI counts the seeds with which it covers more than U_O+S; "automatic_m" is that of `automatic_m`.
    "U_O+train" adds as many training inputs, where there are enough. The last suites, as "U_O+5S", hold the copies of
    all seeds at once. `share` is that of the pixels that get noise, or of the words that are changed; a layer with
    fewer than m neurons takes all.
    """
    listed, tests, kinds = check_seeds(seeds), len(scores.test), _kinds(scores, share)
    copies = scores.protocol.copies
    made = [
        SuiteSpec(f"U_O+{name}", kind, tests, seed * copies, copies, how)
        for name, kind, how in kinds
        for seed in listed
    ]
    specs = [SuiteSpec("U_O", "original", tests), *made, *_natural(scores, tests)]
    if len(listed) > 1 and copies == 1:
        specs += [SuiteSpec(f"U_O+{seeds}{name}", kind, tests, 0, seeds, how) for name, kind, how in kinds]
    read = _grouped(scores, specs)
    rows: list[Record] = []
    for name, records in read.items():
        for m in ms:
            used, row = _cells_row(records, scores.layer, m)
            won = _won(read["U_O+S"], records, scores.layer, used) if name == "U_O+DI" else None
            automatic = automatic_m([one[1] for one in records[0]["cells"][scores.layer]], tests)
            rows.append({"suite": name, "m": m, "used": used} | row | {"seeds_won": won, "automatic_m": automatic})
    return rows


def automatic_m(totals: Sequence[int], tests: int) -> int:
    """Return the largest number of important neurons whose cells the tests could all reach, at least 1.

    `totals` are the cells of 1, 2 and more important neurons. With more neurons coverage is bounded by the number of
    tests, not by what they are like. The paper chooses m by hand.
    """
    return max(1, sum(total <= tests for total in totals))


def _won(random: Sequence[Record], guided: Sequence[Record], layer: str, used: int) -> int:
    pairs = zip(random, guided, strict=True)
    return sum(two["cells"][layer][used - 1][3] > drawn["cells"][layer][used - 1][3] for drawn, two in pairs)


def _grouped(scores: CriterionScores, specs: Sequence[SuiteSpec]) -> dict[str, list[Record]]:
    """Score suites, and put those that differ by the seed alone together, by name."""
    groups: dict[str, list[Record]] = {}
    for spec in specs:
        groups.setdefault(spec.name, []).append(scores.of(spec))
    return groups


def _cells_row(found: Sequence[Record], layer: str, m: int) -> tuple[int, Record]:
    """Return the number of neurons used, and the IDC of a layer over several draws of one suite."""
    cells = np.array(
        [record["cells"][layer][min(m, len(record["cells"][layer])) - 1] for record in found], dtype=object
    )
    used, total, original = int(cells[0, 0]), int(cells[0, 1]), int(cells[0, 4])
    alone, together = cells[:, 2].astype(np.float64), cells[:, 3].astype(np.float64)
    accuracies = [record["accuracy"] if record["rmse"] is None else record["rmse"] for record in found]
    return used, {
        "inputs": int(found[0]["inputs"]),
        "seeds": len(found),
        "total": total,
        "covered": mean(together),
        "added": mean(together - original),
        "idc": mean(together / total),
        "idc_deviation": deviation(together / total),
        "alone": mean(alone / total),
        "alone_deviation": deviation(alone / total),
        "unit": "accuracy" if found[0]["rmse"] is None else "RMSE",
        "achieved": mean(accuracies),
    }


def mean(values: Sequence[float] | np.ndarray) -> float:
    """Return the mean as a plain number."""
    return float(np.mean(values))


def deviation(values: Sequence[float] | np.ndarray) -> float | None:
    """Return the standard deviation of a sample; None where there is only one value."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


_EVERYWHERE = {"share": 1.0, "deviation": 0.3}
"""Noise on all pixels, which the published program counts among the attacks."""

_FAST: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "U_O+FGSM": ("fgsm", {"epsilon": 0.3}),
    "U_O+BIM": ("bim", {"epsilon": 0.3, "step": 0.05, "steps": 10}),
}
"""Attacks that take seconds, with the parameters of the paper's web page."""

_SLOW: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "U_O+JSMA": ("jsma", {"theta": 1.0, "gamma": 1.0}),
    "U_O+CW": ("cw", dict(ATTACKS["cw"].presets["sensible"].settings)),
}
"""Attacks that take minutes."""

_PAPER_CW: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "U_O+CW, paper": ("cw", dict(ATTACKS["cw"].presets["paper"].settings))
}
"""Carlini-Wagner with the paper's parameters: ten times as slow."""


def _attacked(suites: Mapping[str, tuple[str, Mapping[str, object]]], tests: int) -> list[SuiteSpec]:
    """Return attacked suites of the first tests."""
    return [SuiteSpec(name, kind, tests, 0, 1, settings) for name, (kind, settings) in suites.items()]


def rq3(
    scores: CriterionScores,
    seeds: int = 5,
    ms: Sequence[int] = (6, 12),
    *,
    slow: int = 512,
    paper_cw: int = 64,
    share: float = 0.02,
) -> list[Record]:
    """RQ3: measure what attacks and noise add to their own original tests, by all criteria.

    One row per number of tests, suite and criterion. "original" is the score of the tests that were changed, "together"
    that of them and what was made of them, "alone" that of what was made. Where a network is no classifier, attacks and
    criteria that need classes have a row that says so, without scores. `seeds` draws the noise on few pixels;
    everything else is made once. JSMA and Carlini-Wagner attack the first `slow` tests, Carlini-Wagner with the paper's
    parameters the first `paper_cw`; 0 leaves them out.
    """
    listed, everything = check_seeds(seeds), len(scores.test)
    if min(slow, paper_cw) < 0:
        raise SettingError(f"Numbers of tests to attack must be at least 0, not {slow} and {paper_cw}.")
    sizes = sorted({min(size, everything) for size in (everything, slow, paper_cw) if size}, reverse=True)
    records = []
    for tests in sizes:
        specs = [
            *_natural(scores, tests),
            *noisy(tests, listed, share),
            SuiteSpec("U_O+noise", "noise", tests, 0, 1, _EVERYWHERE),
        ]
        specs += _attacked(_FAST, tests)
        specs += _attacked(_SLOW, tests) if tests <= slow else []
        specs += _attacked(_PAPER_CW, tests) if tests <= paper_cw else []
        records += _rows(scores, tests, specs, ms)
    return records


def _rows(scores: CriterionScores, tests: int, specs: Sequence[SuiteSpec], ms: Sequence[int]) -> list[Record]:
    classifier = scores.test.task == "classification"
    possible = [spec for spec in specs if classifier or not spec.attacked]
    start = scores.of(SuiteSpec("U_O", "original", tests))
    rows = []
    for name, records in _grouped(scores, possible).items():
        achieved = _cells_row(records, scores.layer, 1)[1]
        about = {
            "tests": tests,
            "suite": name,
            "seeds": len(records),
            "unit": achieved["unit"],
            "achieved": achieved["achieved"],
        }
        for m in ms:
            row = _cells_row(records, scores.layer, m)[1]
            before = _cells_row([start], scores.layer, m)[1]["idc"]
            rows.append(about | _row(f"idc{m}", before, row))
        rows += [about | _other(name, start, records) for name in (other_criteria() if scores.names else ())]
    left = dict.fromkeys(spec.name for spec in specs if spec not in possible)
    return rows + [{"tests": tests, "suite": name, "note": "attacks need a classifier"} for name in left]


def _row(criterion: str, before: float, row: Record) -> Record:
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
    alone, together = ([float(record["scores"][name][place]) for record in found] for place in (0, 1))
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


_ORDERS = 20
"""Random orders of the tests whose growing beginnings are the random subsets."""


def suites(tests: int, share: float = 0.02) -> list[SuiteSpec]:
    """Return different suites of equal size: original, noise three times, every transform, and the fast attacks."""
    return [
        SuiteSpec("U_O", "original", tests),
        *noisy(tests, (0,), share),
        SuiteSpec("U_O+noise", "noise", tests, 0, 1, _EVERYWHERE),
        *(SuiteSpec(f"U_O+{name}", name, tests) for name in TRANSFORMS),
        *_attacked(_FAST, tests),
    ]


def rq4(
    scores: CriterionScores, ms: Sequence[int] = (6, 12), share: float = 0.02, classes: Sequence[CriterionScores] = ()
) -> list[Record]:
    """RQ4: correlate the scores of IDC with those of other criteria.

    One row per set of points, criterion and m: rank correlations (Spearman, Kendall's tau-b), None where one of the two
    gives the same score throughout. The points are suites of equal size; growing random subsets of the original tests,
    of all sizes; and the same compared within one size, averaged over the sizes. Where `classes` are given, IDC of a
    suite is the mean of theirs, and suites are the only points.
    """
    classifier = scores.test.task == "classification"

    def read(one: CriterionScores) -> list[Record]:
        return [one.of(spec) for spec in suites(len(one.test), share) if classifier or not spec.attacked]

    records, of_classes = read(scores), [read(one) for one in classes]
    own, others = [f"idc{m}" for m in ms], [name for name in other_criteria() if name in records[0]["scores"]]
    names = own + others
    measured = [
        [[_score(record, scores.layer, name) for record in found] for name in own] for found in of_classes or [records]
    ]
    compared = [[_score(record, scores.layer, name) for record in records] for name in others]
    values = np.array([*np.mean(measured, axis=0), *compared])
    points = {f"{len(records)} suites": [correlations(values, method) for method in get_args(Method)]}
    if not of_classes:
        grown = scores.growth(ms, _ORDERS)
        growth = np.array([grown["scores"][name] for name in names])
        points |= {
            "random subsets": [subset_correlations(growth, method) for method in get_args(Method)],
            "random subsets of one size": [
                subset_correlations(growth, method, same_size=True) for method in get_args(Method)
            ],
        }
    return [
        {
            "points": point,
            "m": m,
            "criterion": name,
            "spearman": _plain(spearman, place, names.index(name)),
            "kendall": _plain(kendall, place, names.index(name)),
        }
        for point, (spearman, kendall) in points.items()
        for place, m in enumerate(ms)
        for name in names
        if name != f"idc{m}"
    ]


def _score(found: Record, layer: str, name: str) -> float:
    if not name.startswith("idc"):
        return float(found["scores"][name][0])
    rows = found["cells"][layer]
    _, total, alone, *_ = rows[min(int(name[3:]), len(rows)) - 1]
    return float(alone / total)


def _plain(values: NDArray[np.float64], row: int, column: int) -> float | None:
    value = float(values[row, column])
    return value if np.isfinite(value) else None


def rq5(scores: CriterionScores, seeds: int = 5, ms: Sequence[int] = (4, 6), share: float = 0.02) -> list[Record]:
    """RQ5: measure IDC of every layer, for the original tests and with noise and attacks added.

    One row per suite, layer (in forward order) and m, as `rq2` has them.
    """
    listed, tests = check_seeds(seeds), len(scores.test)
    how = {"share": share, "deviation": scores.protocol.layer_noise["deviation"]}
    noise = [SuiteSpec(f"U_O+{name}", kind, tests, seed, 1, how) for name, kind in _NOISES for seed in listed]
    specs = [SuiteSpec("U_O", "original", tests), *noise]
    specs += _attacked(_FAST, tests) if scores.test.task == "classification" else []
    return [
        {"suite": name, "layer": layer, "m": m, "used": used} | row
        for name, records in _grouped(scores, specs).items()
        for layer in scores.layers
        for m in ms
        for used, row in [_cells_row(records, layer, m)]
    ]


def averaged(parts: Sequence[Sequence[Record]]) -> list[Record]:
    """Return the rows of several parts of the tests, such as those of one class each, as one: the means of numbers.

    Every part has the same rows in the same order. A number that a part does not have counts in no mean; "tests",
    "inputs" and "train" are sums, and words that differ are left out.
    """
    if len(parts) == 1:
        return list(parts[0])
    return [
        {name: _together(name, [row.get(name) for row in rows]) for name in rows[0]}
        for rows in zip(*parts, strict=True)
    ]


def _together(name: str, values: Sequence[object]) -> object:
    numbers = [value for value in values if isinstance(value, int | float)]
    if name in ("tests", "inputs", "train"):
        return sum(numbers)
    if len(set(values)) == 1:
        return values[0]
    return mean([float(number) for number in numbers]) if numbers else None
