"""The same network before its training: what a unit goes with then, no training has brought about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from idc_core.models.registry import MODELS

if TYPE_CHECKING:
    from torch import nn


def untrained(name: str, seed: int = 0) -> nn.Module:
    """Return a registered network with fresh weights, in evaluation mode.

    Parameters
    ----------
    name : str
        A key of `MODELS`.
    seed : int
        Fixes the weights; torch's own random numbers go on as if nothing had been drawn.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return MODELS[name].build().eval()
