"""Differential search: pictures on which networks for one task disagree, for all seeds at once."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from idc_core.coverage.neuron import NC
from idc_core.coverage.registry import Criterion
from idc_core.errors import CancelledError, ModelError, SettingError
from idc_core.generation.constraints import Constraint, as_seeds, find_constraint
from idc_core.generation.guidance import Aims, Guide, make_guide
from idc_core.generation.objectives import OBJECTIVES, Raised, SearchedNetwork, Terms
from idc_core.limits import ITERATIONS
from idc_core.parameters import whole_number
from idc_core.progress import Progress, report
from idc_core.tracing.neurons import countable_layers


@dataclass(frozen=True, eq=False)
class Disagreements:
    """Pictures on which the models disagree, found by a differential search."""

    inputs: NDArray[np.float32]  # (n, C, H, W), pictures of 8 bits, values k / 255
    seed_index: NDArray[np.int64]  # (n,), position of each one's seed, ascending
    predictions: NDArray[Any]  # int64 or float32 (n, models), class by each model; for regression its value
    seed_predictions: NDArray[Any]  # int64 or float32 (seeds, models)
    iterations: NDArray[np.int64]  # (n,), steps taken; 0 where the models disagree on the seed itself
    turned: NDArray[np.int64]  # (seeds,), the model that was to lose each seed's class
    seeds: int  # number of seeds searched from
    seconds: float
    stopped: bool  # whether the caller stopped the search before its end
    settings: dict[str, Any]  # every setting, by name

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def share(self) -> float:
        """Share of the seeds that led to a disagreement, 0..1."""
        return len(self) / self.seeds

    @property
    def message(self) -> str:
        """The result of the search in one sentence."""
        until = "before the search was stopped" if self.stopped else f"within {self.settings['iterations']} steps"
        if not len(self):
            return f"No difference found: the models agree on every picture seen {until}, from {self.seeds:,} seeds."
        return f"{len(self):,} of {self.seeds:,} seeds led to a picture on which the models disagree {until}."


@dataclass(frozen=True)
class Task:
    """What the networks predict: classes, or numbers that disagree where they differ by more than `bound`."""

    bound: float | None

    def predictions(self, scores: Sequence[Tensor]) -> Tensor:
        """Return classes or values, (n, models)."""
        if self.bound is None:
            return torch.stack([one.argmax(1) for one in scores], 1)
        return torch.stack([one[:, 0] for one in scores], 1)

    def disagree(self, predictions: Tensor) -> Tensor:
        """Return which rows of predictions disagree, bool (n,)."""
        if self.bound is None:
            return (predictions != predictions[:, :1]).any(1)
        return predictions.amax(1) - predictions.amin(1) > self.bound


def differential_search(
    models: Sequence[nn.Module],
    seeds: Any,
    constraint: str | Constraint = "light",
    weight_difference: float = 1.0,
    weight_coverage: float = 0.1,
    step: float = 10.0,
    iterations: int = 50,
    threshold: float = 0.0,
    seed: int = 0,
    *,
    guidance: Sequence[Criterion] | None = None,
    objective: str = "margin",
    turn: int | None = None,
    bound: float = 0.2,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
    on_disagreements: Callable[[Disagreements], None] | None = None,
) -> Disagreements:
    """Change seeds, within a constraint, until the models disagree.

    Parameters
    ----------
    models : sequence of Module
        Two or more for one task; left unchanged.
    seeds : Tensor, array or Dataset, (n, C, H, W)
        Pictures in 0..1, rounded to 8 bits.
    constraint : str or Constraint
        A name from `CONSTRAINTS`, or one with parameters of its own.
    weight_difference, weight_coverage : float
        lambda1 and lambda2 of the paper; at least 0.
    step : float
        Length of a step in grey levels of 255 (root mean square over what the constraint leaves free).
    iterations : int
        Most steps from one seed.
    threshold : float
        Activation above which a neuron counts as covered, where no guidance is given.
    seed : int
        Of the random choices: the model that is to lose the class, and the uncovered targets.
    guidance : sequence of Criterion, optional
        Criteria whose uncovered targets are aimed at, at most one per model; they are not changed. Default: neuron
        coverage of all convolutions and dense layers of each model, by the disagreements.
    objective : str
        A name from `OBJECTIVES`; "scores" is the paper's.
    turn : int, optional
        Number of the model that is to lose the class. Default: one at random for each seed.
    bound : float
        For regression: by how much predictions must differ, in their unit.
    batch_size, on_progress
        As in `idc_core.trace`; progress is told after every step.
    on_disagreements : callable, optional
        Called with all disagreements so far after every step that adds one.

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
    _check(models, weight_difference, weight_coverage, step, iterations, turn, bound)
    pictures = as_seeds(seeds)
    rule, terms = find_constraint(constraint), OBJECTIVES[objective].terms
    guides = _guides(models, guidance, threshold, pictures[:1]) if weight_coverage else [None] * len(models)
    searched = [
        SearchedNetwork(model, pictures[:1], guide.layers if guide else (), batch_size)
        for model, guide in zip(models, guides, strict=True)
    ]
    search = _Search(
        searched, guides, pictures, rule, weight_difference, weight_coverage, step, bound, seed, turn, terms
    )
    settings = {
        "constraint": rule,
        "weight_difference": weight_difference,
        "weight_coverage": weight_coverage,
        "step": step,
        "iterations": iterations,
        "threshold": threshold,
        "seed": seed,
        "turn": turn,
        "bound": bound,
        "objective": objective,
        "guidance": None if guidance is None else tuple(one.card.name for one in guidance),
    }

    def result(stopped: bool) -> Disagreements:
        return search.result(settings, stopped, time.perf_counter() - started)

    publish = None if on_disagreements is None else lambda: on_disagreements(result(True))
    return result(search.run(iterations, on_progress, publish))


class _Search:
    """The state of one search: the seeds without a disagreement, and how far each has come."""

    def __init__(
        self,
        models: list[SearchedNetwork],
        guides: Sequence[Guide | None],
        seeds: Tensor,
        rule: Constraint,
        weight_difference: float,
        weight_coverage: float,
        step: float,
        bound: float,
        seed: int,
        turn: int | None,
        terms: Terms,
    ) -> None:
        self.terms = terms
        self.models, self.guides, self.seeds, self.rule, self.step = models, guides, seeds, rule, step
        self.weight_difference, self.weight_coverage = weight_difference, weight_coverage
        scores = [model.scores(seeds) for model in models]
        shapes = {one.shape[1] for one in scores}
        if len(shapes) > 1:
            raise ModelError(f"The models have {sorted(shapes)} outputs; expected models for one task.")
        self.task = Task(bound if shapes == {1} else None)
        self.predictions = self.task.predictions(scores)
        self.classes = torch.zeros(len(seeds), dtype=torch.int64) if shapes == {1} else self.predictions[:, 0]
        draws = _draws(seed, len(seeds), len(models))
        self.turned = np.minimum((draws[:, 0] * len(models)).astype(np.int64), len(models) - 1)
        if turn is not None:
            self.turned[:] = turn
        self.draws = draws[:, 1:]
        self.state = rule.start(seeds)
        self.fixed: Tensor | None = None
        self.active = torch.arange(len(seeds))
        self.activations: dict[int, NDArray[np.float32]] = {}
        self.disagreements: list[tuple[Tensor, Tensor, Tensor, int]] = []

    def run(self, iterations: int, on_progress: Progress | None, publish: Callable[[], None] | None) -> bool:
        """Take steps until every seed is done or the steps are used up; return whether the caller stopped it."""
        self._keep(self.seeds, self.predictions, 0)
        told = 0
        try:
            for taken in range(iterations):
                if not len(self.active):
                    break
                self._advance(taken)
                pictures = self.rule.picture(self.seeds[self.active], self.state[self.active])
                if self.rule.steers_once or taken + 1 == iterations:
                    predictions = self.task.predictions([one.scores(pictures) for one in self.models])
                    left = self._keep(pictures, predictions, taken + 1)
                    self.gradient = None if self.gradient is None else self.gradient[left]
                else:
                    self._look(pictures, taken + 1)
                if publish is not None and self.count > told:
                    told = self.count
                    publish()
                report(on_progress, taken + 1, iterations, f"steps; {self.count:,} of {len(self.seeds):,} seeds done")
        except CancelledError:
            return True
        return False

    @property
    def count(self) -> int:
        """Number of disagreements so far."""
        return sum(len(rows) for rows, *_ in self.disagreements)

    gradient: Tensor | None = None
    """Of the objective with respect to the active seeds' pictures as they are now."""

    def _advance(self, taken: int) -> None:
        """Move every active seed's state one step up the gradient."""
        if taken == 0:
            self._look(self.seeds[self.active], None)
        if self.gradient is None:
            return
        seeds = self.seeds[self.active]
        if self.fixed is None:
            fixed = self.rule.prepare(seeds, self.gradient)
            self.fixed = fixed.new_zeros(len(self.seeds), *fixed.shape[1:])
            self.fixed[self.active] = fixed
        self.state[self.active] = self.rule.advance(
            seeds, self.state[self.active], self.fixed[self.active], self.gradient, self.step
        )

    def _look(self, pictures: Tensor, taken: int | None) -> None:
        """Run the models on the pictures, keep what they disagree on, and remember the gradients of the rest."""
        scores, total = [], torch.zeros_like(pictures)
        for number, model in enumerate(self.models):
            outputs, gradient = model.climb(pictures, self._objective(number))
            scores.append(outputs)
            total += gradient
        left = self._keep(pictures, self.task.predictions(scores), taken) if taken is not None else slice(None)
        self.gradient = total[left]

    def _objective(self, number: int) -> Raised:
        """Return the part of the objective that one model adds."""
        classes, aims = self.classes[self.active], self._aims(number)
        turned = torch.as_tensor(self.turned[self.active.numpy()] == number)
        others = len(self.models) - 1

        def objective(scores: Tensor, activations: Tensor, rows: slice) -> Tensor:
            own = classes[rows].to(scores.device)
            lose = turned[rows].to(scores.device)
            keep, hold = self.terms(scores, own, others)
            value = torch.where(lose, -self.weight_difference * hold, keep)
            return value if aims is None else value + self.weight_coverage * aims.value(activations, rows)

        return objective

    def _aims(self, number: int) -> Aims | None:
        guide = self.guides[number]
        if guide is None:
            return None
        active = self.active.numpy()

        def activations() -> NDArray[np.float32]:
            if number not in self.activations:
                self.activations[number] = self.models[number].activations(self.seeds).numpy()
            return np.asarray(self.activations[number][active])

        return guide.aims(self.draws[active, number], activations)

    def _keep(self, pictures: Tensor, predictions: Tensor, taken: int) -> Tensor:
        """Keep the pictures that the models disagree on; return which are left, bool (active,)."""
        differ = self.task.disagree(predictions)
        if differ.any():
            self.disagreements.append((self.active[differ], pictures[differ], predictions[differ], taken))
            for guide in self.guides:
                if guide is not None:
                    guide.account(pictures[differ])
            self.active = self.active[~differ]
        return ~differ

    def result(self, settings: dict[str, Any], stopped: bool, seconds: float) -> Disagreements:
        """Return the disagreements so far, in the order of the seeds."""
        some = self.disagreements
        rows = torch.cat([self.active[:0], *(one[0] for one in some)])
        order = torch.argsort(rows)
        taken = [np.full(len(one[0]), one[3], np.int64) for one in some]
        return Disagreements(
            inputs=torch.cat([self.seeds[:0], *(one[1] for one in some)])[order].numpy(),
            seed_index=rows[order].numpy(),
            predictions=torch.cat([self.predictions[:0], *(one[2] for one in some)])[order].numpy(),
            seed_predictions=self.predictions.numpy(),
            iterations=np.concatenate([np.zeros(0, np.int64), *taken])[order.numpy()],
            turned=self.turned,
            seeds=len(self.seeds),
            seconds=seconds,
            stopped=stopped,
            settings=settings,
        )


def _draws(seed: int, count: int, models: int) -> NDArray[np.float64]:
    """Return random numbers in 0..1, (count, 1 + models), each row from the seed and its own position alone."""
    return np.stack([np.random.default_rng([seed, position]).random(1 + models) for position in range(count)])


def _guides(
    models: Sequence[nn.Module], guidance: Sequence[Criterion] | None, threshold: float, example: Tensor
) -> list[Guide | None]:
    """Return the guide of each model, None where it has none."""
    if guidance is None:
        named = {model: countable_layers(model) for model in models}
        guidance = [NC(model, layers, threshold) for model, layers in named.items() if layers]
    guides: list[Guide | None] = [None] * len(models)
    for criterion in guidance:
        guide = make_guide(criterion, example)
        places = [number for number, model in enumerate(models) if model is guide.model]
        if not places or guides[places[0]] is not None:
            why = "belongs to none of the models" if not places else "is the second for its model"
            raise SettingError(f"{criterion.card.label} {why}; give at most one criterion per model.")
        for place in places:
            guides[place] = guide
    return guides


def _check(
    models: Sequence[nn.Module],
    weight_difference: float,
    weight_coverage: float,
    step: float,
    iterations: int,
    turn: int | None,
    bound: float,
) -> None:
    if isinstance(models, nn.Module) or len(models) < 2:
        raise SettingError("A difference needs at least two models; give a list of them.")
    weights = {"weight_difference": weight_difference, "weight_coverage": weight_coverage}
    for name, value in weights.items():
        if not (np.isfinite(value) and value >= 0):
            raise SettingError(f"{name} must be a finite number of at least 0, not {value!r}.")
    for name, value in {"step": step, "bound": bound}.items():
        if not (np.isfinite(value) and value > 0):
            raise SettingError(f"{name} must be a finite number above 0, not {value!r}.")
    whole_number("iterations", iterations, 0, ITERATIONS.high)
    if turn is not None and not 0 <= turn < len(models):
        raise SettingError(f"turn must be the number of a model, 0..{len(models) - 1}, not {turn!r}.")
