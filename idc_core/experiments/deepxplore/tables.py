"""DeepXplore's Tables 2 and 5 to 11, and its Figure 9, measured on networks that are at hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from idc_core.base.progress import Progress, report
from idc_core.experiments.beside import Beside, counted, repeated
from idc_core.experiments.deepxplore.published import COVERAGE, DIFFERENCES, L1, PUBLISHED, SECONDS
from idc_core.experiments.deepxplore.searches import AgreeingNetworks
from idc_core.perturbation import attack
from idc_core.store.cache import Record

PAPER: dict[str, Any] = {"constraint": "light", "objective": "scores"}
"""The paper's objective; its tables do not say the constraint, and light is what its program does by default."""

_Rows = list[Beside]
_TOP, _LOW = 0.75, 0.25
"""Thresholds of neuron coverage in Table 6, and in Table 5."""


def differences(at: AgreeingNetworks, seeds: Sequence[int], size: int, on_progress: Progress | None) -> _Rows:
    """Table 2: how many of 4 `size` seeds lead to a difference, by the network that is to lose the class."""
    rows = []
    for place, name in enumerate(at.names):
        found = at.search(4 * size, 0, 0.0, turn=place, on_progress=on_progress, **PAPER)
        rows.append(counted("Table 2", name, DIFFERENCES, len(found["steps"]), found["seeds"]))
    return rows


def coverage_term(at: AgreeingNetworks, seeds: Sequence[int], size: int, on_progress: Progress | None) -> _Rows:
    """Table 5: the objective without and with its coverage term; the published three experiments stand one by one.

    Rows of other constraints and of the margin objective have no published figures. `difference` is that of the
    weights 1 and 0, paired by the repetition.
    """
    rows: _Rows = []
    for constraint, objective in product(("light", "occlusion", "blackout"), ("scores", "margin")):
        chosen: dict[str, Any] = {"constraint": constraint, "objective": objective}
        figures = {
            weight: [
                _figures(at.search(size, one, _LOW, weight_coverage=weight, **chosen))
                for one in _told(seeds, on_progress)
            ]
            for weight in (0.0, 1.0)
        }
        for number, (measure, unit) in enumerate(((DIFFERENCES, "%"), (L1, "0..1 a pixel"), (COVERAGE, "%"))):
            columns = {weight: [row[number] for row in found] for weight, found in figures.items()}
            case = f"{constraint}, {objective}"
            for weight, values in columns.items():
                rows.append(repeated("Table 5", f"{case}, lambda2 = {weight:g}", measure, unit, values))
            apart = np.subtract(columns[1.0], columns[0.0]).tolist()
            rows.append(repeated("Table 5", f"{case}, lambda2 = 1 less 0", measure, unit, apart))
    return rows


def _figures(found: Record) -> tuple[float, float, float]:
    """Return seeds with a difference and mean coverage in percent, and the mean L1 distance between them."""
    coverage = [100 * growth[-1] for growth in found["coverage"]]
    away = float(np.mean(found["l1"])) if found["l1"] else float("nan")
    return 100 * len(found["steps"]) / found["seeds"], away, float(np.mean(coverage)) if coverage else float("nan")


def ten_inputs(at: AgreeingNetworks, seeds: Sequence[int], size: int, on_progress: Progress | None) -> _Rows:
    """Table 6: neuron coverage by ten random tests."""
    rows = []
    for place, name in enumerate(at.names):
        values = []
        for one in _told(seeds, on_progress):
            ten = np.random.default_rng(one).permutation(len(at.test))[:10]
            values.append(100 * at.growth(place, at.test.inputs[ten], _TOP)[-1])
        rows.append(repeated("Table 6", name, COVERAGE, "%", values))
    return rows


def shared_neurons(at: AgreeingNetworks, seeds: Sequence[int], size: int, on_progress: Progress | None) -> _Rows:
    """Table 7: neurons of the last network that 100 pairs of tests activate together, of one class and of two.

    The published threshold is not known; all that Figure 9 has are measured, and 0.25 is taken as the paper's: about a
    third of the neurons are active with it, as there.
    """
    rows: _Rows = []
    for threshold in (0.0, _LOW, 0.5, _TOP):
        for kind in ("two classes", "one class"):
            alone, both = [], []
            for one in _told(seeds, on_progress):
                first, second = _pairs(at, kind == "one class", 100, one)
                active = [at.active(len(at.models) - 1, at.test.inputs[rows_], threshold) for rows_ in (first, second)]
                alone.append(float(np.mean([part.sum(1).mean() for part in active])))
                both.append(float((active[0] & active[1]).sum(1).mean()))
            case = kind if threshold == _LOW else f"{kind}, t = {threshold:g}"
            rows.append(repeated("Table 7", case, "neurons active", "neurons", alone))
            rows.append(repeated("Table 7", case, "neurons of both", "neurons", both))
    return rows


def _pairs(
    at: AgreeingNetworks, same: bool, count: int, seed: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Draw pairs of tests, of one class or of two, (count,) positions each."""
    random = np.random.default_rng(seed)
    first = random.permutation(len(at.test))[:count]
    classes = at.test.targets
    second = [random.choice(np.flatnonzero((classes == classes[one]) == same)) for one in first]
    return first, np.array(second)


def full_coverage(at: AgreeingNetworks, seeds: Sequence[int], size: int, on_progress: Progress | None) -> _Rows:
    """Table 8: until differences cover every neuron of a network's convolutions; its dense layers are left out there.

    All seeds advance together; what is told is how many of them, in their order, led to differences that cover all, how
    many steps those took, and the search's seconds in proportion to the steps. A repetition that never covers all has
    no figure; how many have one is told.
    """
    rows: _Rows = []
    for threshold in (0.0, _LOW, 0.5):
        found = [at.search(size, one, threshold, **PAPER) for one in _told(seeds, on_progress)]
        for place, name in enumerate(at.names):
            case = name if not threshold else f"{name}, t = {threshold:g}"
            figures = [_until_full(one, place) for one in found]
            rows.append(
                counted("Table 8", case, "repetitions that cover all", len([1 for one in figures if one]), len(found))
            )
            for number, measure in enumerate(("seeds", "steps", "seconds")):
                values = [one[number] for one in figures if one]
                rows.append(repeated("Table 8", case, f"{measure} to full coverage", measure, values))
    return rows


def _until_full(found: Record, place: int) -> tuple[float, float, float] | None:
    """Return seeds, steps and seconds until one network's convolutions are covered; None where they never are."""
    growth = np.array(found["convolutions"][place] if found["convolutions"] else ())
    full = np.flatnonzero(growth >= 1)
    if not len(full):
        return None
    last = found["seed"][full[0]]
    limit = max(found["steps"])
    taken: dict[int, int] = dict(zip(found["seed"], found["steps"], strict=True))
    steps = sum(taken.get(one, limit) for one in range(last + 1))
    everything = sum(taken.get(one, limit) for one in range(found["seeds"]))
    return last + 1, steps, found["seconds"] * steps / everything


def parameters(at: AgreeingNetworks, seeds: Sequence[int], size: int, on_progress: Progress | None) -> _Rows:
    """Tables 9 to 11: steps and seconds to the first difference, by step length and weights.

    Steps here are grey levels of 255, with the gradient normalised behind the constraint, so that lengths mean other
    things than in the program. Below one grey level no picture of 8 bits changes: 0.01 and 0.1 find nothing here.
    """
    rows: _Rows = []
    swept = (
        ("Table 9", "step", "step", (0.01, 0.1, 1.0, 10.0, 100.0)),
        ("Table 10", "lambda1", "weight_difference", (0.5, 1.0, 2.0, 3.0)),
        ("Table 11", "lambda2", "weight_coverage", (0.5, 1.0, 2.0, 3.0)),
    )
    for table, label, option, values in swept:
        for value in values:
            found = [at.search(size, one, 0.0, **(PAPER | {option: value})) for one in _told(seeds, on_progress)]
            case = f"{label} = {value:g}"
            shares = [100 * len(one["steps"]) / one["seeds"] for one in found]
            rows.append(repeated(table, case, DIFFERENCES, "%", shares))
            steps = [float(np.mean(one["steps"])) if one["steps"] else float("nan") for one in found]
            rows.append(repeated(table, case, "steps to a difference", "steps", steps))
            each = [one["seconds"] / len(one["steps"]) if one["steps"] else float("nan") for one in found]
            rows.append(repeated(table, case, SECONDS, "seconds", each))
    return rows


def by_threshold(at: AgreeingNetworks, seeds: Sequence[int], size: int, on_progress: Progress | None) -> _Rows:
    """Figure 9: neuron coverage by threshold of as many differences, FGSM inputs and random tests, 1 % of the tests.

    Means over the networks. Differences are the first so many finds from twice as many seeds; FGSM (0.3) attacks the
    first network.
    """
    rows: _Rows = []
    most = max(1, len(at.test) // 100)
    places = range(len(at.models))
    for threshold in (0.0, _LOW, 0.5, _TOP):
        values: dict[str, list[float]] = {"differences": [], "FGSM": [], "random tests": []}
        for one in _told(seeds, on_progress):
            found = at.search(2 * most, one, threshold, **PAPER)
            count = min(most, len(found["steps"]))
            if not count:
                continue
            values["differences"].append(100 * float(np.mean([growth[count - 1] for growth in found["coverage"]])))
            drawn = np.random.default_rng(one).permutation(len(at.test))[:count]
            inputs = at.test.inputs[drawn]
            attacked = attack(at.models[0], inputs, at.test.targets[drawn], "fgsm", epsilon=0.3).inputs
            for kind, some in (("FGSM", attacked), ("random tests", inputs)):
                covered = [at.growth(place, some, threshold)[-1] for place in places]
                values[kind].append(100 * float(np.mean(covered)))
        for kind, figures in values.items():
            rows.append(repeated("Figure 9", f"{kind}, t = {threshold:g}", COVERAGE, "%", figures))
        for kind in ("FGSM", "random tests"):
            apart = np.subtract(values["differences"], values[kind]).tolist()
            rows.append(repeated("Figure 9", f"differences less {kind}, t = {threshold:g}", COVERAGE, "points", apart))
    return rows


def _told(seeds: Sequence[int], on_progress: Progress | None) -> Sequence[int]:
    """Return the repetitions; a caller that wants no more is heard between them."""
    report(on_progress, 0, len(seeds), "repetitions")
    return seeds


_Table = Callable[[AgreeingNetworks, Sequence[int], int, Progress | None], _Rows]

TABLES: dict[str, _Table] = {
    "Table 2": differences,
    "Table 5": coverage_term,
    "Table 6": ten_inputs,
    "Table 7": shared_neurons,
    "Table 8": full_coverage,
    "Tables 9 to 11": parameters,
    "Figure 9": by_threshold,
}
"""What is measured by the published table, in its order; each takes networks, repetitions, seeds of a search."""


def measure(at: AgreeingNetworks, seeds: Sequence[int], size: int = 100, on_progress: Progress | None = None) -> _Rows:
    """Measure all tables: `size` seeds a search, repeated for every one of `seeds`; finished searches are kept."""
    rows: _Rows = []
    for done, (name, table) in enumerate(TABLES.items()):
        rows += table(at, seeds, size, partial(_within, on_progress, done, name) if on_progress else None)
    return [replace(row, paper=PUBLISHED.get((row.table, row.case, row.measure))) for row in rows]


def _within(on_progress: Progress, done: int, name: str, inner: int, total: int, label: str) -> bool | None:
    """Tell how far the tables have come, and what the present one does."""
    return on_progress(done, len(TABLES), f"{name}: {label}")
