"""Criteria that ask which neurons are active: neuron coverage, top-k neurons and top-k patterns."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.coverage.activations import Floats, Seen
from idc_core.coverage.profiles import Profiles
from idc_core.coverage.registry import criterion
from idc_core.coverage.streamed import StreamedCriterion, TargetCriterion
from idc_core.errors import SettingError
from idc_core.parameters import whole_number

Scale = Literal["none", "layer", "positions"]

FEW = 8
"""Up to this many neurons are picked one after the other; more by sorting."""


@criterion(
    "nc",
    label="Neuron coverage",
    help="Share of the neurons that some test drives above a threshold.",
    citation="Pei, Cao, Yang, Jana (DeepXplore), SOSP 2017, section 4.1",
)
class NC(TargetCriterion):
    """Neuron coverage: |{n : out(n, x) > t for some test x}| / |N|.

    Parameters
    ----------
    model : Module
        Any network that returns scores.
    layers : str or sequence of str
        Names from ``named_modules()``.
    threshold : float
        t; in the unit of the activations, or of the scaled ones, 0..1. The default is the one IDC's paper compares
        with.
    scale : {"none", "layer", "positions"}
        What the threshold is compared with: the activation itself; or the activation scaled for each input to 0..1
        between the smallest and the largest neuron of its layer; or between the smallest and the largest output of
        the layer at any position.
    batch_size : int, optional
        Default: chosen from the network's size.

    Raises
    ------
    ModelError
        If the network has no such layer.
    SettingError
        If a parameter is outside what the method defines.

    Notes
    -----
    Published implementations differ in `scale`: dnn-tip (NAC) does not scale, NeuraL-Coverage scales channel means
    ("layer"), DeepXplore's program scales the outputs at all positions before it averages them ("positions"). A layer
    whose neurons are all equal on an input has nothing to scale by and none of its neurons counts as active.

    References
    ----------
    .. [1] K. Pei, Y. Cao, J. Yang, S. Jana, "DeepXplore: Automated Whitebox Testing of Deep Learning Systems",
       SOSP 2017, section 4.1.
    """

    def __init__(
        self,
        model: nn.Module,
        layers: str | Sequence[str],
        threshold: float = 0.75,
        scale: Scale = "none",
        *,
        batch_size: int | None = None,
    ) -> None:
        super().__init__(model, layers, batch_size=batch_size)
        if scale not in get_args(Scale):
            raise SettingError(f"scale must be one of {', '.join(get_args(Scale))}, not {scale!r}.")
        if not np.isfinite(threshold):
            raise SettingError(f"threshold must be a finite number, not {threshold!r}.")
        self.threshold, self.scale = float(threshold), scale

    def _targets(self, sizes: tuple[int, ...]) -> int:
        return sum(sizes)

    def _learned(self) -> tuple[Any, ...]:
        return (*super()._learned(), self.threshold, self.scale)

    def _active(self, seen: Seen) -> NDArray[np.bool_]:
        if self.scale == "none":
            return np.asarray(seen.values > self.threshold)
        parts = seen.by_layer(seen.values)
        ranges = seen.ranges if self.scale == "positions" else [(part.min(1), part.max(1)) for part in parts]
        active = []
        for part, (low, high) in zip(parts, ranges, strict=True):
            span = np.where(high > low, high - low, np.inf)
            active.append((part - low[:, None]) / span[:, None] > self.threshold)
            active[-1][high <= low] = False
        return np.concatenate(active, axis=1)

    def _profile(self, seen: Seen) -> Profiles:
        return Profiles.of_mask(self._active(seen))

    def _count(self, seen: Seen) -> None:
        # A neuron is above the threshold somewhere in the batch where its largest activation is.
        self._hit |= seen.high > self.threshold if self.scale == "none" else self._active(seen).any(0)


class _TopK:
    """The k most active neurons of each layer."""

    k: int

    def _set_k(self, k: int) -> None:
        self.k = whole_number("k", k, 1)

    def _top(self, seen: Seen) -> NDArray[np.int64]:
        """Return the neurons' numbers, counted through all layers, most active of each layer first, (n, k * layers)."""
        firsts = np.cumsum((0, *seen.sizes[:-1]))
        layers = zip(firsts, seen.by_layer(seen.values), strict=True)
        return np.concatenate([first + most_active(part, self.k) for first, part in layers], axis=1)


@criterion(
    "tknc",
    label="Top-k neuron coverage",
    help="Share of the neurons that are among the k most active of their layer on some test.",
    citation="Ma et al. (DeepGauge), ASE 2018, section 3.2, TKNCov",
)
class TKNC(_TopK, TargetCriterion):
    """Top-k neuron coverage: |union over tests x and layers i of top_k(x, i)| / |N|.

    Parameters
    ----------
    model, layers, batch_size
        As `NC`.
    k : int
        How many neurons of each layer; all where the layer has fewer.

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

    def __init__(
        self, model: nn.Module, layers: str | Sequence[str], k: int = 3, *, batch_size: int | None = None
    ) -> None:
        super().__init__(model, layers, batch_size=batch_size)
        self._set_k(k)

    def _targets(self, sizes: tuple[int, ...]) -> int:
        return sum(sizes)

    def _learned(self) -> tuple[Any, ...]:
        return (*super()._learned(), self.k)

    def _profile(self, seen: Seen) -> Profiles:
        return Profiles.of_codes(np.sort(self._top(seen), axis=1), sum(seen.sizes))

    def _count(self, seen: Seen) -> None:
        self._hit[self._top(seen)] = True


@criterion(
    "tknp",
    label="Top-k neuron patterns",
    help="Number of different combinations of the k most active neurons of every layer.",
    citation="Ma et al. (DeepGauge), ASE 2018, section 3.2, TKNPat",
)
class TKNP(_TopK, StreamedCriterion):
    """Top-k neuron patterns: |{(top_k(x, 1), ..., top_k(x, l)) : x a test}|; the score is this number.

    Parameters
    ----------
    model, layers, batch_size
        As `NC`.
    k : int
        How many neurons of each layer; all where the layer has fewer.
    ordered : bool
        Whether neurons in another order make another pattern.

    Notes
    -----
    The paper's patterns are sets of neurons; NeuraL-Coverage tells orders apart (`ordered`). Kept are the different
    patterns: at most k numbers a layer and input. Ties as in `TKNC`.

    References
    ----------
    .. [1] L. Ma et al., "DeepGauge: Multi-Granularity Testing Criteria for Deep Learning Systems", ASE 2018,
       section 3.2.
    """

    def __init__(
        self,
        model: nn.Module,
        layers: str | Sequence[str],
        k: int = 3,
        ordered: bool = False,
        *,
        batch_size: int | None = None,
    ) -> None:
        super().__init__(model, layers, batch_size=batch_size)
        self._set_k(k)
        self.ordered = ordered
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

    def _learned(self) -> tuple[Any, ...]:
        return (*super()._learned(), self.k, self.ordered)

    def _found(self, seen: Seen) -> list[bytes]:
        """Return each input's pattern."""
        rows = self._top(seen).astype(np.uint32)
        rows = np.ascontiguousarray(rows if self.ordered else np.sort(rows, axis=1))
        patterns: list[bytes] = rows.view(f"V{rows.itemsize * rows.shape[1]}").ravel().tolist()
        return patterns

    def _count(self, seen: Seen) -> None:
        self._patterns.update(self._found(seen))

    def _profiler(self) -> Callable[[Seen], Profiles]:
        numbers: dict[bytes, int] = {}

        def profile(seen: Seen) -> Profiles:
            found = [numbers.setdefault(pattern, len(numbers)) for pattern in self._found(seen)]
            return Profiles.of_codes(np.array(found)[:, None], None)

        return profile

    def _merge(self, other: Self) -> None:
        self._patterns |= other._patterns
        self.sizes = self.sizes or other.sizes


def most_active(values: Floats, k: int) -> NDArray[np.int64]:
    """Return the numbers of the k most active neurons.

    Parameters
    ----------
    values : ndarray (n, neurons)
        Finite activations.
    k : int
        At least 1.

    Returns
    -------
    ndarray, int64 (n, min(k, neurons))
        Most active first; of equally active neurons the one with the lower number.
    """
    if k > FEW or k >= values.shape[1]:
        return np.asarray(np.argsort(-values, axis=1, kind="stable")[:, :k], np.int64)
    left = values.copy()
    rows = np.arange(len(values))
    chosen = np.empty((len(values), k), np.int64)
    for place in range(k):
        chosen[:, place] = left.argmax(1)
        left[rows, chosen[:, place]] = -np.inf
    return chosen
