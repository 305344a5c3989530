"""Train many penalised regressions on the same units at once: one pass over the rows serves all of them.

Every problem (a hypothesis) has weights for each unit and a constant, times as many columns as its loss needs: one for
yes or no and for numbers, one a class otherwise. A pass multiplies each block of rows with the weights of all problems
that are not yet finished: two matrix products a block, whatever the number of problems.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from idc_core.progress import Progress, report

Blocks = Callable[[], Iterable[tuple[Tensor, Tensor]]]
"""Starts a pass: blocks of units (rows, U), not standardised, and behaviours (rows, H)."""

MEMORY = 8
"""Steps that the quasi-Newton direction remembers."""


@dataclass(frozen=True)
class Scale:
    """Means and standard deviations of the units, float64 (U,); a unit that never changes has 1."""

    mean: Tensor
    deviation: Tensor

    @classmethod
    def of(cls, blocks: Blocks) -> Scale:
        """Measure them in one pass."""
        count, total, about, squares = 0, torch.zeros(0), torch.zeros(0), torch.zeros(0)
        for units, _ in blocks():
            if not count:
                about = units[0].double()
                total, squares = torch.zeros_like(about), torch.zeros_like(about)
            moved = units.double() - about
            count, total, squares = count + len(units), total + moved.sum(0), squares + (moved * moved).sum(0)
        mean = total / count
        variance = (squares / count - mean**2).clamp(min=0)
        still = variance <= 1e-12 * (squares / count)
        return cls(mean + about, torch.where(still, 1.0, variance.sqrt()))

    def apply(self, units: Tensor, kind: torch.dtype) -> Tensor:
        """Return standardised units with a column of ones, (rows, U + 1)."""
        moved = (units.to(kind) - self.mean.to(kind)) / self.deviation.to(kind)
        return torch.cat([moved, torch.ones(len(units), 1, dtype=kind)], 1)


@dataclass(frozen=True)
class Loss:
    """A loss over rows and its slope in the scores.

    Attributes
    ----------
    columns : int
        Columns of scores a problem has.
    value : callable
        (scores (rows, P, columns), behaviours (rows, P)) to the summed loss (P,) and its gradient in the scores.
    curvature : float
        The largest second derivative of one row's loss in a score.
    """

    columns: int
    value: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
    curvature: float


def _yes_no(scores: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    one = scores[..., 0]
    # In place: every array less is one that need not go through memory, in every pass.
    value = F.softplus(one).addcmul_(wanted, one, value=-1).sum(0).double()
    return value, torch.sigmoid(one).sub_(wanted)[..., None]


def _classes(scores: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    target = F.one_hot(wanted.long(), scores.shape[-1]).to(scores.dtype)
    logs = F.log_softmax(scores, -1)
    return -(target * logs).sum((0, 2)).double(), logs.exp() - target


def _square(scores: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    apart = scores[..., 0] - wanted
    return (apart * apart).sum(0).double() / 2, apart[..., None]


YES_NO = Loss(1, _yes_no, 0.25)
SQUARE = Loss(1, _square, 1.0)


def of_classes(count: int) -> Loss:
    """Return the cross entropy of so many classes."""
    return Loss(count, _classes, 0.5)


@dataclass(frozen=True)
class Problem:
    """What is minimised for every problem: mean loss + (l2 / 2 |w|^2 + l1 |w|) / rows, the constant unpenalised."""

    blocks: Blocks
    problems: int
    scale: Scale
    loss: Loss
    l2: float
    l1: float
    double: bool

    @property
    def kind(self) -> torch.dtype:
        """Precision of the passes; sums over blocks and weights are always in double precision."""
        return torch.float64 if self.double else torch.float32

    def evaluate(self, weights: Tensor, which: Tensor) -> tuple[Tensor, Tensor]:
        """Return the smooth part (P,) and its gradient for problems `which` at weights (P, D, columns)."""
        count, inputs, columns = weights.shape
        flat = weights.permute(1, 0, 2).reshape(inputs, -1)
        # Standardising is folded into the weights, so that no block is copied.
        mean, deviation = self.scale.mean[:, None], self.scale.deviation[:, None]
        scaled = flat[:-1] / deviation
        factors, constant = scaled.to(self.kind), (flat[-1] - (mean * scaled).sum(0)).to(self.kind)
        value = torch.zeros(count, dtype=torch.float64)
        slope, rests, rows = torch.zeros_like(scaled), torch.zeros_like(flat[-1]), 0
        every = bool(len(which) == self.problems)
        for units, behaviours in self.blocks():
            x, wanted = units.to(self.kind), behaviours.to(self.kind)
            scores = torch.addmm(constant, x, factors).reshape(-1, count, columns)
            part, gradient = self.loss.value(scores, wanted if every else wanted[:, which])
            gradient = gradient.reshape(len(x), -1)
            value += part
            slope += (x.T @ gradient).double()
            rests += gradient.sum(0).double()
            rows += len(x)
        penalised = weights.clone()
        penalised[:, -1] = 0
        slope = torch.cat([(slope - mean * rests) / deviation, rests[None]])
        slope = slope.reshape(inputs, count, columns).permute(1, 0, 2)
        value = (value + self.l2 / 2 * (penalised**2).sum((1, 2))) / rows
        return value, (slope + self.l2 * penalised) / rows

    def gram(self, most: int | None = None) -> tuple[Tensor, int]:
        """Return the mean product of standardised units with themselves, (D, D), and the rows it is of."""
        total, rows = torch.zeros(0), 0
        for units, _ in self.blocks():
            x = self.scale.apply(units, self.kind)
            product = (x.T @ x).double()
            total = total + product if rows else product
            rows += len(x)
            if most is not None and rows >= most:
                break
        return total / rows, rows


@dataclass(frozen=True)
class Stop:
    """When training ends: at this largest slope of the mean loss, or after so many passes."""

    tolerance: float
    passes: int


def minimise(
    problem: Problem, weights: Tensor, stop: Stop, on_progress: Progress | None = None, label: str = "probes"
) -> Tensor:
    """Minimise all problems together.

    Parameters
    ----------
    problem : Problem
    weights : Tensor, float64 (P, D, columns)
        Where to start.
    stop : Stop
    on_progress, label
        Called after every pass.

    Returns
    -------
    Tensor, float64 (P, D, columns)

    Notes
    -----
    Without an L1 penalty: L-BFGS for every problem (J. Nocedal, Updating quasi-Newton matrices with limited storage,
    1980), all with one first guess of the curvature, D. Böhning's bound (Multinomial logistic regression algorithm,
    1992) on the inverse Hessian. With one: accelerated proximal gradient with restarts (B. O'Donoghue, E. Candès,
    Adaptive restart for accelerated gradient schemes, 2015).
    """
    work = _proximal if problem.l1 else _quasi_newton
    return work(problem, weights, stop, on_progress, label)


def _quasi_newton(
    problem: Problem, weights: Tensor, stop: Stop, on_progress: Progress | None, label: str
) -> Tensor:  # fmt: skip
    gram, rows = problem.gram(16_384)
    penalty = torch.full((len(gram),), problem.l2 / rows, dtype=torch.float64)
    penalty[-1] = 0
    bound = torch.linalg.cholesky(problem.loss.curvature * gram + torch.diag(penalty + 1e-6))
    found = weights.clone()
    left = torch.arange(len(weights))
    here, (value, slope) = weights.clone(), problem.evaluate(weights, left)
    steps: list[tuple[Tensor, Tensor]] = []
    length = torch.ones(len(left), dtype=torch.float64)
    way = -_direction(slope, steps, bound)
    for done in range(stop.passes):
        report(on_progress, done + 1, stop.passes, f"passes of {label}, at most")
        open_ = slope.abs().amax((1, 2)) > stop.tolerance
        # A step too short to change the weights: rounding has the last word.
        open_ &= length > 1e-8
        found[left[~open_]] = here[~open_]
        if not bool(open_.any()):
            return found
        if not bool(open_.all()):
            left, here, value, slope, length, way = (one[open_] for one in (left, here, value, slope, length, way))
            steps = [(step[open_], change[open_]) for step, change in steps]
        trial = here + length[:, None, None] * way
        new_value, new_slope = problem.evaluate(trial, left)
        falls = (slope * way).sum((1, 2))
        noise = 1e-12 if problem.double else 1e-7
        good = new_value <= value + 1e-4 * length * falls + noise * value.abs()
        step = torch.where(good[:, None, None], trial - here, 0.0)
        steps = [*steps, (step, torch.where(good[:, None, None], new_slope - slope, 0.0))][-MEMORY:]
        here = here + step
        value, slope = torch.where(good, new_value, value), torch.where(good[:, None, None], new_slope, slope)
        fresh = -_direction(slope, steps, bound)
        way = torch.where(good[:, None, None], fresh, way)
        length = torch.where(good, 1.0, length / 3)
    found[left] = here
    return found


def _direction(slope: Tensor, steps: list[tuple[Tensor, Tensor]], bound: Tensor) -> Tensor:
    """Return the inverse Hessian's guess times the slope, problem by problem (the two-loop recursion)."""
    way = slope.clone()
    shares = []
    for step, change in reversed(steps):
        inner = (step * change).sum((1, 2))
        rate = torch.where(inner > 1e-14, 1 / inner.clamp(min=1e-300), 0.0)
        share = rate * (step * way).sum((1, 2))
        way = way - share[:, None, None] * change
        shares.append((share, rate))
    last = torch.ones(len(way), dtype=torch.float64)
    solved = _solve(bound, way)
    if steps:
        step, change = steps[-1]
        curved = (change * _solve(bound, change)).sum((1, 2))
        inner = (step * change).sum((1, 2))
        last = torch.where((curved > 1e-300) & (inner > 0), inner / curved.clamp(min=1e-300), 1.0)
    way = solved * last[:, None, None]
    for (step, change), (share, rate) in zip(steps, reversed(shares), strict=True):
        again = rate * (change * way).sum((1, 2))
        way = way + (share - again)[:, None, None] * step
    return way


def _solve(bound: Tensor, values: Tensor) -> Tensor:
    count, inputs, columns = values.shape
    flat = values.permute(1, 0, 2).reshape(inputs, -1)
    return torch.cholesky_solve(flat, bound).reshape(inputs, count, columns).permute(1, 0, 2)


def _proximal(problem: Problem, weights: Tensor, stop: Stop, on_progress: Progress | None, label: str) -> Tensor:
    gram, rows = problem.gram()
    steepest = float(torch.linalg.eigvalsh(gram)[-1]) * problem.loss.curvature + problem.l2 / rows
    size, cut = 1 / steepest, problem.l1 / rows / steepest
    found, left = weights.clone(), torch.arange(len(weights))
    here, ahead = weights.clone(), weights.clone()
    pace = torch.ones(len(left), dtype=torch.float64)
    for done in range(stop.passes):
        report(on_progress, done + 1, stop.passes, f"passes of {label}, at most")
        _, slope = problem.evaluate(ahead, left)
        moved = ahead - size * slope
        shrunk = moved.sign() * (moved.abs() - cut).clamp(min=0)
        shrunk[:, -1] = moved[:, -1]
        # The gradient mapping, which is 0 at the minimum as the slope is without the L1 penalty.
        still = ((ahead - shrunk).abs().amax((1, 2)) / size) <= stop.tolerance
        uphill = ((ahead - shrunk) * (shrunk - here)).sum((1, 2)) > 0
        pace = torch.where(uphill, 1.0, pace)
        following = (1 + (1 + 4 * pace**2).sqrt()) / 2
        ahead = shrunk + ((pace - 1) / following)[:, None, None] * (shrunk - here)
        here, pace = shrunk, following
        found[left] = here
        if bool(still.all()):
            return found
        left, here, ahead, pace = left[~still], here[~still], ahead[~still], pace[~still]
    return found
