"""The result of an attack on a batch of inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idc_core.base.parameters import Value
from idc_core.errors import SettingError
from idc_core.perturbation.inputs import Pictures

_CHANGED = 1e-5
"""A value counts as changed when it moved by more: a hundredth of what 8-bit pictures can show, far above rounding."""


@dataclass(frozen=True, eq=False)
class AttackResult:
    """Attacked inputs, and how far and how successfully each was changed.

    Where the work was stopped, everything is of the first `done` inputs.
    """

    name: str
    inputs: Pictures  # (done, C, H, W), the attacked inputs, in 0..1
    targets: NDArray[np.int64]  # (done,), true classes
    goal: NDArray[np.int64] | None  # (done,), the classes asked for
    before: NDArray[np.int64]  # (done,), predicted classes before
    predictions: NDArray[np.int64]  # (done,), predicted classes after
    success: NDArray[np.bool_]
    """(done,), whether the prediction is wrong now, or the one asked for; inputs misclassified before count too."""
    l0: NDArray[np.int64]
    """(done,), pixels, places with all their colours, of which a value moved by more than `_CHANGED`."""
    l2: NDArray[np.float64]  # (done,), Euclidean length of the change, in parts of a value's range
    linf: NDArray[np.float64]  # (done,), its largest value
    settings: dict[str, Value]  # the attack's parameters and the seed, by name
    total: int  # how many inputs there were to attack

    @property
    def done(self) -> int:
        """How many inputs were attacked."""
        return len(self.predictions)

    @property
    def complete(self) -> bool:
        """Whether all inputs were attacked; False where the work was stopped."""
        return self.done == self.total

    @property
    def fooled(self) -> NDArray[np.bool_]:
        """Which correctly classified inputs are misclassified now, bool (done,)."""
        fooled: NDArray[np.bool_] = (self.before == self.targets) & self.success
        return fooled

    @property
    def success_rate(self) -> float:
        """Share of the correctly classified inputs that the attack succeeded with, 0..1; nan where there are none."""
        right = self.before == self.targets
        return float(self.success[right].mean()) if right.any() else float("nan")

    def confusion(self, classes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Count predictions before and after, int64 (classes, classes); row: true class, column: predicted class."""
        pairs = (self.targets * classes + answers for answers in (self.before, self.predictions))
        before, after = (np.bincount(pair, minlength=classes**2).reshape(classes, classes) for pair in pairs)
        return before.astype(np.int64), after.astype(np.int64)


def join_results(parts: Sequence[AttackResult], total: int) -> AttackResult:
    """Put results of one attack, with the same settings, one after the other; `total` is how many inputs there were."""
    if not parts:
        raise SettingError("Expected at least one finished batch to join, got none.")
    first = parts[0]
    for other in parts[1:]:
        aims = (first.goal is None) == (other.goal is None)
        if (other.name, other.settings) != (first.name, first.settings) or not aims:
            raise SettingError(
                f"Only results of one attack can be joined, not {first.name} with {first.settings} and {other.name} "
                f"with {other.settings}."
            )

    arrays = ("inputs", "targets", "before", "predictions", "success", "l0", "l2", "linf")
    names = arrays if first.goal is None else (*arrays, "goal")
    whole: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return replace(first, **whole, total=total)


def sizes(before: Pictures, after: Pictures) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return how far pictures moved: pixels changed, Euclidean length, largest value; each (n,)."""
    moved = np.abs(after - before)
    pixels = (moved > _CHANGED).any(1).sum((1, 2)).astype(np.int64)
    length = np.sqrt(np.einsum("nchw,nchw->n", moved, moved)).astype(np.float64)
    return pixels, length, moved.max((1, 2, 3), initial=0.0).astype(np.float64)
