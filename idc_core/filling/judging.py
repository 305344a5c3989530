"""Judging made inputs: a calibrated detector that was tried on known-bad ones, and the vote of other networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.base.arrays import Floats, Ints
from idc_core.base.progress import Progress, report
from idc_core.datasets import Dataset
from idc_core.errors import DataError
from idc_core.evidence.validity import REJECTED, Accepted, Validity, conformal_p
from idc_core.filling.detectors import Strangeness, detectors
from idc_core.filling.known_bad import known_bad
from idc_core.generation.measures import majority
from idc_core.perturbation.inputs import Pictures, as_pictures
from idc_core.tracing.trace import collect

_FITTED, _HELD_OUT = 2_000, 3_000
"""Training inputs that detectors are fitted to, and tests for all that they are held against."""

_LEAST, _BYTES = 100, 256 << 20
"""Tests that are needed, and bytes that either of them may take: of large pictures fewer are used."""

_TOGETHER = "all detectors together"


@dataclass(frozen=True, eq=False)
class _Calibrated:
    """A detector with the strangeness of held-out natural pictures (c,)."""

    strangeness: Strangeness
    calibration: Floats

    def p(self, pictures: Pictures) -> Floats:
        """Return the p-value of each picture."""
        return conformal_p(self.calibration, self.strangeness(pictures))


@dataclass(frozen=True, eq=False)
class Judge:
    """What judges made pictures.

    Attributes
    ----------
    validity : Validity
        What is known of the detector that accepts least of the known-bad inputs.
    others : tuple of Validity
        The same of all other detectors.
    detector : _Calibrated
    voters : tuple of Module
        Networks for the same task beside the one under test.
    """

    validity: Validity
    others: tuple[Validity, ...]
    detector: _Calibrated
    voters: tuple[nn.Module, ...]

    def p(self, pictures: Pictures) -> Floats:
        """Return the conformal p-value of each picture (n, C, H, W)."""
        return self.detector.p(pictures) if len(pictures) else np.zeros(0)

    def votes(self, pictures: Pictures) -> Ints:
        """Return the class for which more than half of the voters are, -1 where there is none, int64 (n,)."""
        if not self.voters or not len(pictures):
            return np.full(len(pictures), -1, np.int64)
        classes = [collect(voter, pictures, []).scores.argmax(1) for voter in self.voters]
        return np.asarray(majority(np.stack(classes, 1).astype(np.int64)), np.int64)


def fit_judge(
    model: nn.Module,
    layer: str,
    train: Dataset,
    test: Dataset,
    voters: Sequence[nn.Module] = (),
    *,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> Judge:
    """Fit detectors to training pictures, calibrate them on tests, and choose one by what it accepts of bad inputs.

    The tests, at most 3,000 of them, are cut into three parts: for the p-values of single detectors, for those of all
    together (the smallest p-value counts as a strangeness of its own), and for the natural inputs that are to pass; of
    these the known-bad inputs are made. The choice is made on one half of these, what is reported is of the other.
    Tests are taken to be natural.

    Raises
    ------
    DataError
        If inputs are no pictures, or there are fewer than 100 tests.
    """
    random = np.random.default_rng(seed)
    if test.inputs.ndim != 4:
        raise DataError("Inputs can be made for uncovered cells of pictures only.")
    if len(test) < _LEAST:
        raise DataError(f"A detector is calibrated on at least {_LEAST} tests, and there are {len(test)}.")
    most = max(_LEAST, _BYTES // (4 * int(np.prod(test.inputs.shape[1:]))))
    fitted = as_pictures(train.inputs[np.sort(random.permutation(len(train))[: min(_FITTED, most)])])
    held_out = random.permutation(len(test))[: min(_HELD_OUT, most)]
    ranked, calibrating, natural = (as_pictures(test.inputs[np.sort(held_out[part::3])]) for part in range(3))
    report(on_progress, 0, 2, "fitting detectors")
    singles = {
        name: _Calibrated(strangeness, strangeness(ranked))
        for name, strangeness in detectors(model, layer, fitted).items()
    }
    report(on_progress, 1, 2, "trying detectors on known-bad inputs")

    def smallest(pictures: Pictures) -> Floats:
        return np.asarray(-np.min([single.p(pictures) for single in singles.values()], axis=0), np.float64)

    every = {_TOGETHER: _Calibrated(smallest, smallest(calibrating))} | singles  # of equal ones the strictest is first
    bad = known_bad(natural, seed)
    passed = {name: {kind: one.p(made) > REJECTED for kind, made in bad.items()} for name, one in every.items()}
    best = min(every, key=lambda name: sum(accepts[::2].mean() for accepts in passed[name].values()))
    told = {
        name: Validity(
            name,
            _accepted("natural inputs", one.p(natural) > REJECTED),
            tuple(_accepted(kind, accepts[1::2]) for kind, accepts in passed[name].items()),
        )
        for name, one in every.items()
    }
    report(on_progress, 2, 2, "trying detectors on known-bad inputs")
    return Judge(told.pop(best), tuple(told.values()), every[best], tuple(voters))


def _accepted(what: str, passed: NDArray[np.bool_]) -> Accepted:
    return Accepted(what, int(passed.sum()), len(passed))
