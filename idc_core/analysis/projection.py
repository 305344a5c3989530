"""Inputs as points on a plane: their activations of the important neurons, projected so that they can be seen.

The principal components are exact and immediate; UMAP keeps neighbourhoods and takes seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.base.progress import Progress, report
from idc_core.base.threads import one_thread
from idc_core.errors import SettingError
from idc_core.evidence.draws import against_draws
from idc_core.evidence.finding import Finding

_MOST_POINTS = 1500
"""Inputs that are projected at most, unless said otherwise: what a browser can draw and hand back when clicked."""

_MIXED = 199
"""Orders in which groups are mixed at random."""

FEWEST_POINTS = 5
"""Inputs that UMAP needs to speak of neighbours."""


@dataclass(frozen=True, eq=False)
class Projection:
    """Inputs on a plane."""

    points: NDArray[np.float64]
    """(n, 2), their places: for principal components in the unit of the activations, for UMAP without a unit."""
    explained: tuple[float, float] | None = None
    """Share of the variance along either axis, 0..1; None for UMAP, which has no such share."""
    loadings: NDArray[np.float64] | None = None
    """(2, m), how much of each neuron goes into either axis, the squares of an axis summing to 1; None for UMAP."""


def sample(positions: NDArray[np.int64], most: int = _MOST_POINTS, seed: int = 0) -> NDArray[np.int64]:
    """Draw at most so many of some positions at random, in ascending order; all of them where they are few."""
    if len(positions) <= most:
        return np.sort(positions)
    return np.sort(np.random.default_rng(seed).choice(positions, most, replace=False))


def principal_components(activations: NDArray[np.floating]) -> Projection:
    """Project activations (n, m) on the two directions in which they vary most; each one's largest loading is positive.

    K. Pearson (1901), from the eigenvectors of the (m, m) covariance: linear in the number of inputs. The neurons keep
    their scale, so one that varies more counts more. With one neuron, or no variation, the second axis is 0.
    """
    values = _checked(activations, 1)
    centred = values - values[0]  # exactly 0 where all inputs are alike
    centred -= centred.mean(axis=0)
    variance, directions = np.linalg.eigh(centred.T @ centred / len(values))
    axes = directions.T[::-1][:2]
    axes = axes * np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])[:, None]
    variance = np.maximum(variance[::-1], 0.0)
    shares = variance[:2] / max(float(variance.sum()), np.finfo(np.float64).tiny)
    if len(axes) == 1:
        axes, shares = np.vstack([axes, np.zeros_like(axes)]), np.append(shares, 0.0)
    return Projection(centred @ axes.T, (float(shares[0]), float(shares[1])), axes)


def alike(points: NDArray[np.floating], member: NDArray[np.int64], claim: str, seed: int = 0) -> Finding | None:
    """Return the share of points (n, 2) whose nearest other point is of the same group (n,), beside mixed groups.

    `claim` names the share; None for fewer than two points.
    """
    if len(points) < 2:
        return None
    from scipy.spatial import cKDTree

    # The nearest two: a point is nearest to itself, unless another one lies on top of it.
    nearest = cKDTree(points).query(points, k=2)[1]
    other = np.where(nearest[:, 0] == np.arange(len(points)), nearest[:, 1], nearest[:, 0])
    mixed = np.random.default_rng(seed).permuted(np.tile(member, (_MIXED, 1)), axis=1)
    draws = (mixed[:, other] == mixed).mean(1)
    share = float(np.mean(member[other] == member))
    return against_draws("neighbours", claim, share, draws, "if the groups were mixed", "%")


def umap(
    activations: NDArray[np.floating],
    *,
    neighbours: int = 15,
    spread: float = 0.1,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> Projection:
    """Project activations (n, m), of at least 5 inputs, so that inputs that are alike lie together.

    L. McInnes, J. Healy, J. Melville, "UMAP: Uniform Manifold Approximation and Projection for Dimension Reduction"
    (2018), by umap-learn. Distances between groups and the axes have no meaning.
    """
    values = _checked(activations, FEWEST_POINTS)
    if neighbours < 2 or not 0 <= spread <= 1:
        raise SettingError(f"Expected neighbours of at least 2 and spread in 0..1; got {neighbours} and {spread}.")
    report(on_progress, 0, 2, "loading UMAP")
    from umap import UMAP

    report(on_progress, 1, 2, "laying out the inputs")
    # With a seed UMAP works in one thread; saying so keeps it from warning.
    layout = UMAP(n_neighbors=min(neighbours, len(values) - 1), min_dist=spread, random_state=seed, n_jobs=1)
    with one_thread():  # UMAP's compiler would change the number of threads that torch computes with from here on
        points = layout.fit_transform(values.astype(np.float32))
    report(on_progress, 2, 2, "laying out the inputs")
    return Projection(np.asarray(points, dtype=np.float64))


def _checked(activations: NDArray[np.floating], fewest: int) -> NDArray[np.float64]:
    values = np.asarray(activations, dtype=np.float64)
    if values.ndim != 2 or len(values) < fewest or not values.shape[1]:
        raise SettingError(
            f"Expected activations of at least {fewest} inputs and one neuron, shape (n, m); got {values.shape}."
        )
    if not np.isfinite(values).all():
        raise SettingError("Some activations are not finite; check the network's weights and the scale of its inputs.")
    return values
