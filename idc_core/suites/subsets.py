"""Parts of a suite: by class, by correctness, by confidence, by position, or at random."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from torch import nn

from idc_core.analysis.predictions import Predictions
from idc_core.base.arrays import Array
from idc_core.base.parameters import is_whole, whole_number
from idc_core.base.progress import Progress
from idc_core.errors import DataError, SettingError
from idc_core.models.weights import fingerprint as fingerprint_of
from idc_core.perturbation.inputs import check_seed
from idc_core.suites.responses import predict, trace_part
from idc_core.suites.suite import Positions, ProvenanceStep, Suite, SuitePart, content_address


def find_tests(
    suite: Suite,
    *,
    classes: Collection[int] | None = None,
    correct: bool | None = None,
    confidence: tuple[float, float] | None = None,
    model: nn.Module | None = None,
    on_progress: Progress | None = None,
) -> tuple[Positions, ProvenanceStep]:
    """Return the positions (k,) of the tests that meet all conditions given, and how they were chosen.

    `classes` are true classes; `correct` says whether the network's prediction is right; `confidence` is the lowest and
    highest softmax probability of the predicted class, both included. The last two need the `model`. Raises
    SettingError if no condition is given, a class is unknown, confidence is no range within 0..1, or the network is
    missing.
    """
    if classes is None and correct is None and confidence is None:
        raise SettingError("A subset needs a condition: classes, correct or confidence.")
    if suite.task == "regression":
        raise SettingError("Tests of a regression have no classes and no confidence; take a subset by positions.")
    inside = np.ones(len(suite), bool)
    settings: dict[str, object] = {}
    if classes is not None:
        inside &= np.isin(suite.targets, _checked(classes, suite))
        settings["classes"] = tuple(sorted(int(number) for number in classes))
    network = ""
    if correct is not None or confidence is not None:
        if model is None:
            raise SettingError("Correctness and confidence are the network's: pass model.")
        predictions, network = _predict_suite(model, suite, on_progress=on_progress), fingerprint_of(model)
        if correct is not None:
            inside &= predictions.correct == bool(correct)
            settings["correct"] = bool(correct)
        if confidence is not None:
            low, high = _range(confidence)
            inside &= (predictions.confidence >= low) & (predictions.confidence <= high)
            settings["confidence"] = (low, high)
    conditions = ", ".join(f"{name} {value}" for name, value in settings.items())
    return np.flatnonzero(inside), ProvenanceStep("subset", f"only {conditions}", settings, model=network)


def select_tests(suite: Suite, positions: Sequence[int] | Positions, step: ProvenanceStep | None = None) -> Suite:
    """Select the tests at some positions (k,), each once; they are taken in ascending order.

    `step` is noted in the provenance; by default that positions were chosen. Raises SettingError if a position is
    outside the suite or comes twice, DataError if there is none.
    """
    chosen = np.sort(np.asarray(positions, np.int64).reshape(-1))
    if not len(chosen):
        raise DataError(f"No test of {suite.label!r} is left{f': {step.label}' if step else ''}. Choose more.")
    if chosen[0] < 0 or chosen[-1] >= len(suite) or (np.diff(chosen) == 0).any():
        raise SettingError(f"Expected different positions in 0..{len(suite) - 1} of suite {suite.label!r}.")
    parts = []
    for start, part in zip(suite.starts, suite.parts, strict=True):
        mine = chosen[(chosen >= start) & (chosen < start + part.count)] - start
        if len(mine) == part.count:
            parts.append(part)
        elif len(mine):
            parts.append(_piece(part, mine))
    positions_of = {"positions": content_address(chosen.tolist())}
    note = step or ProvenanceStep("chosen", f"{len(chosen):,} chosen tests", positions_of)
    return replace(
        suite,
        label=f"{suite.label}, {note.label}",
        targets=suite.targets[chosen],
        origin=suite.origin[chosen],
        partner=suite.partner[chosen],
        provenance=(*suite.provenance, note),
        parts=tuple(parts),
    )


def sample_tests(suite: Suite, count: int, seed: int = 0) -> Suite:
    """Draw tests at random, in the order of the suite; with the same seed a larger sample holds the smaller ones.

    A suite that has no more than `count` tests is returned as it is.
    """
    whole_number("The number of tests of a sample", count, 1)
    if count >= len(suite):
        return suite
    drawn = np.random.default_rng(check_seed(seed)).permutation(len(suite))[:count]
    step = ProvenanceStep("sample", f"{count:,} of {len(suite):,} tests at random", {"count": int(count)}, seed)
    return select_tests(suite, drawn, step)


def _predict_suite(model: nn.Module, suite: Suite, *, on_progress: Progress | None = None) -> Predictions:
    """Return a network's predictions for a suite, in its order."""
    scores = [
        batch.scores.float().cpu().numpy()
        for part in suite.parts
        for _, batch in trace_part(model, part, (), on_progress)
    ]
    return predict(np.concatenate(scores), suite.targets, suite.task)


def _piece(part: SuitePart, positions: Positions) -> SuitePart:
    def make(wanted: Positions, on_progress: Progress | None) -> Array:
        return part.make(positions[wanted], on_progress)

    return SuitePart(content_address(part.fingerprint, positions.tolist()), len(positions), make, part.at_a_time)


def _checked(classes: Collection[int], suite: Suite) -> list[int]:
    numbers = list(classes)
    if not numbers or not all(is_whole(number, 0, len(suite.class_names) - 1) for number in numbers):
        raise SettingError(f"classes must be some of 0..{len(suite.class_names) - 1}, not {classes!r}.")
    return [int(number) for number in numbers]


def _range(confidence: tuple[float, float]) -> tuple[float, float]:
    low, high = (float(bound) for bound in confidence)
    if not 0 <= low <= high <= 1:
        raise SettingError(f"confidence must be a least and a most value within 0..1, not {confidence!r}.")
    return low, high
