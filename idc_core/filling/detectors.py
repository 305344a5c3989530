"""Detectors of strange pictures: how far a picture is from training pictures, in several ways."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import nn

from idc_core.base.arrays import Floats
from idc_core.perturbation.inputs import Pictures
from idc_core.tracing.trace import collect

Strangeness = Callable[[Pictures], Floats]
"""From pictures (n, C, H, W) to a number each (n,), larger for a stranger one."""

_KEPT = 0.95
"""Share of the variance that principal components keep; what they leave is the residual."""

_NEIGHBOURS = 5
_SIDE = 32
"""Larger pictures are shrunk to this side: principal components of all pixels of a photograph take minutes."""

_PATCH = 4
_PATCHES = 200_000
_ROWS = 512
"""Pictures whose distances are held at a time."""


def detectors(model: nn.Module, layer: str, train: Pictures) -> dict[str, Strangeness]:
    """Fit all detectors to training pictures; by what people call them."""

    def features(pictures: Pictures) -> Floats:
        return collect(model, pictures, [layer]).activations[layer].astype(np.float64)

    return {
        "PCA residual of pixels": _residual(_pixels, train),
        "PCA residual of 4 x 4 patches": _patch_residual(train),
        "distance to 5 nearest neighbours in pixels": _neighbours(_pixels, train),
        f"distance to 5 nearest neighbours in layer {layer}": _neighbours(features, train),
    }


def _small(pictures: Pictures) -> torch.Tensor:
    values = torch.as_tensor(np.ascontiguousarray(pictures, np.float32))
    sides = [min(_SIDE, side) for side in values.shape[2:]]
    return values if sides == list(values.shape[2:]) else F.interpolate(values, size=sides, mode="area")


def _pixels(pictures: Pictures) -> Floats:
    return np.asarray(_small(pictures).flatten(1), np.float64)


def _components(points: Floats) -> tuple[Floats, Floats]:
    """Return the mean (d,) of points (n, d) and the first principal components (k, d)."""
    mean = points.mean(0)
    values, vectors = np.linalg.eigh(np.cov(points - mean, rowvar=False).reshape(len(mean), len(mean)))
    values, vectors = values[::-1].clip(min=0), vectors[:, ::-1]
    kept = int(np.searchsorted(np.cumsum(values), _KEPT * values.sum())) + 1
    return mean, vectors[:, :kept].T


def _left(points: Floats, mean: Floats, components: Floats) -> Floats:
    """Return how long the part of points (n, d) outside the components is, (n,)."""
    away = points - mean
    away = away - (away @ components.T) @ components
    return np.asarray(np.sqrt(np.einsum("nd,nd->n", away, away)), np.float64)


def _residual(of: Callable[[Pictures], Floats], train: Pictures) -> Strangeness:
    mean, components = _components(of(train))
    return lambda pictures: _left(of(pictures), mean, components)


def _patches(pictures: Pictures) -> Floats:
    """Cut pictures into overlapping patches, float64 (n, patches, values)."""
    values = _small(pictures)
    size = min(_PATCH, *values.shape[2:])
    return np.asarray(F.unfold(values, size).permute(0, 2, 1), np.float64)


def _patch_residual(train: Pictures) -> Strangeness:
    """Compare small patches with those of training pictures: noise of any kind looks like none of them."""
    cut = _patches(train[: max(1, _PATCHES // max(1, _patches(train[:1]).shape[1]))])
    mean, components = _components(cut.reshape(-1, cut.shape[2]))

    def strangeness(pictures: Pictures) -> Floats:
        parts = [np.zeros(0)]
        for start in range(0, len(pictures), _ROWS):
            some = _patches(pictures[start : start + _ROWS])
            left = _left(some.reshape(-1, some.shape[2]), mean, components)
            parts.append(left.reshape(some.shape[:2]).mean(1))
        return np.concatenate(parts)

    return strangeness


def _neighbours(of: Callable[[Pictures], Floats], train: Pictures) -> Strangeness:
    known = of(train)
    squares = np.einsum("nd,nd->n", known, known)
    count = min(_NEIGHBOURS, len(known))

    def strangeness(pictures: Pictures) -> Floats:
        points = of(pictures) if len(pictures) else np.zeros((0, known.shape[1]))
        parts = [np.zeros(0)]
        for start in range(0, len(points), _ROWS):
            some = points[start : start + _ROWS]
            away: NDArray[np.float64] = np.einsum("nd,nd->n", some, some)[:, None] + squares - 2 * some @ known.T
            nearest = np.partition(away, count - 1, axis=1)[:, :count]
            parts.append(np.sqrt(nearest.clip(min=0)).mean(1))
        return np.concatenate(parts)

    return strangeness
