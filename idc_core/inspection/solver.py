"""Train many penalised regressions on the same units at once: one pass over the rows serves all of them.

Every problem (a hypothesis) has weights for each unit and a constant, times as many columns as its loss needs: one for
binary hypotheses and numbers, one per class otherwise. A pass multiplies each block of rows with the weights of all
problems that are not yet finished: two matrix products per block, whatever the number of problems.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from idc_core.base.progress import Progress, report

Blocks = Callable[[], Iterable[tuple[Tensor, Tensor]]]
"""Starts a pass: blocks of units (rows, U), not standardised, and all behaviours (rows, H)."""

_MEMORY = 8
"""Steps that the quasi-Newton direction remembers."""

_STEEPEST = 0.9
"""A step went too far where the loss rises at its end with more than this share of the slope it began to fall with."""


@dataclass(frozen=True)
class Scale:
    """Means and standard deviations of the units over so many rows, float64 (U,); a unit that never changes has 1."""

    mean: Tensor
    deviation: Tensor
    rows: int

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
        return cls(mean + about, torch.where(still, 1.0, variance.sqrt()), count)

    def apply(self, units: Tensor, kind: torch.dtype) -> Tensor:
        """Return standardised units with a column of ones, (rows, U + 1)."""
        moved = (units.to(kind) - self.mean.to(kind)) / self.deviation.to(kind)
        return torch.cat([moved, torch.ones(len(units), 1, dtype=kind)], 1)


@dataclass(frozen=True)
class Loss:
    """A convex loss over rows, by its slope.

    `slope` takes scores (P, columns, rows), which it may overwrite, and behaviours (P, rows); `curvature` bounds the
    second derivative of one row's loss in a score.
    """

    columns: int
    slope: Callable[[Tensor, Tensor], Tensor]
    curvature: float


# In place: every array less is one that need not go through memory, in every pass.
def _yes_no(scores: Tensor, wanted: Tensor) -> Tensor:
    return scores.sigmoid_().sub_(wanted[:, None])


def _classes(scores: Tensor, wanted: Tensor) -> Tensor:
    target = F.one_hot(wanted.long(), scores.shape[1]).movedim(-1, 1)
    return scores.softmax(1).sub_(target)


def _square(scores: Tensor, wanted: Tensor) -> Tensor:
    return scores.sub_(wanted[:, None])


YES_NO = Loss(1, _yes_no, 0.25)
SQUARE = Loss(1, _square, 1.0)


def of_classes(count: int) -> Loss:
    """Return the cross entropy of so many classes."""
    return Loss(count, _classes, 0.5)


@dataclass(frozen=True)
class Problem:
    """What is minimised for every problem: mean loss + (l2 / 2 |w|^2 + l1 |w|) / rows, the constant unpenalised.

    `hypotheses`, int64 (P,), are the problems' behaviours in rising order.
    """

    blocks: Blocks
    hypotheses: Tensor
    scale: Scale
    loss: Loss
    l2: float
    l1: float
    double: bool

    @property
    def kind(self) -> torch.dtype:
        """Precision of the passes; sums over blocks and weights are always in double precision."""
        return torch.float64 if self.double else torch.float32

    def slope(self, weights: Tensor, which: Tensor) -> Tensor:
        """Return the slope of the smooth part for problems `which` at weights (P, columns, U + 1), shaped like them."""
        count, columns, inputs = weights.shape
        flat = weights.reshape(-1, inputs)
        # Standardising is folded into the weights, so that no block is copied.
        mean, deviation = self.scale.mean, self.scale.deviation
        scaled = flat[:, :-1] / deviation
        factors, constant = scaled.to(self.kind), (flat[:, -1] - scaled @ mean).to(self.kind)[:, None]
        slope, rests, rows = torch.zeros_like(scaled), torch.zeros_like(flat[:, -1]), 0
        columns_left = self.hypotheses[which]
        for units, behaviours in self.blocks():
            x, targets = units.to(self.kind), behaviours.T
            # Picked no sooner: fewer are left from pass to pass.
            targets = targets if len(columns_left) == len(targets) else targets.index_select(0, columns_left)
            scores = torch.addmm(constant, factors, x.T).reshape(count, columns, -1)
            gradient = self.loss.slope(scores, targets.to(self.kind)).reshape(-1, len(x))
            slope += gradient @ x
            rests += gradient.sum(1)
            rows += len(x)
        slope = (slope - rests[:, None] * mean) / deviation + self.l2 * flat[:, :-1]
        return torch.cat([slope, rests[:, None]], 1).reshape(weights.shape) / rows

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
    """Minimise all problems together from `weights`, float64 (P, columns, D).

    Without an L1 penalty: L-BFGS for every problem (J. Nocedal, Updating quasi-Newton matrices with limited storage,
    1980), all with one first guess of the curvature, D. Böhning's bound (Multinomial logistic regression algorithm,
    1992) on the inverse Hessian. Steps are judged by slopes alone, so that no pass has to compute the loss itself: by
    the first of the approximate Wolfe conditions (W. Hager, H. Zhang, A new conjugate gradient method with guaranteed
    descent and an efficient line search, 2005; delta 0.05). With an L1 penalty: accelerated proximal gradient with
    restarts (B. O'Donoghue, E. Candès, Adaptive restart for accelerated gradient schemes, 2015).
    """
    work = _proximal if problem.l1 else _quasi_newton
    return work(problem, weights, stop, on_progress, label)


def _quasi_newton(problem: Problem, weights: Tensor, stop: Stop, on_progress: Progress | None, label: str) -> Tensor:
    preconditioner = _preconditioner(problem)
    best, left, here = weights.clone(), torch.arange(len(weights)), weights.clone()
    slope = problem.slope(here, left)
    steps: list[_Step] = []
    length = torch.ones(len(left), dtype=torch.float64)
    whitened = slope @ preconditioner.T
    way = _direction(whitened, steps)
    for done in range(stop.passes):
        report(on_progress, done + 1, stop.passes, f"passes of {label}, at most")
        open_ = slope.abs().amax((1, 2)) > stop.tolerance
        # A step too short to change the weights: rounding has the last word.
        open_ &= length > 1e-8
        best[left[~open_]] = here[~open_]
        if not bool(open_.any()):
            return best
        if not bool(open_.all()):
            left, here, slope, length = (tensor[open_] for tensor in (left, here, slope, length))
            whitened, way = whitened[open_], way[open_]
            steps = [step.of(open_) for step in steps]
        moved = length[:, None, None] * way
        trial = here + moved @ preconditioner
        new_slope = problem.slope(trial, left)
        new_whitened = new_slope @ preconditioner.T
        falls, still_falls = _dot(whitened, way), _dot(new_whitened, way)
        good = still_falls <= -_STEEPEST * falls
        chosen = good[:, None, None]
        steps = [*steps, _Step.of_change(moved * chosen, (new_whitened - whitened) * chosen)][-_MEMORY:]
        here, slope = torch.where(chosen, trial, here), torch.where(chosen, new_slope, slope)
        whitened = torch.where(chosen, new_whitened, whitened)
        way = torch.where(chosen, _direction(whitened, steps), way)
        # Too far: where a straight slope would have met 0.
        length = torch.where(good, 1.0, length * (falls / (falls - still_falls)).clamp(0.1, 0.5))
    best[left] = here
    return best


def _preconditioner(problem: Problem) -> Tensor:
    """Return the map (D, D) to weights from where Böhning's bound on the curvature is the same in all directions."""
    gram, rows = problem.gram(16_384)
    penalty = torch.full((len(gram),), problem.l2 / rows, dtype=torch.float64)
    penalty[-1] = 0
    root: Tensor = torch.linalg.cholesky(problem.loss.curvature * gram + torch.diag(penalty + 1e-6))
    return root.inverse().tril()


@dataclass(frozen=True)
class _Step:
    """A step taken and the change of slope it brought, (P, columns, D), zeros of a problem that took none."""

    step: Tensor
    change: Tensor
    rate: Tensor
    size: Tensor

    @classmethod
    def of_change(cls, step: Tensor, change: Tensor) -> _Step:
        """Keep a step with what the direction needs of it."""
        inner, squares = _dot(step, change), _dot(change, change)
        curved = inner > 1e-6 * (_dot(step, step) * squares).sqrt()
        rate = torch.where(curved, 1 / torch.where(curved, inner, 1), 0)
        return cls(step, change, rate, torch.where(curved, inner / torch.where(curved, squares, 1), 1))

    def of(self, which: Tensor) -> _Step:
        """Return it for some problems alone."""
        return _Step(self.step[which], self.change[which], self.rate[which], self.size[which])


def _direction(slope: Tensor, steps: list[_Step]) -> Tensor:
    """Return minus the inverse Hessian's guess times the slope, problem by problem (the two-loop recursion)."""
    way = -slope
    shares = []
    for step in reversed(steps):
        share = step.rate * _dot(step.step, way)
        way.addcmul_(share[:, None, None], step.change, value=-1)
        shares.append(share)
    if steps:
        way *= steps[-1].size[:, None, None]
    for step, share in zip(steps, reversed(shares), strict=True):
        way.addcmul_((share - step.rate * _dot(step.change, way))[:, None, None], step.step)
    return way


def _dot(one: Tensor, other: Tensor) -> Tensor:
    inner: Tensor = torch.linalg.vecdot(one.flatten(1), other.flatten(1))
    return inner


def _proximal(problem: Problem, weights: Tensor, stop: Stop, on_progress: Progress | None, label: str) -> Tensor:
    gram, rows = problem.gram()
    steepest = float(torch.linalg.eigvalsh(gram)[-1]) * problem.loss.curvature + problem.l2 / rows
    size, cut = 1 / steepest, problem.l1 / rows / steepest
    best, left = weights.clone(), torch.arange(len(weights))
    here, ahead = weights.clone(), weights.clone()
    pace = torch.ones(len(left), dtype=torch.float64)
    for done in range(stop.passes):
        report(on_progress, done + 1, stop.passes, f"passes of {label}, at most")
        slope = problem.slope(ahead, left)
        moved = ahead - size * slope
        shrunk = moved.sign() * (moved.abs() - cut).clamp(min=0)
        shrunk[..., -1] = moved[..., -1]
        # The gradient mapping, which is 0 at the minimum as the slope is without the L1 penalty.
        still = ((ahead - shrunk).abs().amax((1, 2)) / size) <= stop.tolerance
        uphill = ((ahead - shrunk) * (shrunk - here)).sum((1, 2)) > 0
        pace = torch.where(uphill, 1.0, pace)
        following = (1 + (1 + 4 * pace**2).sqrt()) / 2
        ahead = shrunk + ((pace - 1) / following)[:, None, None] * (shrunk - here)
        here, pace = shrunk, following
        best[left] = here
        if bool(still.all()):
            return best
        left, here, ahead, pace = left[~still], here[~still], ahead[~still], pace[~still]
    return best
