"""Corruptions by noise on every pixel."""

from __future__ import annotations

import numpy as np

from idc_core.perturbation.corruptions.registry import Bytes, Levels, corruption


@corruption("gaussian-noise", "Gaussian noise", "As in the dark: the same noise everywhere.", random=True)
def _gaussian(picture: Bytes, severity: int, random: np.random.Generator) -> Levels:
    deviation = (0.08, 0.12, 0.18, 0.26, 0.38)[severity - 1]
    return np.clip(picture / 255.0 + random.normal(size=picture.shape, scale=deviation), 0, 1) * 255


@corruption("shot-noise", "Shot noise", "Counts few photons: noise grows with brightness.", random=True)
def _shot(picture: Bytes, severity: int, random: np.random.Generator) -> Levels:
    photons = (60, 25, 12, 5, 3)[severity - 1]
    return np.clip(random.poisson(picture / 255.0 * photons) / photons, 0, 1) * 255


@corruption("impulse-noise", "Impulse noise", "Salt and pepper: single values black or white.", random=True)
def _impulse(picture: Bytes, severity: int, random: np.random.Generator) -> Levels:
    share = (0.03, 0.06, 0.09, 0.17, 0.27)[severity - 1]
    hit = random.random(picture.shape) <= share
    salt = random.random(picture.shape) <= 0.5
    return np.where(hit, np.where(salt, 255.0, 0.0), picture)
