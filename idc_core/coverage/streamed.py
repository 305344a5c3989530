"""Criteria that look at one activation per neuron: one pass over the inputs feeds all of them."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import nn

from idc_core.base.arrays import Arrays
from idc_core.base.parameters import shown
from idc_core.base.progress import Progress
from idc_core.coverage.activations import ActivationBatch, BatchOf, activation_batches
from idc_core.coverage.profiles import Profiles
from idc_core.coverage.registry import Criterion, alike, all_or_nothing
from idc_core.errors import DataError, SettingError
from idc_core.lrp.session import check_layers, layer_names
from idc_core.tracing.sources import Inputs
from idc_core.tracing.traces import Traces

if TYPE_CHECKING:
    from idc_core.coverage.saved import Saved

Layers = str | Sequence[str]


class _Learner(Protocol):
    """Gathers what a criterion learns from training inputs."""

    def add(self, batch: ActivationBatch) -> None:
        """Take in a batch of training inputs."""

    def merge(self, other: Any) -> object:
        """Take in what another has gathered from the inputs that come next."""


@dataclass(eq=False)
class Learned:
    """What criteria learn from training inputs, in the order of the criteria: sizes of their layers, and learners."""

    sizes: list[tuple[int, ...]]
    learners: list[_Learner | None]

    def merge(self, other: Learned) -> Self:
        """Take in what was learned from the inputs that come next."""
        for mine, theirs in zip(self.learners, other.learners, strict=True):
            if mine is not None:
                mine.merge(theirs)
        return self


class StreamedCriterion(Criterion):
    """A criterion that looks at one activation per neuron, batch by batch.

    Inputs are a tensor, an array, a Dataset, an iterable of batches (n, ...), or `Traces` of the layers, which need no
    pass. `fit`, `update` and `profile` raise ModelError, UnsupportedOperationError and DataError as
    `idc_core.tracing.trace.trace`, DataError where activations are not finite, and SettingError where a criterion that
    learns has not been fitted.

    Parameters
    ----------
    model : Module
        Any network that returns scores.
    layers : str or sequence of str
        Names from ``named_modules()``; a ModelError where there is none of a name, a SettingError where none is named.
    batch_size : int, optional
        Default: chosen from the network's size.
    """

    learns = False
    """Whether `fit` needs the training inputs; what does not learn only finds out the sizes of the layers."""
    positions = False
    """Whether it looks at outputs at every position, which traces do not hold, beside channel means."""

    def __init__(self, model: nn.Module, layers: Layers, *, batch_size: int | None = None) -> None:
        self.model, self.batch_size = model, batch_size
        self.layers = layer_names(layers)
        if not self.layers:
            raise SettingError(f"{self._name} needs at least one layer; none was named.")
        check_layers(model, self.layers)
        self.sizes: tuple[int, ...] | None = None

    def fit(self, inputs: Inputs, *, on_progress: Progress | None = None) -> Self:
        """Learn from training inputs, and forget the tests; a fit that is stopped changes nothing."""
        fit_all([self], inputs, batch_size=self.batch_size, on_progress=on_progress)
        return self

    def update(self, inputs: Inputs, *, on_progress: Progress | None = None) -> Self:
        """Account for more tests; an update that fails or is stopped changes nothing."""
        update_all([self], inputs, batch_size=self.batch_size, on_progress=on_progress)
        return self

    def profile(self, inputs: Inputs, *, on_progress: Progress | None = None) -> Profiles:
        """Find what each input covers, without accounting for it."""
        return profile_all([self], inputs, batch_size=self.batch_size, on_progress=on_progress)[0]

    def fresh(self) -> Self:
        """Return another that has learned the same and has seen no tests."""
        self._ready()
        if self.sizes is None:
            return copy.copy(self)
        other = alike(self)
        other._begin(self.sizes)  # gives it marks of its own
        return other

    def merge(self, other: Self) -> Self:
        """Add what another worker has seen; SettingError if settings, layers or what was learned differ."""
        same = type(self) is type(other) and _same(self._learned(), other._learned())
        if not same or (self.sizes and other.sizes and self.sizes != other.sizes):
            raise SettingError(
                f"Only criteria with the same settings, layers and training can be merged. Fit one {self._name}, copy "
                "it to each worker, and merge what they have seen."
            )
        self._merge(other)
        self.sizes = self.sizes or other.sizes
        return self

    @property
    def _name(self) -> str:
        return self.card.label

    def _begin(self, sizes: tuple[int, ...]) -> None:
        """Start with nothing covered, once the sizes of the layers are known."""
        self.sizes = sizes

    def _learner(self) -> _Learner | None:
        """Return an empty `_Learner`; None where nothing is learned."""
        return None

    def _adopt(self, learner: Any) -> None:
        """Take over what was learned."""

    def _settings(self) -> dict[str, object]:
        return {"layers": list(self.layers), **{name: getattr(self, name) for name in self.card.defaults}}

    def _ready(self) -> None:
        if self.learns and self.sizes is None:
            raise SettingError(f"{self._name} has learned nothing yet: call fit with training inputs first.")

    def _learned(self) -> tuple[ArrayLike, ...]:
        """Return everything two criteria must share to be merged: settings, and what was learned."""
        self._ready()
        settings = [getattr(self, name) for name in self.card.defaults if name != "batch_size"]
        return (self.layers, self.card.name, *settings)

    @abstractmethod
    def _count(self, batch: ActivationBatch) -> None:
        """Account for a batch of tests."""

    @abstractmethod
    def _profiler(self) -> Callable[[ActivationBatch], Profiles]:
        """Return what makes the profiles of one batch after the other."""

    @abstractmethod
    def _merge(self, other: Self) -> None:
        """Add what another has seen that is known to have learned the same."""


class TargetCriterion(StreamedCriterion):
    """A criterion with a known number of targets; a target is covered once one test reaches it."""

    counted = ("_hit",)

    def __init__(self, model: nn.Module, layers: Layers, *, batch_size: int | None = None) -> None:
        super().__init__(model, layers, batch_size=batch_size)
        self._hit: NDArray[np.bool_] = np.zeros(0, bool)

    @property
    def covered(self) -> int:
        """Number of targets reached."""
        return int(np.count_nonzero(self._marks()))

    @property
    def total(self) -> int:
        """Number of targets there are."""
        return len(self._marks())

    @property
    def score(self) -> float:
        """Share of the targets that are reached, 0..1."""
        return self.covered / self.total

    @property
    def reached(self) -> NDArray[np.bool_]:
        """Whether each target is reached, bool (total,)."""
        return self._marks().copy()

    def _marks(self) -> NDArray[np.bool_]:
        self._ready()
        if self.sizes is None:
            raise SettingError(f"{self._name} has seen no inputs yet: call update, or fit, first.")
        return self._hit

    def _begin(self, sizes: tuple[int, ...]) -> None:
        super()._begin(sizes)
        total = self._targets(sizes)
        if total >= 2**31:
            raise SettingError(f"{self._name} would have {total:,} targets; choose fewer layers, at most 2**31.")
        self._hit = np.zeros(total, bool)

    def _state(self) -> Arrays:
        self._ready()
        if self.learns and type(self)._state is TargetCriterion._state:
            raise self._unsaved()
        return {} if self.sizes is None else {"sizes": np.array(self.sizes), "hit": np.packbits(self._hit)}

    def _restore(self, saved: Saved) -> None:
        sizes = saved.sizes(len(self.layers))
        if sizes is not None:
            packed = saved.take("hit", "u", -(-self._targets(sizes) // 8))  # before as much memory is taken
            self._begin(sizes)
            self._hit = np.unpackbits(packed, count=len(self._hit)).astype(bool)

    def _targets(self, sizes: tuple[int, ...]) -> int:
        """Return the number of targets; unless overridden, one per neuron."""
        return sum(sizes)

    @abstractmethod
    def _profile(self, batch: ActivationBatch) -> Profiles:
        """Return the profiles of a batch."""

    def _profiler(self) -> Callable[[ActivationBatch], Profiles]:
        return self._profile

    def _count(self, batch: ActivationBatch) -> None:
        self._hit[self._profile(batch).targets] = True

    def _merge(self, other: Self) -> None:
        if other.sizes is not None and self.sizes is None:
            self._begin(other.sizes)
        if other.sizes is not None:
            self._hit |= other._hit


def measure(
    criteria: Sequence[Criterion],
    train: Inputs,
    test: Inputs,
    *,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
) -> list[float]:
    """Return the score of each criterion: one pass over the training inputs and one over the tests for all of them.

    Criteria that are not a `StreamedCriterion` (IDC) make their own passes. Errors are those of the criteria's `fit`
    and `update`; SettingError also where the criteria belong to different networks.
    """
    fit_all(criteria, train, batch_size=batch_size, on_progress=on_progress)
    update_all(criteria, test, batch_size=batch_size, on_progress=on_progress)
    return [criterion.score for criterion in criteria]


def fit_all(
    criteria: Sequence[Criterion], inputs: Inputs, *, batch_size: int | None = None, on_progress: Progress | None = None
) -> None:
    """Fit several criteria in one pass over the training inputs; where none learns, it ends after the first batch.

    Where one of them refuses, all stay as they were.
    """
    streamed = _streamed(criteria, inputs)
    with all_or_nothing(*criteria):
        adopt_all(streamed, learn_all(streamed, inputs, batch_size=batch_size, on_progress=on_progress))
        for other in criteria:
            if not isinstance(other, StreamedCriterion):
                other.fit(inputs, on_progress=on_progress)


def learn_all(
    criteria: Sequence[StreamedCriterion],
    inputs: Inputs,
    *,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
) -> Learned:
    """Return what criteria learn from training inputs, or from a part of them; the criteria stay as they are."""
    learned = Learned([()] * len(criteria), [entry._learner() if entry.learns else None for entry in criteria])
    for batch_of in _batches(criteria, inputs, batch_size, on_progress):
        batches = [batch_of(criterion.layers) for criterion in criteria]
        learned.sizes = [batch.sizes for batch in batches]
        for learner, batch in zip(learned.learners, batches, strict=True):
            if learner is not None:
                learner.add(batch)
        if not any(criterion.learns for criterion in criteria):
            break
    return learned


def adopt_all(criteria: Sequence[StreamedCriterion], learned: Learned) -> None:
    """Give criteria what they have learned, and forget the tests."""
    for criterion, sizes, learner in zip(criteria, learned.sizes, learned.learners, strict=True):
        if criterion.learns:
            criterion._adopt(learner)
        criterion._begin(sizes)


def update_all(
    criteria: Sequence[Criterion], inputs: Inputs, *, batch_size: int | None = None, on_progress: Progress | None = None
) -> None:
    """Account for more tests by several criteria in one pass; where one of them refuses, all stay as they were."""
    streamed = _streamed(criteria, inputs)
    for criterion in streamed:
        criterion._ready()
    with all_or_nothing(*criteria):
        for batch_of in _batches(streamed, inputs, batch_size, on_progress):
            for criterion in streamed:
                criterion._count(_expected(criterion, batch_of(criterion.layers)))
        for other in criteria:
            if not isinstance(other, StreamedCriterion):
                other.update(inputs, on_progress=on_progress)


def profile_all(
    criteria: Sequence[Criterion], inputs: Inputs, *, batch_size: int | None = None, on_progress: Progress | None = None
) -> list[Profiles]:
    """Find what each input covers by several criteria in one pass, without accounting for it."""
    streamed = _streamed(criteria, inputs)
    for criterion in streamed:
        criterion._ready()
    profilers = {criterion: criterion._profiler() for criterion in streamed}
    parts: dict[Criterion, list[Profiles]] = {criterion: [] for criterion in streamed}
    for batch_of in _batches(streamed, inputs, batch_size, on_progress):
        for criterion, profiler in profilers.items():
            parts[criterion].append(profiler(_expected(criterion, batch_of(criterion.layers), begin=False)))
    return [
        Profiles.joined(parts[entry]) if entry in parts else entry.profile(inputs, on_progress=on_progress)
        for entry in criteria
    ]


def _streamed(criteria: Sequence[Criterion], inputs: Inputs) -> list[StreamedCriterion]:
    """Return the criteria that share a pass; refuse what can be read only once where more than one pass is needed."""
    streamed = [criterion for criterion in criteria if isinstance(criterion, StreamedCriterion)]
    passes = len(criteria) - len(streamed) + bool(streamed)
    if passes > 1 and hasattr(inputs, "__next__"):
        raise DataError(f"These criteria need {passes} passes; an iterator can be read once: give a list of batches.")
    if len(criteria) > len(streamed) and isinstance(inputs, Traces):
        raise DataError("A criterion that needs more than activations cannot be measured on traces: give the inputs.")
    return streamed


def _expected(criterion: StreamedCriterion, batch: ActivationBatch, begin: bool = True) -> ActivationBatch:
    """Return the batch after a check that its layers are as large as those known before."""
    if criterion.sizes is None and begin:
        criterion._begin(batch.sizes)
    if criterion.sizes not in (None, batch.sizes):
        raise DataError(
            f"Layers {', '.join(batch.layers)} have {batch.sizes} neurons for these inputs and had {criterion.sizes} "
            "before: give inputs of one shape."
        )
    return batch


def _batches(
    criteria: Sequence[StreamedCriterion], inputs: Inputs, batch_size: int | None, on_progress: Progress | None
) -> Iterator[BatchOf]:
    if not criteria:
        return
    model = criteria[0].model
    if any(criterion.model is not model for criterion in criteria):
        raise SettingError("Criteria that share a pass must belong to one network; measure those of others apart.")
    layers = tuple(dict.fromkeys(layer for criterion in criteria for layer in criterion.layers))
    positions = any(criterion.positions for criterion in criteria)
    yield from activation_batches(model, layers, inputs, batch_size, on_progress, positions)


def _same(one: tuple[ArrayLike, ...], other: tuple[ArrayLike, ...]) -> bool:
    return len(one) == len(other) and all(map(np.array_equal, one, other))


def check_word(name: str, value: object, words: tuple[str, ...]) -> None:
    """Refuse a word that is not among those the method defines."""
    if not isinstance(value, str) or value not in words:
        raise SettingError(f"{name} must be one of {', '.join(words)}, not {shown(value)}.")
