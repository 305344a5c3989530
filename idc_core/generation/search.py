"""Differential search: pictures on which networks for one task disagree, for all seeds at once."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.base.progress import Progress
from idc_core.coverage.registry import Criterion
from idc_core.generation.ascent import Arrived, AscentSettings, JointAscent
from idc_core.generation.constraints import Constraint, find_constraint
from idc_core.generation.measures import Answers


@dataclass(frozen=True, eq=False)
class Disagreements:
    """Pictures on which the models disagree, found by a differential search."""

    inputs: NDArray[np.float32]  # (n, C, H, W), pictures of 8 bits, values k / 255
    seed_index: NDArray[np.int64]  # (n,), position of each one's seed, ascending
    predictions: Answers  # (n, models), class by each model; for regression its value
    seed_predictions: Answers  # (seeds, models)
    iterations: NDArray[np.int64]  # (n,), steps taken; 0 where the models disagree on the seed itself
    turned: NDArray[np.int64]  # (seeds,), the model that was to lose each seed's class
    seeds: int  # number of seeds searched from
    seconds: float
    stopped: bool  # whether the caller stopped the search before its end
    settings: dict[str, Any]  # every setting, by name

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def made(self) -> NDArray[np.bool_]:
        """Which disagreements steps led to, bool (n,): on the other seeds the models disagree unchanged."""
        return self.iterations > 0

    @property
    def found(self) -> int:
        """Number of seeds that steps led from to a disagreement."""
        return int(self.made.sum())

    @property
    def agreed(self) -> int:
        """Number of seeds on which the models agree, so that there is something to find."""
        return self.seeds - (len(self) - self.found)

    @property
    def share(self) -> float:
        """Share of the seeds on which the models agree that led to a disagreement, 0..1; 0 where they agree on none."""
        return self.found / max(self.agreed, 1)

    @property
    def message(self) -> str:
        """The result of the search in one sentence."""
        until = "before the search was stopped" if self.stopped else f"within {self.settings['iterations']} steps"
        already = len(self) - self.found
        rest = f" They disagree on {already:,} more without any change." if already else ""
        if not self.found:
            said = f"No difference found: the models agree on every input seen {until}, from {self.agreed:,} seeds."
        else:
            said = f"{self.found:,} of {self.agreed:,} seeds led to an input on which the models disagree {until}."
        return said + rest


def differential_search(
    models: Sequence[nn.Module],
    seeds: object,
    constraint: str | Constraint = "light",
    *,
    guidance: Sequence[Criterion] | None = None,
    turn: int | None = None,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
    on_disagreements: Callable[[Disagreements], None] | None = None,
    **options: Any,
) -> Disagreements:
    """Change seeds, within a constraint, until the models disagree.

    Parameters
    ----------
    models : sequence of Module
        Two or more for one task; left unchanged.
    seeds : Tensor, array or Dataset, (n, C, H, W)
        Pictures in 0..1, rounded to 8 bits; or rows (n, features) of a table, with a `FeatureRanges` as constraint.
    constraint : str or Constraint
        A name from `CONSTRAINTS`, or one with parameters of its own.
    guidance : sequence of Criterion, optional
        Criteria whose uncovered targets are aimed at, at most one per model; they are not changed. Default: neuron
        coverage of all convolutions and dense layers of each model, by the disagreements.
    turn : int, optional
        Number of the model that is to lose the class. Default: one at random for each seed.
    batch_size, on_progress
        As in `idc_core.trace`; progress is told after every step.
    on_disagreements : callable, optional
        Called with all disagreements so far after every step that adds one.
    **options
        How the search climbs: the fields of `idc_core.base.ranges.SearchOptions`, such as ``iterations=100``.

    Returns
    -------
    Disagreements
        At most one per seed; empty, with a message, where the models agree on everything the search has seen.

    Raises
    ------
    IdcError
        If the seeds are no pictures, a parameter is outside what the method defines, or the networks have different
        numbers of outputs, or no gradients.

    Notes
    -----
    Algorithm 1 of the paper [1]_: with c the class of the seed and j the model that is to lose it, the gradient of
    ``sum(F_k(x)[c] for k != j) - lambda1 F_j(x)[c] + lambda2 sum(activations of uncovered neurons)`` is followed. As in
    the published program, F is the score before the softmax. The paper's sum has one fault: similar models have similar
    gradients, so that the many models that keep the class outvote the one that is to lose it. The default objective
    therefore asks of a model that keeps the class no more than a safe margin. Departures: every picture has 8 bits in
    0..1; steps are counted in grey levels and gradients normalised behind the constraint (the program's step of 10 is
    ten times the range from black to white); all seeds advance together, and neurons that disagreements of one step
    cover count as covered from the next step on. So disagreements do not depend on batches, up to rounding inside the
    networks, but on which seeds are searched together.

    References
    ----------
    .. [1] K. Pei, Y. Cao, J. Yang, S. Jana, "DeepXplore: Automated Whitebox Testing of Deep Learning Systems",
       SOSP 2017, Algorithm 1, equations 2 and 3.
    """
    started = time.perf_counter()
    settings = AscentSettings(constraint=constraint, turn=turn, **options)
    ascent = JointAscent(models, find_constraint(constraint).take(seeds), settings, guidance, batch_size)

    def result(stopped: bool) -> Disagreements:
        return disagreements(ascent.arrived(), settings, guidance, stopped, time.perf_counter() - started)

    publish = None if on_disagreements is None else lambda: on_disagreements(result(True))
    return result(ascent.run(on_progress, publish))


def disagreements(
    arrived: Arrived, settings: AscentSettings, guidance: Sequence[Criterion] | None, stopped: bool, seconds: float
) -> Disagreements:
    """Return what the seeds have led to, with how it was searched for."""
    named = {one.name: getattr(settings, one.name) for one in fields(settings)}
    named["constraint"] = find_constraint(settings.constraint)
    named["guidance"] = None if guidance is None else tuple(one.card.name for one in guidance)
    return Disagreements(**vars(arrived), seeds=len(arrived.turned), seconds=seconds, stopped=stopped, settings=named)
