"""How many of the distinct faults a suite finds, predicted from its mutation score by what other networks showed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from idc_core.base.arrays import Floats
from idc_core.errors import DataError
from idc_core.store.cache import Record

Score = Literal["mutants", "size", "idc"]
"""What faults are predicted from: the share of mutants that a suite kills, its share of the pool, and its IDC."""

COUNTED = 5000
"""Tests among which distinct faults are counted."""

MOST_SHARE = 0.5
"""The largest suite that a relation knows, as a share of the tests among which faults were counted."""

NETWORKS, SUITES = 0.8, 0.9
"""What an interval holds: of networks, on each of which it holds this share of suites."""

FEWEST = 4
"""Networks of which the largest number is the ceil(0.8 (k + 1))-th."""


@dataclass(frozen=True)
class Predicted:
    """The share of distinct faults that a suite is expected to find, and its interval, 0..1."""

    share: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Relation:
    """How the share of distinct faults that suites find rises with a score of theirs, over several networks.

    Attributes
    ----------
    scores, found : float64 (k,)
        Points of the rising curve, between which it is straight; ascending.
    margin : float
        Half the width of an interval.
    networks : int
        How many it was learned on.
    """

    scores: Floats
    found: Floats
    margin: float
    networks: int

    def predict(self, score: float) -> Predicted:
        """Return what a suite of that score finds of the distinct faults that its kind of inputs shows."""
        share = float(np.interp(score, self.scores, self.found))
        return Predicted(share, max(0.0, share - self.margin), min(1.0, share + self.margin))


def learn_relation(records: Mapping[str, Record], score: Score = "mutants") -> Relation:
    """Learn how faults found rise with a score, from the suites of several networks, as `suites_of_network` gives them.

    The curve is the rising one that is closest to all suites (isotonic regression). Its margin is conformal with the
    network as the unit: each network is left out in turn, and what 90 % of its suites are off by at most is noted; of
    k such numbers the margin is the ceil(0.8 (k + 1))-th smallest. For a further network like these, it holds 90 % of
    the suites with a probability of about 80 %.

    Raises
    ------
    DataError
        If there are fewer than four networks: of three no margin holds with 80 %.

    Notes
    -----
    After A. Abbasishahkoo, M. Dadkhah, L. Briand, D. Lin, "TEASMA: A Practical Methodology for Test Adequacy Assessment
    of Deep Neural Networks", TSE 2024, who learn it on subsets of a network's own training inputs. Networks here
    misclassify so few of these that they show no faults (LeNet-5 on MNIST: 6 of 10,000 inputs), so that other networks'
    tests are learned from.
    R. F. Barber, E. J. Candes, A. Ramdas, R. J. Tibshirani, "Predictive Inference with the Jackknife+", Annals of
    Statistics 49(1), 2021: leaving out is as good as setting aside but for a part of the level.
    """
    if len(records) < FEWEST:
        raise DataError(f"What suites find is learned on at least {FEWEST} networks, and there are {len(records)}.")
    off = sorted(_off(records[name], score, _curve(_without(records, name), score)) for name in records)
    margin = off[min(math.ceil(NETWORKS * (len(off) + 1)), len(off)) - 1]
    return Relation(*_curve(records, score), margin, len(records))


def _without(records: Mapping[str, Record], name: str) -> dict[str, Record]:
    return {other: record for other, record in records.items() if other != name}


def _curve(records: Mapping[str, Record], score: Score) -> tuple[Floats, Floats]:
    """Return the points of the rising curve through the suites of all networks."""
    from sklearn.isotonic import IsotonicRegression  # only here: it takes a second to import

    scores, found = (
        np.concatenate([record["suites"][what] for record in records.values()]) for what in (score, "found")
    )
    fitted = IsotonicRegression(out_of_bounds="clip").fit(scores, found)
    return np.asarray(fitted.X_thresholds_, np.float64), np.asarray(fitted.y_thresholds_, np.float64)


def _off(record: Record, score: Score, curve: tuple[Floats, Floats]) -> float:
    """Return by how much 90 % of a network's suites are off a curve at most."""
    return float(np.quantile(_residuals(record, score, curve), SUITES, method="higher"))


def _residuals(record: Record, score: Score, curve: tuple[Floats, Floats]) -> Floats:
    suites = record["suites"]
    return np.asarray(np.abs(np.array(suites["found"]) - np.interp(suites[score], *curve)))


@dataclass(frozen=True)
class LeftOut:
    """How well faults of a network were predicted that nothing was learned on.

    Attributes
    ----------
    network : str
    error : float
        Root of the mean square of what its suites are off by.
    bias : float
        Mean of what they find beyond the prediction.
    held : float
        Share of its suites, 0..1, that lie within the interval.
    margin : float
        Half the width of the interval.
    """

    network: str
    error: float
    bias: float
    held: float
    margin: float


def left_out(records: Mapping[str, Record], score: Score = "mutants", *, kind: str = "") -> list[LeftOut]:
    """Predict the faults of each network by a relation learned on all others.

    Parameters
    ----------
    records : dict
        By network, as `suites_of_network` gives them.
    score : str
        What is predicted from.
    kind : str, optional
        Judge suites of this kind only ("random", ...); default all.
    """
    rows = []
    for name, record in records.items():
        relation = learn_relation(_without(records, name), score)
        suites = record["suites"]
        chosen = np.array([kind in ("", one) for one in suites["kind"]])
        expected = np.interp(suites[score], relation.scores, relation.found)
        apart = (np.array(suites["found"]) - expected)[chosen]
        held = float((np.abs(apart) <= relation.margin + 1e-12).mean())
        rows.append(LeftOut(name, float(np.sqrt(np.mean(apart**2))), float(apart.mean()), held, relation.margin))
    return rows
