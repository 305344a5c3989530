"""Surprise adequacy of activation traces: by distance, by likelihood, by Mahalanobis distance.

A trace is a row of activations; its class is the one that the network predicts. All work is done in blocks of at most
`_BLOCK_BYTES`, each one matrix product.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Arrays, Floats, Ints
from idc_core.coverage.activations import rounding
from idc_core.coverage.moments import Moments
from idc_core.errors import DataError, SettingError

if TYPE_CHECKING:
    from idc_core.coverage.saved import Saved

Second = Literal["neighbour", "input"]
Drop = Literal["any class", "own class"]

_BLOCK_BYTES = 64 * 2**20
"""Memory of one block of distances or likelihoods."""


def blocks(rows: int, columns: int) -> Iterator[slice]:
    """Cut rows so that a float64 array of so many columns, and three like it, stay within `_BLOCK_BYTES`."""
    size = max(1, _BLOCK_BYTES // 4 // (8 * max(columns, 1)))
    for start in range(0, rows, size):
        yield slice(start, start + size)


class Neighbours:
    """Points (k, d), at least one, among which the nearest is looked for; kept with 8 d + 8 bytes per point.

    Which is nearest is read from |b|^2 - 2 a.b, a matrix product. Where more than one comes within its rounding error
    the differences themselves decide, so that the result is that of a plain loop.
    """

    def __init__(self, points: NDArray[np.floating]) -> None:
        self.points = points
        # About their own centre, points are short, and so is the rounding error of the product.
        self._centre = points.mean(0, dtype=np.float64)
        self._doubled = np.ascontiguousarray((self._centre - points).T * 2.0)
        self._norms = 0.25 * np.einsum("ij,ij->j", self._doubled, self._doubled)
        self._longest = float(self._norms.max())

    @property
    def memory(self) -> int:
        """Bytes that are kept."""
        return int(self.points.nbytes + self._doubled.nbytes + self._norms.nbytes)

    def nearest(self, queries: NDArray[np.floating], place: slice) -> tuple[Ints, Floats]:
        """Return for each query (n, d) the index within `place` of the nearest point, int64 (n,), and its distance.

        Of equally near points the first; Euclidean distances are summed over the differences themselves.
        """
        points, doubled, norms = self.points[place], self._doubled[:, place], self._norms[place]
        indices = np.empty(len(queries), np.int64)
        distances = np.empty(len(queries))
        for rows in blocks(len(queries), len(points)):
            block = queries[rows].astype(np.float64)
            centred = block - self._centre
            product = centred @ doubled
            product += norms
            best = product.argmin(1)
            lengths = np.einsum("ij,ij->i", centred, centred)
            error = 8 * np.finfo(np.float64).eps * block.shape[1] * (self._longest + lengths)
            limit = product[np.arange(len(best)), best] + error
            for row in np.flatnonzero(np.count_nonzero(product <= limit[:, None], axis=1) > 1):
                close = np.flatnonzero(product[row] <= limit[row])
                best[row] = close[np.linalg.norm(points[close] - block[row], axis=1).argmin()]
            indices[rows] = best
            distances[rows] = np.linalg.norm(points[best] - block, axis=1)
        return indices, distances


class DistanceAdequacy:
    """Distance-based surprise adequacy, DSA = dist_a / dist_b.

    dist_a is the distance of a trace to the nearest training trace x_a of its class, dist_b that of x_a to the nearest
    training trace of any other class; with `second` "input", dist_b is measured from the trace itself. All different
    training traces (n, d) are kept, 12 n d bytes (float32) or 16 n d; at least two classes are needed.

    J. Kim, R. Feldt, S. Yoo, ICSE 2019, equations 5 to 7; equal to dnn-tip's DSA. NeuraL-Coverage measures dist_b from
    the input. A trace that is also a training trace of its class has no surprise; one whose class has no training
    trace, or that sits where classes meet (dist_b = 0), infinite surprise.
    """

    def __init__(self, traces: NDArray[np.floating], classes: Ints, second: Second = "neighbour") -> None:
        if second not in get_args(Second):
            raise SettingError(f"second must be one of {', '.join(get_args(Second))}, not {second!r}.")
        order = np.argsort(classes, kind="stable")
        # Equal traces are equally near: of each the first is enough, and ties need not be broken for every test.
        order = order[_first_of_equal(traces[order], classes[order])]
        labels, firsts = np.unique(classes[order], return_index=True)
        if len(labels) < 2:
            raise DataError("Distance-based surprise compares with other classes, and the network predicts only one.")
        self.second = second
        self._neighbours = Neighbours(traces[order])
        ends = [*firsts[1:].tolist(), len(order)]
        self._places = {int(c): slice(a, b) for c, a, b in zip(labels, firsts.tolist(), ends, strict=True)}
        self._apart = np.full(len(order), np.nan)

    @property
    def memory(self) -> int:
        """Bytes that are kept."""
        return self._neighbours.memory + self._apart.nbytes

    def arrays(self) -> Arrays:
        """Return the training traces, points (n, d), and their classes (n,), by class."""
        classes = np.repeat(list(self._places), [place.stop - place.start for place in self._places.values()])
        return {"points": self._neighbours.points, "classes": classes.astype(np.int64)}

    def __call__(self, traces: NDArray[np.floating], classes: Ints) -> Floats:
        """Return the surprise of traces (n, d) of these predicted classes (n,), float64 (n,)."""
        surprise = np.full(len(traces), np.inf)
        for label, place in self._places.items():
            rows = np.flatnonzero(classes == label)
            if len(rows):
                index, near = self._neighbours.nearest(traces[rows], place)
                far = self._other(traces[rows], place) if self.second == "input" else self._of_training(index, place)
                with np.errstate(divide="ignore", invalid="ignore"):
                    surprise[rows] = np.where(near == 0, 0.0, near / far)
        return surprise

    def _of_training(self, index: Ints, place: slice) -> Floats:
        """Return how far training traces of one class are from all other classes; each is found out only once."""
        apart = self._apart[place]
        missing = np.unique(index[np.isnan(apart[index])])
        if len(missing):
            apart[missing] = self._other(self._neighbours.points[place][missing], place)
        return np.asarray(apart[index])

    def _other(self, traces: NDArray[np.floating], place: slice) -> Floats:
        """Return the distance of traces to the nearest training trace outside one class."""
        count = len(self._apart)
        sides = [side for side in (slice(0, place.start), slice(place.stop, count)) if side.stop > side.start]
        return np.asarray(np.minimum.reduce([self._neighbours.nearest(traces, side)[1] for side in sides]))


def _first_of_equal(traces: NDArray[np.floating], classes: Ints) -> Ints:
    """Return where each different trace of each class is found first, int64 (k,), ascending."""
    rows = np.ascontiguousarray(traces)
    whole = rows.view(np.dtype((np.void, rows.strides[0]))).reshape(-1) if rows.size else np.zeros(len(rows))
    same = np.unique(whole, return_inverse=True)[1].reshape(-1)
    return np.sort(np.unique(same * (classes.max(initial=0) + 1) + classes, return_index=True)[1])


class LikelihoodAdequacy:
    """Likelihood-based surprise adequacy: LSA = -ln of a Gaussian kernel density of the training traces (n, d).

    J. Kim, R. Feldt, S. Yoo, ICSE 2019, equations 3 and 4, with the bandwidth of Scott's rule, n^(-1/(d + 4)) times the
    covariance of the traces (divided by n - 1): what `scipy.stats.gaussian_kde` computes, and dnn-tip's LSA. There is
    one density per predicted class, or one where no `classes` are given. Neurons whose activations vary by less than
    `variance` within any class are left out everywhere (`drop` "any class", the original program), or in that class
    alone ("own class", dnn-tip, which by default also keeps the 300 neurons with the largest variance, `most`).
    NeuraL-Coverage uses a bandwidth of 0.2 in all directions. Departures: where the covariance is singular, and those
    programs stop, the density is taken in the directions in which the traces vary by more than the rounding of their
    type; where the density underflows to 0, and they give infinity, the logarithm is still exact. A trace whose class
    has fewer than two different training traces has infinite surprise. All traces are kept without the neurons left
    out, at most 8 n d bytes.
    """

    def __init__(
        self,
        traces: NDArray[np.floating],
        classes: Ints | None = None,
        variance: float = 1e-5,
        drop: Drop = "any class",
        most: int | None = None,
    ) -> None:
        if drop not in get_args(Drop):
            raise SettingError(f"drop must be one of {', '.join(get_args(Drop))}, not {drop!r}.")
        classes = np.zeros(len(traces), np.int64) if classes is None else classes
        members = {int(label): np.asarray(traces[classes == label], np.float64) for label in np.unique(classes)}
        members = {label: rows for label, rows in members.items() if len(rows) > 1}
        varies = {label: rows.var(0) for label, rows in members.items()}
        common = np.minimum.reduce(list(varies.values())) if varies else np.zeros(0)
        self._densities: dict[int, _Density] = {}
        for label, rows in members.items():
            enough = (common if drop == "any class" else varies[label]) >= variance
            kept = np.flatnonzero(enough)
            if most is not None and most < len(kept):
                kept = np.sort(kept[np.argsort(-varies[label][kept], kind="stable")[:most]])
            density = _Density.of(rows, kept, float(np.finfo(traces.dtype).eps))
            if density.points.shape[1]:
                self._densities[label] = density
        if not self._densities:
            raise DataError(f"No neuron's activations vary by {variance:g} within a class: choose a lower variance.")

    @property
    def memory(self) -> int:
        """Bytes that are kept."""
        return sum(density.points.nbytes for density in self._densities.values())

    def arrays(self) -> Arrays:
        """Return the classes, `labels`, and what the density of each is made of."""
        arrays: Arrays = {"labels": np.array(list(self._densities), np.int64)}
        for label, density in self._densities.items():
            arrays |= {
                f"class{label}_{name}": np.asarray(getattr(density, name)) for name in ("kept", "mean", "matrix")
            }
            arrays |= {f"class{label}_points": density.points, f"class{label}_constant": np.array(density.constant)}
        return arrays

    @classmethod
    def restored(cls, saved: Saved, neurons: int) -> Self:
        """Return what `arrays` has been given by, for traces of so many neurons."""
        made = cls.__new__(cls)
        made._densities = {}
        for label in saved.take("labels", "i", None).tolist():
            kept = saved.indices(f"class{label}_kept", neurons, None)
            matrix = saved.take(f"class{label}_matrix", "f", len(kept), None)
            made._densities[label] = _Density(
                kept,
                saved.take(f"class{label}_mean", "f", len(kept)),
                matrix,
                saved.take(f"class{label}_points", "f", None, matrix.shape[1]),
                float(saved.take(f"class{label}_constant", "f")),
            )
        return made

    def __call__(self, traces: NDArray[np.floating], classes: Ints | None = None) -> Floats:
        """Return the surprise of traces (n, d) of these predicted classes (n,), in nats, float64 (n,)."""
        classes = np.zeros(len(traces), np.int64) if classes is None else classes
        surprise = np.full(len(traces), np.inf)
        for label, density in self._densities.items():
            rows = np.flatnonzero(classes == label)
            if len(rows):
                surprise[rows] = density.surprise(traces[rows])
        return surprise


@dataclass(eq=False)
class _Density:
    """A Gaussian kernel density in coordinates in which its kernels are round and of variance one."""

    kept: Ints  # (k,), numbers of the neurons
    mean: Floats  # (k,)
    matrix: Floats  # (k, r)
    points: Floats  # (n, r), the kernels
    constant: float

    def __post_init__(self) -> None:
        self._halves = 0.5 * np.einsum("ij,ij->i", self.points, self.points)

    @classmethod
    def of(cls, rows: Floats, kept: Ints, precision: float) -> _Density:
        """Return the density of traces (n, d), known to a precision, in some of their neurons."""
        rows = rows[:, kept]
        moments = Moments().add(rows)
        matrix, volume = _whitening(moments, 1, precision)
        count, rank = len(rows), matrix.shape[1]
        bandwidth = count ** (-1.0 / (rank + 4))
        constant = math.log(count) + 0.5 * volume + rank * math.log(bandwidth) + 0.5 * rank * math.log(2 * math.pi)
        matrix = matrix / bandwidth
        return cls(kept, moments.mean, matrix, (rows - moments.mean) @ matrix, constant)

    def surprise(self, traces: NDArray[np.floating]) -> Floats:
        """Return minus the logarithm of the density at traces (n, d)."""
        surprises = np.empty(len(traces))
        for rows in blocks(len(traces), len(self.points)):
            places = (traces[rows][:, self.kept] - self.mean) @ self.matrix
            exponents = places @ self.points.T
            exponents -= self._halves
            largest = exponents.max(1)
            exponents -= largest[:, None]
            np.exp(exponents, out=exponents)
            surprises[rows] = 0.5 * np.einsum("ij,ij->i", places, places) - largest - np.log(exponents.sum(1))
        surprises += self.constant
        return surprises


class MahalanobisAdequacy:
    """Mahalanobis-distance-based surprise adequacy: MDSA = sqrt((a - mu)^T S^-1 (a - mu)).

    `moments` are those of the training traces of each predicted class, or of all under one number; S divides by the
    number of traces less `missing`. Where the covariance is singular the distance is taken in the directions in which
    the traces vary by more than the rounding of their type, whose `precision` is that of float64 unless given: 0 where
    all traces of the class are equal.

    J. Kim, J. Ju, R. Feldt, S. Yoo, "Reducing DNN Labelling Cost using Surprise Adequacy", ESEC/FSE 2020. Kept are
    mean and covariance of each class, 8 d (d + 1) bytes per class, and no traces. Their program divides by n - 1;
    dnn-tip takes all classes together, divides by n and returns the square; NeuraL-Coverage divides by n.
    """

    def __init__(
        self, moments: dict[int, Moments], missing: int = 1, precision: float = float(np.finfo(np.float64).eps)
    ) -> None:
        self._classes = {
            label: (of_class.mean, _whitening(of_class, missing, precision)[0])
            for label, of_class in moments.items()
            if of_class.count > missing
        }

    @property
    def memory(self) -> int:
        """Bytes that are kept."""
        return sum(mean.nbytes + matrix.nbytes for mean, matrix in self._classes.values())

    def arrays(self) -> Arrays:
        """Return the classes, `labels`, and the mean and the whitening matrix of each."""
        arrays: Arrays = {"labels": np.array(list(self._classes), np.int64)}
        for label, (mean, matrix) in self._classes.items():
            arrays |= {f"class{label}_mean": mean, f"class{label}_matrix": matrix}
        return arrays

    @classmethod
    def restored(cls, saved: Saved, neurons: int) -> Self:
        """Return what `arrays` has been given by, for traces of so many neurons."""
        made = cls({})
        for label in saved.take("labels", "i", None).tolist():
            mean = saved.take(f"class{label}_mean", "f", neurons)
            # Column by column, as `whitening` gives it: the last bits of products differ with the order in memory.
            matrix = np.asfortranarray(saved.take(f"class{label}_matrix", "f", neurons, None))
            made._classes[label] = mean, matrix
        return made

    def __call__(self, traces: NDArray[np.floating], classes: Ints) -> Floats:
        """Return the surprise of traces (n, d) of these predicted classes (n,), float64 (n,)."""
        surprise = np.full(len(traces), np.inf)
        for label, (mean, matrix) in self._classes.items():
            rows = np.flatnonzero(classes == label)
            surprise[rows] = np.linalg.norm((traces[rows] - mean) @ matrix, axis=1)
        return surprise


def _whitening(moments: Moments, missing: int, precision: float) -> tuple[Floats, float]:
    """Return the matrix (d, r) that turns rows of these moments into uncorrelated ones of variance one.

    Left out are directions in which nothing varies but by rounding: that of this calculation, below d times the
    precision of the largest variance, and that of the rows themselves, whose type has the given precision. Of n rows,
    noise varies by up to 1 + sqrt(d / n) times as much in some direction. Also returns the logarithm of the product of
    the r variances.
    """
    covariance = moments.covariance(missing)
    values, vectors = np.linalg.eigh(covariance)
    size = len(values)
    scales = np.sqrt(moments.mean**2 + np.diagonal(covariance))
    noise = np.square(rounding(scales, precision) * (1 + math.sqrt(size / moments.count))) @ np.square(vectors)
    kept = values > np.maximum(values.max(initial=0.0) * size * np.finfo(np.float64).eps, noise)
    return vectors[:, kept] / np.sqrt(values[kept]), math.fsum(np.log(values[kept]))
