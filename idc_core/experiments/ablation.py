"""Accuracy of a network when neurons of a layer are silenced: the important ones, or as many random ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from idc_core.base.devices import device_of
from idc_core.base.parameters import whole_number
from idc_core.base.progress import Progress, report
from idc_core.errors import DataError, ModelError, SettingError, UnsupportedOperationError
from idc_core.evidence.draws import Ends, against_draws
from idc_core.evidence.finding import Finding
from idc_core.experiments.random_neurons import Seeds, check_neurons, check_seeds, shuffled_others
from idc_core.lrp.captures import INPUT, CaptureTraits
from idc_core.lrp.interception import Watch
from idc_core.lrp.named_inputs import Batch, NamedInputs, filled, main_of
from idc_core.lrp.session import check_layers, run_watched, undisturbed, watching
from idc_core.tracing.batch_size import inputs_at_once
from idc_core.tracing.batching import company_of, to_network
from idc_core.tracing.neurons import axis_in, neuron_axes
from idc_core.tracing.parts import TokenMask, kept_tokens, part_of
from idc_core.tracing.pieces import Pieces
from idc_core.tracing.sources import Inputs, is_array, whole
from idc_core.tracing.transfers import brought_back

_MOST_COUNTS = 13
"""How many numbers of silenced neurons are tried unless they are given."""

_AGREEMENT = 1e-4
"""Relative difference that passes run together may show from passes run one by one; single precision gives 1e-6."""

_Task = Literal["classification", "regression"]


@dataclass(frozen=True, eq=False)
class Ablation:
    """Accuracy of a network with neurons of one layer silenced.

    `order` holds the important neurons (m,), `counts` the numbers silenced (c,), ascending. `baseline` is accuracy or
    for regression the root mean squared error, with no neuron silenced, `important` with the first neurons of
    `order` silenced (c,), and `random` with as many random ones (seeds, c): NaN where there are not as many others, or
    an earlier seed draws the same ones.
    """

    layer: str
    neurons: int
    task: _Task
    order: NDArray[np.int64]
    counts: NDArray[np.int64]
    seeds: tuple[int, ...]
    baseline: float
    important: NDArray[np.float64]
    random: NDArray[np.float64]
    tests: int

    @property
    def unit(self) -> str:
        """Accuracy or RMSE."""
        return "accuracy" if self.task == "classification" else "RMSE"

    @property
    def random_mean(self) -> NDArray[np.float64]:
        """Mean over the seeds, float64 (c,)."""
        # Rounding must not take the mean of equal values out of their range.
        return np.clip(self._over_seeds(np.nanmean), self.random_low, self.random_high)

    @property
    def random_low(self) -> NDArray[np.float64]:
        """Lowest of the seeds, float64 (c,)."""
        return self._over_seeds(np.nanmin)

    @property
    def random_high(self) -> NDArray[np.float64]:
        """Highest of the seeds, float64 (c,)."""
        return self._over_seeds(np.nanmax)

    def finding(self, silenced: int, claim: str, what: str, looks: int = 1) -> Finding:
        """Return the accuracy, or error, with so many of the first neurons silenced, among the draws of random ones.

        It stands out where silencing them costs more; `looks` as in `Finding`.
        """
        place = int(np.flatnonzero(self.counts == silenced)[0])
        draws, number = self.random[:, place], float(self.important[place])
        unit: str
        ends: Ends
        unit, ends = ("%", "low") if self.task == "classification" else ("", "high")
        return against_draws("silenced", claim, number, draws[~np.isnan(draws)], what, unit, ends=ends, looks=looks)

    def _over_seeds(self, summary: Callable[..., object]) -> NDArray[np.float64]:
        with warnings.catch_warnings():
            # A number of neurons that no seed can draw stays NaN.
            warnings.simplefilter("ignore", RuntimeWarning)
            return np.asarray(summary(self.random, axis=0), np.float64)


def ablate(
    model: nn.Module,
    inputs: Inputs,
    targets: ArrayLike,
    layer: str,
    important: ArrayLike,
    counts: Iterable[int] | None = None,
    seeds: Seeds = 5,
    *,
    task: _Task = "classification",
    batch_size: int | None = None,
    on_progress: Progress | None = None,
) -> Ablation:
    """Measure a network with neurons of a layer set to zero after its activation function; convolutions have channels.

    Features of one token (``NAME@class``) are set to zero at that token alone, a head (``NAME@heads``) at all tokens.

    `important` lists neurons, most important first; `counts` are the numbers silenced, by default up to m or half of
    the layer in at most `_MOST_COUNTS` steps. Random neurons are drawn from those that are not among the first
    ``max(counts)`` of `important`; a larger number of random neurons of one seed contains the smaller.

    Not in the DeepImportance paper; it is the usual test of whether an importance means anything. All variants of a
    batch run as one pass that shares what comes before the layer (``torch.vmap``), unless an operation of the network
    cannot be run so; then they run one by one, with the same results.
    """
    given = whole(inputs)
    expected = _targets(given, targets, task)
    network = _prepared(model, given, layer, batch_size)
    order = check_neurons(important, network.neurons)
    numbers, listed = _counts(counts, len(order), network.neurons), check_seeds(seeds)
    silent, which = _plan(order, numbers, listed, network.neurons)
    totals = np.zeros(len(silent))
    for _, hits in _passes(network, given, silent, expected, task, batch_size, on_progress):
        totals += hits.sum(1)
    values = totals / len(given) if task == "classification" else np.sqrt(totals / len(given))
    matrix = np.where(which >= 0, values[which], np.nan)
    return Ablation(
        layer,
        network.neurons,
        task,
        order,
        numbers,
        listed,
        float(matrix[0, 0]),
        matrix[0, 1:],
        matrix[1:, 1:],
        len(given),
    )


@dataclass(frozen=True, eq=False)
class SilencedClasses:
    """What each of some neurons does for each group of tests, such as those of one class.

    `before` is accuracy, or for regression the root mean squared error, of every group (groups,), and `after` the same
    with each of the `neurons` (m,) alone silenced, (m, groups); NaN of a group without tests.
    """

    neurons: NDArray[np.int64]
    before: NDArray[np.float64]
    after: NDArray[np.float64]

    @property
    def change(self) -> NDArray[np.float64]:
        """What silencing changes, (m, groups)."""
        return self.after - self.before

    def without(self, neuron: int) -> SilencedClasses:
        """Return those of the other neurons."""
        others = self.neurons != neuron
        return SilencedClasses(self.neurons[others], self.before, self.after[others])

    @property
    def range(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Range of 95 % of the neurons' changes, lowest and highest (groups,)."""
        low, high = np.quantile(self.change, [0.025, 0.975], axis=0)
        return low, high


def silence_each(
    model: nn.Module,
    inputs: Inputs,
    targets: ArrayLike,
    layer: str,
    neurons: ArrayLike,
    groups: NDArray[np.int64],
    count: int,
    *,
    task: _Task = "classification",
    batch_size: int | None = None,
    on_progress: Progress | None = None,
) -> SilencedClasses:
    """Measure a network, group of tests by group, with each of some neurons of a layer set to zero, one at a time.

    `groups` (n,) says which of `count` groups each test is in; others are as in `ablate`, and so are the passes.
    """
    given = whole(inputs)
    expected = _targets(given, targets, task)
    network = _prepared(model, given, layer, batch_size)
    order = check_neurons(neurons, network.neurons)
    silent = torch.zeros(1 + len(order), network.neurons, dtype=torch.bool)
    silent[torch.arange(1, 1 + len(order)), torch.from_numpy(order)] = True
    totals, member = np.zeros((len(silent), count)), np.eye(count)[groups]
    for rows, hits in _passes(network, given, silent, expected, task, batch_size, on_progress):
        totals += hits @ member[rows]
    with np.errstate(invalid="ignore"):
        means = totals / member.sum(0)
    values = means if task == "classification" else np.sqrt(means)
    return SilencedClasses(order, values[0], values[1:])


def _prepared(model: nn.Module, given: Any, layer: str, batch_size: int | None) -> _Silenced:
    """Check what is to be silenced, and try it."""
    check_layers(model, [layer])
    if layer == INPUT:
        raise SettingError("The input has no neurons to silence; choose a layer of the network.")
    if batch_size is not None:
        whole_number("batch_size", batch_size, 1)
    return _prepare(model, given, layer)


def _passes(
    network: _Silenced,
    given: Any,
    silent: Tensor,
    expected: Tensor,
    task: str,
    batch_size: int | None,
    on_progress: Progress | None,
) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Yield rows of the inputs with the hits, or squared errors, of every set of silent neurons, float64 (v, n)."""
    size = min(batch_size or network.batch_size(len(silent)), network.most)
    silent = silent.to(device_of(network.model))

    def silenced(rows: slice) -> dict[str, Tensor]:
        return {"scores": network.run(to_network(network.model, given[rows]), silent)}

    for rows, arrays in brought_back(Pieces(size)(len(given), silenced)):
        yield rows, _hits(torch.from_numpy(arrays["scores"]), expected[rows], task)
        report(on_progress, rows.stop, len(given), "tests with neurons silenced")


def _targets(inputs: Any, targets: ArrayLike, task: str) -> Tensor:
    if not (isinstance(inputs, NamedInputs) or (is_array(inputs) and inputs.ndim)) or not len(inputs):
        kind = type(inputs).__name__
        raise DataError(f"Expected a tensor, an array or a data set with at least one input, not {kind}.")
    if task not in ("classification", "regression"):
        raise SettingError(f"task must be 'classification' or 'regression', not {task!r}.")
    values = targets.cpu().numpy() if isinstance(targets, Tensor) else np.asarray(targets)
    if values.shape != (len(inputs),):
        raise DataError(f"There are targets of shape {values.shape} for {len(inputs)} inputs; expected one an input.")
    if values.dtype.kind not in ("iu" if task == "classification" else "iuf"):
        raise DataError(f"The targets of a {task} must be numbers that fit it, not {values.dtype}.")
    return torch.from_numpy(values.astype(np.int64 if task == "classification" else np.float64))


def _counts(counts: Iterable[int] | None, m: int, neurons: int) -> NDArray[np.int64]:
    if counts is None:
        most = min(m, max(1, neurons // 2))
        return np.unique(np.linspace(0, most, min(most + 1, _MOST_COUNTS)).round().astype(np.int64))
    numbers = np.array(sorted(set(counts)))
    if not len(numbers) or numbers.dtype.kind not in "iu" or numbers[0] < 0 or numbers[-1] > m:
        raise SettingError(f"counts must be whole numbers from 0 to {m}, the neurons in important, not {counts!r:.80}.")
    return numbers.astype(np.int64)


def _plan(
    order: NDArray[np.int64], counts: NDArray[np.int64], seeds: tuple[int, ...], neurons: int
) -> tuple[Tensor, NDArray[np.int64]]:
    """Return the different sets of silent neurons, bool (v, neurons), and which of them stands where.

    The places are int64 (1 + seeds, 1 + c): the important neurons, then every seed; no neuron, then `counts`. -1 where
    there are not enough neurons, or an earlier seed draws the same ones.
    """
    orders = [order, *(shuffled_others(order[: counts[-1]], neurons, seed) for seed in seeds)]
    sets: dict[bytes, int] = {}
    rows: list[NDArray[np.bool_]] = []
    which = np.full((len(orders), 1 + len(counts)), -1, np.int64)
    for i, neurons_of in enumerate(orders):
        for j, count in enumerate((0, *counts)):
            if count <= len(neurons_of):
                silent = np.zeros(neurons, np.bool_)
                silent[neurons_of[:count]] = True
                which[i, j] = sets.setdefault(silent.tobytes(), len(rows))
                if which[i, j] == len(rows):
                    rows.append(silent)
                elif count and which[i, j] in which[1:i, j]:
                    which[i, j] = -1
    return torch.from_numpy(np.stack(rows)), which


def _hits(scores: Tensor, targets: Tensor, task: str) -> NDArray[np.float64]:
    """Return correct answers, or squared errors, of each input, float64 (v, n), from scores (v, n, classes)."""
    hits = scores.argmax(2) == targets if task == "classification" else (scores[..., 0].double() - targets).square()
    return np.asarray(hits.numpy(), np.float64)


@dataclass(frozen=True, eq=False)
class _Silenced:
    """A network of which sets of neurons of one layer can be silenced.

    `axis` is the neurons' axis of the layer's value; `most` inputs may run at a time; `before` and `after` are bytes of
    one input's values up to the layer and behind it; `together` says whether one pass can run all sets.
    """

    model: nn.Module
    layer: str
    axis: int
    neurons: int
    traits: CaptureTraits
    most: int
    before: int
    after: int
    together: bool

    def batch_size(self, sets: int) -> int:
        """Return how many inputs one pass takes."""
        return inputs_at_once(max(1, self.before + self.after * (sets if self.together else 1)))

    def run(self, batch: Batch, silent: Tensor) -> Tensor:
        """Return the scores of every set of silent neurons, (sets, n, classes), from bool (sets, neurons)."""
        kept = kept_tokens(self.model, filled(batch, self.traits.least))
        with undisturbed(self.model):
            if self.together:
                scores: Tensor = torch.vmap(lambda row: self._pass(batch, row, kept))(silent)
                return scores
            return torch.stack([self._pass(batch, row, kept) for row in silent])

    def _pass(self, batch: Batch, silent: Tensor, kept: TokenMask) -> Tensor:
        part = part_of(self.layer)

        def silence(layer: str, value: Tensor) -> Tensor:
            shape = [1] * value.dim()
            shape[axis_in(value.dim(), self.axis) if part is None else part.axis] = self.neurons
            quiet = silent.reshape(shape)
            return value.masked_fill(quiet if part is None else quiet & part.places(value, kept), 0)

        watch = Watch(None, self.traits, change=silence)
        with watching(self.model, [self.layer], watch):
            return run_watched(self.model, batch, watch)


def _prepare(model: nn.Module, given: Any, layer: str) -> _Silenced:
    """Try the network on one input, alone and among others, and whether several sets can run in one pass."""
    one, company = to_network(model, given[:1]), company_of(model, given, [layer])
    traits = company.traits
    axis, part = neuron_axes(model, [layer])[layer], part_of(layer)
    seen: list[tuple[int, int]] = []

    def look(name: str, value: Tensor) -> Tensor:
        place = axis_in(value.dim(), axis) if part is None else part.axis
        seen.append((value.shape[place] if value.dim() > 1 else 1, watch.counts.elements))
        return value

    watch = Watch(None, traits, change=look)
    with undisturbed(model), watching(model, [layer], watch):
        width = run_watched(model, one, watch).element_size()
    neurons, before = seen[0]
    after = watch.counts.elements - before + neurons
    apart = _Silenced(model, layer, axis, neurons, traits, company.most, before * width, after * width, False)
    together = replace(apart, together=True)
    trial = torch.tensor([[False] * neurons, [True] * neurons], device=main_of(one).device)
    expected = apart.run(one, trial)
    try:
        scores = together.run(one, trial)
    except (ModelError, UnsupportedOperationError, RuntimeError):
        return apart
    return together if torch.allclose(scores, expected, rtol=_AGREEMENT, atol=_AGREEMENT) else apart
