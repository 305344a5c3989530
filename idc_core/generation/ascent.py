"""Joint gradient ascent: how far each seed of a differential search has come, and one more step for all of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from idc_core.base.parameters import finite, is_number, shown, whole_number
from idc_core.base.progress import Progress, report
from idc_core.base.ranges import ITERATIONS, SEED, SearchOptions
from idc_core.coverage.neuron import NC
from idc_core.coverage.registry import Criterion
from idc_core.errors import CancelledError, ModelError, SettingError, UnsupportedOperationError
from idc_core.generation.constraints import Constraint, find_constraint
from idc_core.generation.guidance import Aims, Guide, Targets, make_guide
from idc_core.generation.measures import Answers
from idc_core.generation.objectives import OBJECTIVES, Raised, SearchedNetwork
from idc_core.lrp.session import without_gradient
from idc_core.tracing.neurons import countable_layers


@dataclass(frozen=True)
class AscentSettings(SearchOptions):
    """Settings of a differential search, as `differential_search` takes them; SettingError where one is refused.

    `turn` is the number of the model that is to lose the class, by default one at random for each seed.
    """

    constraint: str | Constraint = "light"
    turn: int | None = None

    def __post_init__(self) -> None:
        for name in ("weight_difference", "weight_coverage"):
            finite(f"{name} must be a finite number", getattr(self, name), 0)
        for name in ("step", "bound"):
            if not (is_number(value := getattr(self, name)) and value > 0):
                raise SettingError(f"{name} must be a finite number above 0, not {shown(value)}.")
        finite("threshold must be a finite number", self.threshold)
        SEED.check(self.seed)
        whole_number("iterations", self.iterations, 0, ITERATIONS.high)

    def check_models(self, models: Sequence[nn.Module]) -> None:
        """Refuse fewer than two models, and a `turn` that is none of them."""
        if not isinstance(models, Sequence) or len(models) < 2:
            raise SettingError("A difference needs at least two models; give a list of them.")
        if self.turn is not None:
            whole_number("turn", self.turn, 0, len(models) - 1, ", the number of a model")


@dataclass(eq=False)
class Arrived:
    """What the seeds of a search have led to; fields as those of `Disagreements`."""

    inputs: NDArray[np.float32]
    seed_index: NDArray[np.int64]
    predictions: Answers
    seed_predictions: Answers
    iterations: NDArray[np.int64]
    turned: NDArray[np.int64]

    def merge(self, other: Self) -> Self:
        """Take in what the seeds that come next have led to."""
        other.seed_index = other.seed_index + len(self.turned)
        for name, mine in vars(self).items():
            setattr(self, name, np.concatenate([mine, getattr(other, name)]))
        return self


@dataclass(frozen=True)
class _Task:
    """What the networks predict: classes, or numbers that disagree where they differ by more than `bound`."""

    bound: float | None

    def predictions(self, scores: Sequence[Tensor]) -> Tensor:
        """Return classes or values, (n, models)."""
        if self.bound is None:
            return torch.stack([output.argmax(1) for output in scores], 1)
        return torch.stack([output[:, 0] for output in scores], 1)

    def disagree(self, predictions: Tensor) -> Tensor:
        """Return which rows of predictions disagree, bool (n,)."""
        if self.bound is None:
            return (predictions != predictions[:, :1]).any(1)
        return predictions.amax(1) - predictions.amin(1) > self.bound


class JointAscent:
    """The state of one search: the seeds without a disagreement, and how far each has come.

    Parameters
    ----------
    models : sequence of Module
    seeds : Tensor, float32 (n, C, H, W)
        Pictures of 8 bits.
    settings : AscentSettings
    guidance, batch_size
        As `differential_search` takes them.
    first : int
        Number of the first of these seeds, where they are a part of a search's.

    Attributes
    ----------
    taken : int
        Steps taken.
    active : Tensor, int64 (k,)
        Positions of the seeds without a disagreement.
    covered : list of (list of ndarray), one a model
        Targets that the disagreements have covered, as its guide numbers them, until the caller takes them away.
    """

    def __init__(
        self,
        models: Sequence[nn.Module],
        seeds: Tensor,
        settings: AscentSettings,
        guidance: Sequence[Criterion] | None = None,
        batch_size: int | None = None,
        first: int = 0,
    ) -> None:
        settings.check_models(models)
        self.seeds, self.settings = seeds, settings
        self.rule, self.terms = find_constraint(settings.constraint), OBJECTIVES[settings.objective].terms
        guided = settings.weight_coverage > 0
        self.guides = _guides(models, guidance, settings.threshold, seeds[:1]) if guided else [None] * len(models)
        self.models = [
            SearchedNetwork(model, seeds, guide.layers if guide else (), batch_size)
            for model, guide in zip(models, self.guides, strict=True)
        ]
        scores = [model.scores(seeds) for model in self.models]
        shapes = {output.shape[1] for output in scores}
        if len(shapes) > 1:
            raise ModelError(f"The models have {sorted(shapes)} outputs; expected models for one task.")
        self.task = _Task(settings.bound if shapes == {1} else None)
        self.predictions = self.task.predictions(scores)
        self.classes = torch.zeros(len(seeds), dtype=torch.int64) if shapes == {1} else self.predictions[:, 0]
        draws = _draws(settings.seed, first, len(seeds), len(models))
        self.turned = np.minimum((draws[:, 0] * len(models)).astype(np.int64), len(models) - 1)
        if settings.turn is not None:
            self.turned[:] = settings.turn
        self.draws = draws[:, 1:]
        self.state = self.rule.start(seeds)
        self.fixed: Tensor | None = None
        self.gradient: Tensor | None = None  # of the objective, with respect to the active seeds' pictures as they are
        self.active, self.taken = torch.arange(len(seeds)), 0
        self.activations: dict[int, NDArray[np.float32]] = {}
        self.disagreements: list[tuple[Tensor, Tensor, Tensor, int]] = []
        self.covered: list[list[Targets]] = [[] for _ in models]
        self._keep(seeds, self.predictions)

    def run(self, on_progress: Progress | None, publish: Callable[[], None] | None) -> bool:
        """Take steps until every seed is done or the steps are used up; return whether the caller stopped it."""
        published, iterations = 0, self.settings.iterations
        try:
            while len(self.active) and self.taken < iterations:
                self.step()
                if publish is not None and self.count > published:
                    published = self.count
                    publish()
                report(on_progress, self.taken, iterations, said_steps(self.count, len(self.seeds)))
        except CancelledError:
            return True
        return False

    @property
    def count(self) -> int:
        """Number of disagreements so far."""
        return sum(len(rows) for rows, *_ in self.disagreements)

    def cover(self, covered: Sequence[Sequence[Targets]]) -> None:
        """Have the guide of each model know which targets others have covered."""
        for guide, parts in zip(self.guides, covered, strict=True):
            if guide is not None:
                for targets in parts:
                    guide.note(targets)

    def step(self) -> None:
        """Move every active seed one step up the gradient, and keep the pictures that the models disagree on."""
        self.taken += 1
        if not len(self.active):
            return
        if self.taken == 1:
            self._look(self.seeds[self.active], False)
        self._advance()
        pictures = self.rule.picture(self.seeds[self.active], self.state[self.active])
        if self.rule.steers_once or self.taken == self.settings.iterations:
            left = self._keep(pictures, self.task.predictions([model.scores(pictures) for model in self.models]))
            self.gradient = None if self.gradient is None else self.gradient[left]
        else:
            self._look(pictures, True)

    def _advance(self) -> None:
        """Move every active seed's state one step up the gradient."""
        if self.gradient is None:
            return
        seeds = self.seeds[self.active]
        if self.fixed is None:
            fixed = self.rule.prepare(seeds, self.gradient)
            self.fixed = fixed.new_zeros(len(self.seeds), *fixed.shape[1:])
            self.fixed[self.active] = fixed
        self.state[self.active] = self.rule.advance(
            seeds, self.state[self.active], self.fixed[self.active], self.gradient, self.settings.step
        )

    def _look(self, pictures: Tensor, keep: bool) -> None:
        """Run the models on the pictures, remember the gradients, and `keep` what they disagree on."""
        scores, total = [], torch.zeros_like(pictures)
        for number, model in enumerate(self.models):
            outputs, gradient = model.climb(pictures, self._objective(number))
            scores.append(outputs)
            total += gradient
        left = self._keep(pictures, self.task.predictions(scores)) if keep else slice(None)
        self.gradient = total[left]

    def _objective(self, number: int) -> Raised:
        """Return the part of the objective that one model adds."""
        classes, aims = self.classes[self.active], self._aims(number)
        turned = torch.as_tensor(self.turned[self.active.numpy()] == number)
        others, weights = len(self.models) - 1, self.settings

        def objective(scores: Tensor, activations: Tensor, rows: slice) -> Tensor:
            if not scores.requires_grad:
                raise UnsupportedOperationError(f"Model {number + 1}: {without_gradient(self.models[number].model)}")
            own = classes[rows].to(scores.device)
            lose = turned[rows].to(scores.device)
            keep, hold = self.terms(scores, own, others)
            value = torch.where(lose, -weights.weight_difference * hold, keep)
            return value if aims is None else value + weights.weight_coverage * aims.value(activations, rows)

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

    def _keep(self, pictures: Tensor, predictions: Tensor) -> Tensor:
        """Keep the pictures that the models disagree on; return which are left, bool (active,)."""
        differ = self.task.disagree(predictions)
        if differ.any():
            self.disagreements.append((self.active[differ], pictures[differ], predictions[differ], self.taken))
            for guide, covered in zip(self.guides, self.covered, strict=True):
                if guide is not None:
                    covered.append(guide.account(pictures[differ]))
            self.active = self.active[~differ]
        return ~differ

    def arrived(self) -> Arrived:
        """Return the disagreements so far, in the order of the seeds."""
        some = self.disagreements
        rows = torch.cat([self.active[:0], *(part[0] for part in some)])
        order = torch.argsort(rows)
        taken = [np.full(len(part[0]), part[3], np.int64) for part in some]
        return Arrived(
            inputs=torch.cat([self.seeds[:0], *(part[1] for part in some)])[order].numpy(),
            seed_index=rows[order].numpy(),
            predictions=torch.cat([self.predictions[:0], *(part[2] for part in some)])[order].numpy(),
            seed_predictions=self.predictions.numpy(),
            iterations=np.concatenate([np.zeros(0, np.int64), *taken])[order.numpy()],
            turned=self.turned,
        )


def said_steps(count: int, seeds: int) -> str:
    """Return how progress names the steps of a search."""
    return f"steps; {count:,} of {seeds:,} seeds done"


def _draws(seed: int, first: int, count: int, models: int) -> NDArray[np.float64]:
    """Return random numbers in 0..1, (count, 1 + models), each row from the seed and its own number alone."""
    return np.stack(
        [np.random.default_rng([seed, position]).random(1 + models) for position in range(first, first + count)]
    )


def _guides(
    models: Sequence[nn.Module], guidance: Sequence[Criterion] | None, threshold: float, example: Tensor
) -> list[Guide | None]:
    """Return the guide of each model, None where it has none."""
    if guidance is None:
        named = {model: countable_layers(model) for model in models}
        guidance = [NC(model, layers, threshold) for model, layers in named.items() if layers]
    if not isinstance(guidance, Sequence) or not all(isinstance(one, Criterion) for one in guidance):
        raise SettingError(f"Expected a list of criteria to be guided by, not {shown(guidance)}.")
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
