"""Criteria on which neurons are active: neuron coverage, top-k neurons and top-k patterns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.base.arrays import Arrays
from idc_core.base.parameters import Parameter, finite, truth, whole_number
from idc_core.coverage.activations import ActivationBatch
from idc_core.coverage.profiles import Profiles
from idc_core.coverage.registry import criterion
from idc_core.coverage.streamed import Layers, StreamedCriterion, TargetCriterion, check_word

if TYPE_CHECKING:
    from idc_core.coverage.saved import Saved

_Scale = Literal["none", "layer", "positions"]

_FEW = 8
"""Up to this many neurons are picked one after the other; more by sorting."""


def raise_neuron(criterion: object, targets: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Aim at a large activation of the neuron of each target."""
    return targets, np.full(len(targets), np.inf)


@criterion(
    "nc",
    label="Neuron coverage",
    help="Share of the neurons that some test activates above a threshold.",
    citation="Pei, Cao, Yang, Jana (DeepXplore), SOSP 2017, section 4.1",
    parameters=(
        Parameter("threshold", "threshold", "A neuron above it counts as active.", 0.75, 0, 20, step=0.05),
        Parameter(
            "scale",
            "scaling",
            "What is compared: the activation (none), or the activation scaled to 0..1 per input and layer (layer).",
            "none",
            offered=("none", "layer"),
        ),
    ),
    aim=raise_neuron,
)
class NC(TargetCriterion):
    """Neuron coverage: |{n : out(n, x) > t for some test x}| / |N|.

    Parameters
    ----------
    model, layers, batch_size
        As `StreamedCriterion`.
    threshold : float
        t; in the unit of the activations, or of the scaled ones, 0..1. The default is the one IDC's paper compares
        with.
    scale : {"none", "layer", "positions"}
        What the threshold is compared with: the activation itself; or the activation scaled for each input to 0..1
        between the smallest and the largest neuron of its layer; or between the smallest and the largest output of
        the layer at any position.

    Notes
    -----
    Published implementations differ in `scale`: dnn-tip (NAC) does not scale, NeuraL-Coverage scales channel means,
    DeepXplore's program scales the outputs at all positions before it averages them. A layer whose neurons are all
    equal on an input has nothing to scale by and none of its neurons counts as active.

    References
    ----------
    .. [1] K. Pei, Y. Cao, J. Yang, S. Jana, "DeepXplore: Automated Whitebox Testing of Deep Learning Systems",
       SOSP 2017, section 4.1.
    """

    def __init__(
        self,
        model: nn.Module,
        layers: Layers,
        threshold: float = 0.75,
        scale: _Scale = "none",
        *,
        batch_size: int | None = None,
    ) -> None:
        super().__init__(model, layers, batch_size=batch_size)
        check_word("scale", scale, get_args(_Scale))
        self.threshold, self.scale = finite("threshold must be a finite number", threshold), scale
        self.positions = scale == "positions"

    def _active(self, batch: ActivationBatch) -> NDArray[np.bool_]:
        if self.scale == "none":
            return np.asarray(batch.values > self.threshold)
        parts = batch.by_layer(batch.values)
        extremes = batch.extremes if self.positions else [(part.min(1), part.max(1)) for part in parts]
        active = []
        for part, (low, high) in zip(parts, extremes, strict=True):
            span = np.where(high > low, high - low, np.inf)
            active.append((part - low[:, None]) / span[:, None] > self.threshold)
            active[-1][high <= low] = False
        return np.concatenate(active, axis=1)

    def _profile(self, batch: ActivationBatch) -> Profiles:
        return Profiles.of_mask(self._active(batch))

    def _count(self, batch: ActivationBatch) -> None:
        # A neuron is above the threshold somewhere in the batch where its largest activation is.
        self._hit |= batch.high > self.threshold if self.scale == "none" else self._active(batch).any(0)


class _TopK(StreamedCriterion):
    """The k most active neurons of each layer."""

    k: int

    def _top(self, batch: ActivationBatch) -> NDArray[np.int64]:
        """Return the neurons' numbers, counted through all layers, most active of each layer first, (n, k * layers)."""
        firsts = np.cumsum((0, *batch.sizes[:-1]))
        layers = zip(firsts, batch.by_layer(batch.values), strict=True)
        return np.concatenate([first + _most_active(part, self.k) for first, part in layers], axis=1)


@criterion(
    "tknc",
    label="Top-k neuron coverage",
    help="Share of the neurons that are among the k most active of their layer for some test.",
    citation="Ma et al. (DeepGauge), ASE 2018, section 3.2, TKNCov",
    parameters=(Parameter("k", "neurons k", "The k most active neurons of a layer count.", 3, 1, 20),),
    aim=raise_neuron,
)
class TKNC(_TopK, TargetCriterion):
    """Top-k neuron coverage: |union over tests x and layers i of top_k(x, i)| / |N|.

    A layer of fewer than k neurons counts with all of them; the other parameters are those of `StreamedCriterion`.

    Notes
    -----
    Of equally active neurons the one with the lower number comes first; the paper leaves it open, dnn-tip and
    NeuraL-Coverage take whichever their sorting leaves there. Behind a ReLU a neuron that is not active at all can be
    among the k most active.

    References
    ----------
    .. [1] L. Ma et al., "DeepGauge: Multi-Granularity Testing Criteria for Deep Learning Systems", ASE 2018,
       section 3.2.
    """

    def __init__(self, model: nn.Module, layers: Layers, k: int = 3, *, batch_size: int | None = None) -> None:
        super().__init__(model, layers, batch_size=batch_size)
        self.k = whole_number("k", k, 1)

    def _profile(self, batch: ActivationBatch) -> Profiles:
        return Profiles.of_codes(np.sort(self._top(batch), axis=1), sum(batch.sizes))

    def _count(self, batch: ActivationBatch) -> None:
        self._hit[self._top(batch)] = True


@criterion(
    "tknp",
    label="Top-k neuron patterns",
    help="Number of different combinations of the k most active neurons of each layer.",
    citation="Ma et al. (DeepGauge), ASE 2018, section 3.2, TKNPat",
    parameters=(Parameter("k", "neurons k", "A pattern is the set of the k most active neurons.", 3, 1, 20),),
    unit="patterns",
)
class TKNP(_TopK):
    """Top-k neuron patterns: |{(top_k(x, 1), ..., top_k(x, l)) : x a test}|; the score is this number.

    Parameters as `TKNC`. The paper's patterns are sets of neurons; with `ordered`, as in NeuraL-Coverage, neurons in
    another order make another pattern. Kept are the different patterns: at most k numbers per layer and input. Ties as
    in `TKNC`, where the paper is named.
    """

    counted = ("_patterns",)

    def __init__(
        self, model: nn.Module, layers: Layers, k: int = 3, ordered: bool = False, *, batch_size: int | None = None
    ) -> None:
        super().__init__(model, layers, batch_size=batch_size)
        self.k, self.ordered = whole_number("k", k, 1), truth("ordered", ordered)
        self._patterns: set[bytes] = set()

    @property
    def covered(self) -> int:
        """Number of different patterns seen."""
        return len(self._patterns)

    @property
    def score(self) -> float:
        """Number of different patterns seen."""
        return float(self.covered)

    def _begin(self, sizes: tuple[int, ...]) -> None:
        super()._begin(sizes)
        self._patterns = set()

    def _found(self, batch: ActivationBatch) -> NDArray[np.uint32]:
        """Return each input's pattern: numbers of neurons, counted through all layers, (n, k * layers)."""
        rows = self._top(batch).astype(np.uint32)
        return rows if self.ordered else np.sort(rows, axis=1)

    def _count(self, batch: ActivationBatch) -> None:
        self._patterns.update(_bytes(self._found(batch)))

    def _profiler(self) -> Callable[[ActivationBatch], Profiles]:
        return lambda batch: Profiles.of_names(self._found(batch), None)

    def _merge(self, other: Self) -> None:
        self._patterns |= other._patterns

    def _state(self) -> Arrays:
        if self.sizes is None:
            return {}
        rows = np.frombuffer(b"".join(sorted(self._patterns)), np.uint32).reshape(-1, self._width(self.sizes))
        return {"sizes": np.array(self.sizes), "patterns": rows}

    def _restore(self, saved: Saved) -> None:
        sizes = saved.sizes(len(self.layers))
        if sizes is not None:
            rows = saved.indices("patterns", sum(sizes), None, self._width(sizes)).astype(np.uint32)
            self._begin(sizes)
            self._patterns = set(_bytes(rows))

    def _width(self, sizes: tuple[int, ...]) -> int:
        return sum(min(self.k, size) for size in sizes)


def _bytes(rows: NDArray[np.uint32]) -> list[bytes]:
    """Return each row of numbers as bytes."""
    packed: list[bytes] = np.ascontiguousarray(rows).view(f"V{rows.itemsize * rows.shape[1]}").ravel().tolist()
    return packed


def _most_active(values: NDArray[np.floating], k: int) -> NDArray[np.int64]:
    """Return the k most active neurons, int64 (n, k), or all of fewer, most active first, of equals the lower one."""
    if k > _FEW or k >= values.shape[1]:
        return np.asarray(np.argsort(-values, axis=1, kind="stable")[:, :k], np.int64)
    left = values.copy()
    rows = np.arange(len(values))
    chosen = np.empty((len(values), k), np.int64)
    for place in range(k):
        chosen[:, place] = left.argmax(1)
        left[rows, chosen[:, place]] = -np.inf
    return chosen
