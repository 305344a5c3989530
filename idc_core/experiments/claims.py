"""What the DeepImportance paper claims, as differences of one network each: what is tested over several trainings.

S. Gerasimou, H. F. Eniser, A. Sen, A. Cakan, "Importance-Driven Deep Learning System Testing", ICSE 2020, RQ1 to RQ6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from idc_core.base.statistics import spearman
from idc_core.errors import DataError
from idc_core.evidence.paired import PairedDifferences
from idc_core.store.cache import Record

Found = Iterator[tuple[str, float]]
"""Differences of one network, each with what it is of."""


@dataclass(frozen=True)
class Claim:
    """A claim, and where it stands in the records of an experiment.

    `of` takes the records of one network and yields differences; above 0 is what the claim says. `unit` is that of the
    differences, and of the `margin` within which they are as good as none.
    """

    text: str
    unit: str
    margin: float
    of: Callable[[Sequence[Record]], Found]


@dataclass(frozen=True, eq=False)
class Verdicts:
    """A claim over several trainings of several networks: one column a network and difference."""

    claim: Claim
    models: tuple[str, ...]
    columns: tuple[str, ...]
    found: PairedDifferences

    def rows(self) -> list[Record]:
        """Return one record a column; numbers in the claim's unit."""
        one = self.found
        return [
            {
                "claim": self.claim.text,
                "unit": self.claim.unit,
                "model": model,
                "of": column,
                "networks": len(one.values),
                "difference": float(one.mean[place]),
                "low": float(one.mean[place] - one.half[place]),
                "high": float(one.mean[place] + one.half[place]),
                "p": float(one.p[place]),
                "effect": float(one.effect[place]),
                "within": float(one.within[place]),
                "margin": self.claim.margin,
                "verdict": one.verdict(place),
            }
            for place, (model, column) in enumerate(zip(self.models, self.columns, strict=True))
        ]


def judged(claims: Sequence[Claim], networks: Mapping[str, Sequence[Sequence[Record]]]) -> list[Verdicts]:
    """Judge claims over the trainings of each model; `networks` are the records of every training, by model.

    All columns of a claim, of all models, are corrected for one another. What one of the trainings does not have, such
    as a correlation with a score that never changes, is left out.
    """
    if len({len(trainings) for trainings in networks.values()}) > 1:
        raise DataError("Every model needs the same number of trainings.")
    verdicts = []
    for claim in claims:
        names: list[tuple[str, str]] = []
        values: list[list[float]] = []
        for model, trainings in networks.items():
            each = [dict(claim.of(records)) for records in trainings]
            for column in each[0]:
                of_all = [one.get(column, np.nan) for one in each]
                if np.isfinite(of_all).all():
                    names.append((model, column))
                    values.append(of_all)
        if values:
            models, columns = zip(*names, strict=True)
            differences = PairedDifferences(np.array(values, np.float64).T, claim.margin)
            verdicts.append(Verdicts(claim, models, columns, differences))
    return verdicts


def _picked(records: Sequence[Record], field: str, **where: object) -> dict[object, Record]:
    """Return records by a field, of those whose other fields are as said."""
    return {
        record.get(field): record
        for record in records
        if all(record.get(name) == value for name, value in where.items())
    }


def _further(records: Sequence[Record]) -> Found:
    for unit, name in (("activation", "as they are"), ("deviations", "in each neuron's deviations")):
        for record in _picked(records, "unit", unit=unit).values():
            yield name, 100 * (float(record["ratio"]) - 1)


def _above(first: str, second: str) -> Callable[[Sequence[Record]], Found]:
    """Return IDC of one suite less that of another, in % of that of the original tests, for every m."""

    def of(records: Sequence[Record]) -> Found:
        others, start = _picked(records, "m", suite=second), _picked(records, "m", suite="U_O")
        for m, record in _picked(records, "m", suite=first).items():
            if m in others:
                yield f"m = {m}", 100 * (record["idc"] - others[m]["idc"]) / start[m]["idc"]

    return of


def _falls(records: Sequence[Record]) -> Found:
    found = sorted(_picked(records, "m", suite="U_O").items(), key=lambda one: int(str(one[0])))
    for (m, record), (larger, other) in pairwise(found):
        yield f"m = {m} to {larger}", 100 * (record["idc"] - other["idc"]) / record["idc"]


_SHARES = ("nc", "kmnc", "nbc", "snac", "tknc", "lsc", "dsc", "mdsc")
"""Criteria whose scores are shares, so that points can be told."""


def _reacts(first: str, second: str, idc: bool) -> Callable[[Sequence[Record]], Found]:
    """Return what one suite covers together with the tests, less what another does, by criterion.

    IDC in % of what the tests cover, other criteria, of which tests may cover nothing, in points.
    """

    def of(records: Sequence[Record]) -> Found:
        most = max((record["tests"] for record in records), default=0)
        others = _picked(records, "criterion", suite=second, tests=most)
        for criterion, record in _picked(records, "criterion", suite=first, tests=most).items():
            told = str(criterion)
            other = others.get(criterion, {})
            wanted = told.startswith("idc") if idc else told in _SHARES
            if wanted and record.get("together") is not None and other.get("together") is not None:
                name = f"IDC, m = {told[3:]}" if idc else told.upper()
                yield name, 100 * (record["together"] - other["together"]) / (record["original"] if idc else 1)

    return of


def _correlates(records: Sequence[Record]) -> Found:
    for record in records:
        name = str(record["criterion"])
        if str(record["points"]).endswith("suites") and record["spearman"] is not None and not name.startswith("idc"):
            yield f"{name.upper()}, m = {record['m']}", record["spearman"]


def _with_depth(value: Callable[[Mapping[str, Record]], float]) -> Callable[[Sequence[Record]], Found]:
    """Return the rank correlation of a layer's depth with a value of its suites, for every m."""

    def of(records: Sequence[Record]) -> Found:
        for m in dict.fromkeys(record["m"] for record in records):
            layers: dict[str, dict[str, Record]] = {}
            for record in records:
                if record["m"] == m:
                    layers.setdefault(record["layer"], {})[record["suite"]] = record
            values = np.array([value(suites) for suites in layers.values()])
            yield f"m = {m}", float(spearman(np.stack([np.arange(len(values), dtype=np.float64), values]))[0, 1])

    return of


def _gain(records: Sequence[Record]) -> Found:
    for test, record in _picked(records, "test", addition="raising").items():
        yield str(test), 100 * float(record["minus_random"])


def _grown(suites: Mapping[str, Record], suite: str) -> float:
    return float(suites[suite]["idc"] / suites["U_O"]["idc"])


_OF_TESTS = "% of what the tests cover"

CLAIMS: dict[str, tuple[Claim, ...]] = {
    "rq1": (Claim("Important neurons move further than random ones", "%", 10, _further),),
    "rq2": (
        Claim("U_O+DI covers more than U_O+S", _OF_TESTS, 5, _above("U_O+DI", "U_O+S")),
        Claim("U_O+DI covers more than as many natural inputs", _OF_TESTS, 5, _above("U_O+DI", "U_O+train")),
        Claim("IDC falls as m grows", _OF_TESTS, 5, _falls),
    ),
    "rq3": (
        *(
            Claim(
                f"{attack} raises IDC more than {other}", _OF_TESTS, 5, _reacts(f"U_O+{attack}", f"U_O+{suite}", True)
            )
            for attack in ("FGSM", "BIM")
            for other, suite in (("noise on all pixels", "noise"), ("as many natural inputs", "train"))
        ),
        Claim("Other criteria react more to S than to DI", "points", 1, _reacts("U_O+S", "U_O+DI", False)),
    ),
    "rq4": (Claim("IDC ranks suites as other criteria do", "rank correlation", 0.3, _correlates),),
    "rq5": (
        Claim("IDC rises with depth", "rank correlation", 0.3, _with_depth(lambda suites: float(suites["U_O"]["idc"]))),
        Claim(
            "DI adds more beyond S in deeper layers",
            "rank correlation",
            0.3,
            _with_depth(lambda suites: _grown(suites, "U_O+DI") - _grown(suites, "U_O+S")),
        ),
    ),
    "rq6": (Claim("Inputs that raise IDC help more than random perturbed ones", "points of accuracy", 1, _gain),),
}
"""The claims of each experiment; docs/RESULTS.md says how the margins were settled."""
