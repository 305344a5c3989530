"""Cells: every combination of the important neurons' clusters, and how often inputs fall into each.

A cell is one cluster index per neuron. Its code is the mixed-radix number with these digits, the first neuron
the most significant, so that a cell is one integer and covered cells are different integers.
"""

import math
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from idc_core.base.arrays import Array, Floats
from idc_core.base.parameters import is_whole
from idc_core.clustering.kmeans import MAX_CLUSTERS
from idc_core.errors import DataError, SettingError

Codes = Array
"""Cell codes: int64 while the number of cells is below 2**63, else an object array of Python ints."""

_ROWS = 16384  # a block of this many rows of a dozen neurons stays in the processor's cache
_PENDING = 1 << 16  # codes that are kept unsorted before they are counted


def assign(
    activations: ArrayLike, centroids: Sequence[ArrayLike], boundaries: Sequence[Floats] | None = None
) -> NDArray[np.uint8]:
    """Return each activation's cluster (n, m), uint8 (n, m): the nearest centroid, of two equally near the lower one.

    S. Gerasimou et al., ICSE 2020, equation (6): the nearest element of the product of all centroids is the nearest
    centroid of each neuron, because the product is complete. "Nearest" is decided at the float64 midpoints of
    neighbouring centroids, which are ascending, at most 256 a neuron; float32 is compared without conversion. Clusters
    that do not end half way have `boundaries`: for each neuron the largest value of every cluster but the last.
    """
    array = np.asarray(activations)
    if array.ndim != 2 or array.dtype.kind not in "fiu" or array.shape[1] != len(centroids):
        raise SettingError(
            f"Expected real activations of shape (inputs, {len(centroids)}), one column per neuron that has "
            f"centroids, got {array.dtype} of shape {array.shape}."
        )
    kind: np.dtype[np.floating] = np.dtype(np.float32 if array.dtype == np.float32 else np.float64)
    edges_of = [midpoints(values) for values in centroids] if boundaries is None else boundaries
    thresholds = [_rounded_down(edges, kind) for edges in edges_of]
    clusters = np.zeros((array.shape[1], array.shape[0]), dtype=np.uint8)
    for start in range(0, array.shape[0], _ROWS):
        block = np.ascontiguousarray(array[start : start + _ROWS].T, dtype=kind)
        if not np.isfinite(block).all():
            neuron, row = np.argwhere(~np.isfinite(block))[0]
            raise DataError(
                f"Expected activations that are finite numbers, got {block[neuron, row]} for input {start + row} in "
                f"column {neuron}; check the weights and the inputs."
            )
        for neuron, edges in enumerate(thresholds):
            index = clusters[neuron, start : start + _ROWS]
            for edge in edges:
                index += block[neuron] > edge
    return clusters.T


def midpoints(centroids: ArrayLike) -> Floats:
    """Return the values above which the next centroid is nearest."""
    values = np.asarray(centroids, dtype=np.float64)
    if values.ndim != 1 or not 1 <= len(values) <= MAX_CLUSTERS:
        raise SettingError(f"Expected 1 to {MAX_CLUSTERS} centroids for a neuron, got shape {values.shape}.")
    if not np.isfinite(values).all() or (np.diff(values) < 0).any():
        raise SettingError(f"Expected centroids to be finite and ascending, got {values.tolist()}.")
    midpoints = (values[:-1] + values[1:]) / 2
    # A repeated centroid is skipped: its edge is the edge of the next different one.
    midpoints[values[:-1] == values[1:]] = np.inf
    return np.minimum.accumulate(midpoints[::-1])[::-1]


def _rounded_down(edges: Floats, kind: np.dtype[np.floating]) -> NDArray[np.floating]:
    """Return the largest float32 up to each edge: it parts float32 values exactly where the edge itself does."""
    with np.errstate(over="ignore"):
        rounded = edges.astype(kind)
    return np.where(rounded > edges, np.nextafter(rounded, kind.type(-np.inf)), rounded)


def total(sizes: Sequence[int]) -> int:
    """Return the number of cells, which can pass 2**64: the product of the cluster counts, each 1 to 256."""
    for size in sizes:
        if not is_whole(size, 1, MAX_CLUSTERS):
            raise SettingError(f"Expected 1 to {MAX_CLUSTERS} clusters for every neuron, got {size!r}.")
    if not len(sizes):
        raise SettingError("Expected the number of clusters of at least one neuron, got none.")
    return math.prod(map(int, sizes))


def encode(assignments: NDArray[np.uint8], sizes: Sequence[int]) -> Codes:
    """Return the code of each input's cell, (n,): its cluster indices (n, m) as the digits of a mixed-radix number.

    The first neuron is the most significant digit. Codes are int64 while there are fewer than 2**63 cells, else Python
    ints, with which sorting, `np.unique` and `decode` work just the same, only slower.
    """
    cells = total(sizes)
    array = np.asarray(assignments)
    if array.ndim != 2 or array.dtype != np.uint8 or array.shape[1] != len(sizes):
        raise SettingError(
            f"Expected cluster indices as uint8 of shape (inputs, {len(sizes)}), "
            f"got {array.dtype} of shape {array.shape}."
        )
    for neuron, size in enumerate(sizes):
        largest = int(array[:, neuron].max(initial=0))
        if largest >= size:
            raise SettingError(f"Expected indices below {size} in column {neuron}, got {largest}.")
    if cells < 2**63:
        return _mix(array, sizes)
    half = len(sizes) // 2
    upper, lower = encode(array[:, :half], sizes[:half]), encode(array[:, half:], sizes[half:])
    codes: Codes = upper.astype(object) * total(sizes[half:]) + lower.astype(object)
    return codes


def _mix(assignments: NDArray[np.uint8], sizes: Sequence[int]) -> NDArray[np.int64]:
    """Horner's scheme, a column at a time."""
    codes = np.zeros(len(assignments), dtype=np.int64)
    for neuron, size in enumerate(sizes):
        codes *= size
        codes += assignments[:, neuron]
    return codes


def decode(codes: ArrayLike, sizes: Sequence[int]) -> NDArray[np.uint8]:
    """Return the cluster indices of cells, uint8 (n, m), from their codes (n,); the inverse of `encode`."""
    cells = total(sizes)
    rest = np.asarray(codes)
    if not rest.size:
        rest = rest.astype(np.int64)
    if rest.ndim != 1 or rest.dtype.kind not in "iuO":
        raise SettingError(
            f"Expected cell codes as a one-dimensional array of whole numbers, got {rest.dtype} of shape {rest.shape}."
        )
    if rest.size and (rest.min() < 0 or rest.max() >= cells):
        raise SettingError(f"Expected cell codes from 0 to {cells - 1}, got {rest.min()} to {rest.max()}.")
    assignments = np.empty((len(rest), len(sizes)), dtype=np.uint8)
    for neuron in range(len(sizes) - 1, -1, -1):
        assignments[:, neuron] = rest % sizes[neuron]
        rest = rest // sizes[neuron]
    return assignments


def cluster_name(cluster: int, clusters: int) -> str:
    """Name one of a neuron's clusters by its place among them."""
    if clusters == 1:
        return "only cluster"
    if cluster == 0:
        return "lowest cluster"
    return "highest cluster" if cluster == clusters - 1 else f"cluster {cluster}"


def cell_name(cell: Sequence[int]) -> str:
    """Write a cell as the cluster indices of its neurons."""
    return "-".join(str(int(index)) for index in cell)


class CellCounts:
    """Number of inputs in each cell; covered cells are kept, empty ones cost nothing."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.total = total(sizes)
        self.sizes = tuple(map(int, sizes))
        self._codes: Codes = np.zeros(0, dtype=np.int64 if self.total < 2**63 else object)
        self._counts = np.zeros(0, dtype=np.int64)
        self._pending: list[Codes] = []
        self._waiting = 0

    def __copy__(self) -> "CellCounts":
        other = CellCounts(self.sizes)
        other._codes, other._counts = self._codes, self._counts
        other._pending, other._waiting = list(self._pending), self._waiting
        return other

    def update(self, assignments: NDArray[np.uint8]) -> Self:
        """Count more inputs by their cluster indices, uint8 (n, m), as `assign` returns them."""
        codes = encode(assignments, self.sizes)
        self._pending.append(codes)
        self._waiting += len(codes)
        # Small batches wait, so that the cells known so far are not merged anew for each of them.
        if self._waiting > max(_PENDING, len(self._codes)):
            self._settle()
        return self

    def merge(self, other: "CellCounts") -> Self:
        """Add the counts of another worker over the same cells; associative and commutative."""
        if self.sizes != other.sizes:
            raise SettingError(
                f"Expected counts over the same cells to merge, got cluster counts {self.sizes} and "
                f"{other.sizes}; merge only what was fitted on the same training inputs."
            )
        self._add(other.codes, other.counts)
        return self

    @property
    def codes(self) -> Codes:
        """Codes of the covered cells, ascending, each once."""
        self._settle()
        return self._codes

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many inputs fell into each of `codes`."""
        self._settle()
        return self._counts

    @property
    def covered(self) -> int:
        """Number of cells with at least one input."""
        return len(self.codes)

    def _settle(self) -> None:
        """Count the codes that wait."""
        if self._pending:
            codes, counts = np.unique(np.concatenate(self._pending), return_counts=True)
            self._pending, self._waiting = [], 0
            self._add(codes, counts.astype(np.int64))

    def _add(self, codes: Codes, counts: NDArray[np.int64]) -> None:
        """Merge ascending, different codes into the table."""
        self._settle()
        codes, counts = np.concatenate((self._codes, codes)), np.concatenate((self._counts, counts))
        if len(codes):
            order = np.argsort(codes, kind="stable")  # merges two sorted runs in linear time
            codes = codes[order]
            starts = np.flatnonzero(np.concatenate(([True], codes[1:] != codes[:-1])))
            codes, counts = codes[starts], np.add.reduceat(counts[order], starts)
        self._codes, self._counts = codes, counts
