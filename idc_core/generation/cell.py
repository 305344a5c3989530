"""The cells of IDC as a search sees them: which activations lie in a cell, and where its middle is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.analysis import Analysis
from idc_core.coverage.cells import Codes, assign, encode
from idc_core.coverage.idc import IDC
from idc_core.errors import SettingError
from idc_core.trace import collect

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CellSpace:
    """Important neurons and their clusters.

    Attributes
    ----------
    layer : str
    important : ndarray, int64 (m,)
    centroids : tuple of m ndarray, float64 (k_i,)
        Ascending.
    boundaries : tuple of m ndarray, float64 (k_i - 1,)
        Largest value of every cluster but the last.
    """

    layer: str
    important: NDArray[np.int64]
    centroids: tuple[Floats, ...]
    boundaries: tuple[Floats, ...]

    @classmethod
    def of(cls, source: IDC | Analysis) -> Self:
        """Return the cells of a fitted criterion, or of a finished analysis.

        Raises
        ------
        SettingError
            If the criterion has not been fitted.
        """
        if isinstance(source, IDC):
            _ = source.total  # refuses a criterion without clusters
        elif not isinstance(source, Analysis):
            raise SettingError(f"Cells come from a fitted IDC or an analysis, not from {type(source).__name__}.")
        original = source.original if isinstance(source, IDC) else source.settings["original"]
        middles = tuple((values[:-1] + values[1:]) / 2 for values in source.centroids)
        boundaries = middles if original else tuple(one.boundaries for one in source.clusters)
        return cls(source.layer, source.important, tuple(source.centroids), boundaries)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Clusters of each neuron."""
        return tuple(len(values) for values in self.centroids)

    @property
    def units(self) -> Floats:
        """Unit of each neuron's distances: the mean gap between its centroids; 1 for a single cluster."""
        gaps = [float(np.diff(values).mean()) if len(values) > 1 else 1.0 for values in self.centroids]
        return np.array([gap if gap > 0 else 1.0 for gap in gaps])

    def cell(self, wanted: str | Sequence[int]) -> tuple[int, ...]:
        """Return a cell's cluster indices, from "2-1-0" or a sequence.

        Raises
        ------
        SettingError
            If there is no such cell.
        """
        try:
            found = tuple(int(part) for part in (wanted.split("-") if isinstance(wanted, str) else wanted))
        except ValueError:
            found = ()
        inside = len(found) == len(self.sizes) and all(0 <= i < k for i, k in zip(found, self.sizes, strict=True))
        if not inside:
            raise SettingError(
                f"Expected a cell as {len(self.sizes)} cluster numbers below {'-'.join(map(str, self.sizes))}, for "
                f"example {'-'.join('0' for _ in self.sizes)}, not {wanted!r}."
            )
        return found

    def assign(self, activations: NDArray[Any]) -> NDArray[np.uint8]:
        """Return the cluster of each activation (n, m) of the important neurons, uint8 (n, m)."""
        return assign(activations, self.centroids, self.boundaries)

    def interval(self, cell: Sequence[int]) -> tuple[Floats, Floats]:
        """Return between which values each neuron lies in its cluster of this cell, float64 (m,) each."""
        pairs = list(zip(self.boundaries, cell, strict=True))
        low = [edges[index - 1] if index else -np.inf for edges, index in pairs]
        high = [edges[index] if index < len(edges) else np.inf for edges, index in pairs]
        return np.array(low, np.float64), np.array(high, np.float64)

    def codes(self, model: nn.Module, inputs: Any) -> Codes:
        """Return the cell of each input."""
        active = collect(model, inputs, [self.layer]).activations[self.layer]
        return encode(self.assign(active[:, self.important]), self.sizes)
