"""What a search should cover besides: from a criterion's uncovered targets to activations that are pulled."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from idc_core.base.arrays import Array, Floats
from idc_core.base.progress import Progress
from idc_core.coverage import CRITERIA
from idc_core.coverage.cells import encode
from idc_core.coverage.closest_inputs import adjacent
from idc_core.coverage.idc import IDC
from idc_core.coverage.registry import Aim, Criterion
from idc_core.coverage.streamed import StreamedCriterion, TargetCriterion
from idc_core.errors import SettingError, UnsupportedOperationError
from idc_core.generation.cell_search import CellSpace
from idc_core.tracing.neurons import countable_layers
from idc_core.tracing.sources import Inputs, whole
from idc_core.tracing.trace import collect

Targets = Array
"""Numbers of a criterion's targets, int32 (k,), or codes of cells, as `encode` returns them; each once, ascending."""


@dataclass(frozen=True, eq=False)
class Aims:
    """Which neurons' activations each picture's search pulls, and where to."""

    neurons: Tensor  # (n, q), counted through the guide's layers
    goals: Tensor  # (n, q), an activation to come close to; inf to raise without end, -inf to lower
    units: Tensor  # (n, q), by what a distance to a goal is divided

    def value(self, activations: Tensor, rows: slice) -> Tensor:
        """Return what is to be raised, (n,), from activations (n, neurons) of the pictures in `rows`."""
        if not self.neurons.shape[1]:
            return activations.sum(1) * 0
        goals, units = (part[rows].to(activations) for part in (self.goals, self.units))
        now = activations.gather(1, self.neurons[rows].to(activations.device))
        near = -(now - torch.where(goals.isfinite(), goals, now.detach())).abs() / units
        return torch.where(goals.isfinite(), near, now * goals.sign()).sum(1)


class Guide(Protocol):
    """What tells a search of one network which activations to pull."""

    model: nn.Module
    layers: tuple[str, ...]

    def aims(self, draws: Floats, activations: Callable[[], NDArray[np.float32]]) -> Aims:
        """Return aims from one random number in 0..1 a picture; `activations` gives the seeds' (n, neurons)."""

    def account(self, pictures: Tensor) -> Targets:
        """Note the targets that new pictures cover; return those that were not covered."""

    def note(self, targets: Targets) -> Targets:
        """Note that targets are covered; return those that were not."""


class _TargetGuide:
    """Pull one neuron a picture towards a target that nothing has covered yet; the criterion is not changed.

    `example`, (1, C, H, W), is run where the criterion has seen nothing yet.
    """

    def __init__(self, criterion: TargetCriterion, aim: Aim, example: Tensor) -> None:
        self.criterion, self.aim = criterion, aim
        self.model, self.layers = criterion.model, criterion.layers
        if criterion.sizes is None:
            criterion._ready()
            self.covered = np.zeros(_total(criterion, example), bool)
        else:
            self.covered = criterion.reached
        self.span = _span(criterion)

    def aims(self, draws: Floats, activations: Callable[[], NDArray[np.float32]]) -> Aims:
        """Return one neuron a picture, drawn among the uncovered targets; none where everything is covered."""
        open_ = np.flatnonzero(~self.covered)
        if not len(open_):
            return _aims(np.zeros((len(draws), 0), np.int64), np.zeros((len(draws), 0)), np.ones((len(draws), 0)))
        targets = open_[np.minimum((draws * len(open_)).astype(np.int64), len(open_) - 1)]
        neurons, goals = self.aim(self.criterion, targets)
        units = np.ones(len(draws)) if self.span is None else self.span[neurons]
        return _aims(neurons[:, None], goals[:, None], units[:, None])

    def account(self, pictures: Tensor) -> Targets:
        """Note the targets that new pictures cover; return those that were not covered."""
        return self.note(self.criterion.profile(pictures).targets)

    def note(self, targets: Targets) -> Targets:
        """Note that targets are covered; return those that were not."""
        new = np.unique(targets[~self.covered[targets]])
        self.covered[new] = True
        return new


class _CellGuide:
    """Pull the important neurons towards an uncovered cell next to the seed's own; the criterion is not changed."""

    def __init__(self, criterion: IDC) -> None:
        self.model = criterion.model
        self.layers: tuple[str, ...] = (criterion.layer,)
        self.space = CellSpace.of(criterion)
        self.covered = {int(code) for code in criterion.counts.codes}
        self.criterion = criterion

    def aims(self, draws: Floats, activations: Callable[[], NDArray[np.float32]]) -> Aims:
        """Return the centroids of an uncovered cell beside each seed's own; of its own where all those are covered."""
        sizes = self.space.sizes
        own = self.space.assign(activations()[:, self.space.important])
        chosen = np.empty_like(own)
        for row, cell in enumerate(own):
            beside = np.array(adjacent(sizes, tuple(cell)), np.uint8).reshape(-1, len(sizes))
            left = [
                candidate
                for candidate, code in zip(beside, encode(beside, sizes), strict=True)
                if code not in self.covered
            ]
            chosen[row] = left[int(draws[row] * len(left))] if left else cell
        goals = np.stack([values[chosen[:, rank]] for rank, values in enumerate(self.space.centroids)], 1)
        shape = (len(draws), len(sizes))
        return _aims(np.broadcast_to(self.space.important, shape), goals, np.broadcast_to(self.space.units, shape))

    def account(self, pictures: Tensor) -> Targets:
        """Note the cells that new pictures reach; return those that were not covered."""
        return self.note(self.space.codes(self.model, pictures))

    def note(self, targets: Targets) -> Targets:
        """Note that cells are covered; return those that were not."""
        codes = np.unique(targets)
        new = codes[[int(code) not in self.covered for code in codes]]
        self.covered.update(map(int, new))
        return new


def make_guide(criterion: Criterion, example: Tensor) -> Guide:
    """Return a criterion's guide; SettingError where it has no target to pull an activation to, or is not fitted."""
    if isinstance(criterion, IDC):
        return _CellGuide(criterion)
    aim = criterion.card.aim
    if aim is None or not isinstance(criterion, TargetCriterion):
        raise SettingError(
            f"{criterion.card.label} gives a search no activation to aim at; guide it by one of "
            f"{', '.join(guides())}, or by none."
        )
    return _TargetGuide(criterion, aim, example)


def _total(criterion: TargetCriterion, example: Tensor) -> int:
    total = criterion.profile(example).total
    return int(total or 0)


def _span(criterion: TargetCriterion) -> Floats | None:
    """Return the width of each neuron's range, where the criterion has learned one; 1 where it is empty."""
    low, high = getattr(criterion, "low", None), getattr(criterion, "high", None)
    if low is None or high is None:
        return None
    return np.where(high > low, high - low, 1.0)


def _aims(neurons: Array, goals: Array, units: Array) -> Aims:
    return Aims(
        torch.tensor(neurons.astype(np.int64)),
        torch.tensor(goals.astype(np.float32)),
        torch.tensor(units.astype(np.float32)),
    )


def guides() -> list[str]:
    """Return the names of the criteria that can guide a search: those whose cards say how to aim, and IDC."""
    return [*(name for name, kind in CRITERIA.items() if kind.card.aim is not None), "idc"]


def make_guidance(
    name: str,
    models: Sequence[nn.Module],
    train: Inputs,
    covered: Inputs | None = None,
    *,
    layers: Sequence[str] | None = None,
    m: int = 6,
    on_progress: Progress | None = None,
) -> list[Criterion]:
    """Make and fit one criterion a model for `differential_search` to aim at; a model that comes twice has one.

    `name` is one of `guides`; criteria learn from `train`, inputs (n, ...), and count `covered`, if given, as covered
    before the search. For IDC: `layers` names one for each model, by default that on its card, else its last hidden
    layer; `m` important neurons, fewer where a layer has fewer.

    Raises
    ------
    SettingError
        If nothing of this name can guide a search.
    UnsupportedOperationError
        If a model has no layer with neurons.
    """
    if name not in guides():
        raise SettingError(f"Expected a criterion that can guide a search, one of {', '.join(guides())}, got {name!r}.")
    kind: Callable[..., Criterion] = CRITERIA[name]
    made: list[Criterion] = []
    for number, model in enumerate(models):
        if any(model is earlier for earlier in models[:number]):
            continue
        hidden = countable_layers(model)
        if not hidden:
            raise UnsupportedOperationError(
                f"Model {number + 1} has no convolution or dense layer whose neurons a search could aim at; search "
                "without guidance."
            )
        if name == "idc":
            layer = layers[number] if layers is not None else _usual_layer(model, hidden)
            neurons = collect(model, whole(train)[:1], [layer]).activations[layer].shape[1]
            criterion = kind(model, layer, m=min(m, neurons))
        else:
            criterion = kind(model, hidden)
        learns = not isinstance(criterion, StreamedCriterion) or criterion.learns
        if learns or covered is not None:
            criterion.fit(train, on_progress=on_progress)
        made.append(criterion if covered is None else criterion.update(covered, on_progress=on_progress))
    return made


def _usual_layer(model: nn.Module, hidden: Sequence[str]) -> str:
    card = getattr(model, "card", None)
    return str(card.default_layer) if card is not None else hidden[max(0, len(hidden) - 2)]
