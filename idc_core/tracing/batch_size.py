"""How many inputs one batch takes: enough to keep the machine busy, within a bound of memory.

On a processor small batches are fast as long as their activations stay near the caches, but every batch reads, and
rearranges, all weights. A batch is therefore as large as stays near the caches, and larger where the weights would be
read for too few products. A graphics card is busy only with many inputs and gets what its memory allows.
"""

import torch

from idc_core.base.config import config

NEAR = 64 << 20
"""Bytes of activations that stay near a processor's caches, with every core busy."""

_USES = 2_000
"""Products per weight, on average, from which reading the weights no longer slows a batch."""

MOST_INPUTS = 640
"""Inputs of one batch on a processor, however small; beyond this nothing is gained and the caches are left."""

_MOST_ON_CARD = 4_096
"""The same on a graphics card."""

_MEMORY = 1 << 30
"""Bytes of activations in one batch where the config file says nothing."""

_SHARE = 0.25
"""Part of a graphics card's free memory that the activations of one batch may take; a way back takes as much again."""


def inputs_at_once(
    footprint: int, uses: float = float("inf"), device: torch.device | None = None, held: int | None = None
) -> int:
    """Return how many inputs to run at once.

    `footprint` is the bytes of one input's activations, `held` those of them that are in memory at the same time (None:
    all), `uses` how often one input uses each weight on average.
    """
    card = device is not None and device.type == "cuda"
    count = _MOST_ON_CARD if card else min(MOST_INPUTS, max(NEAR // footprint, int(_USES / uses)))
    return max(1, min(count, _memory(device if card else None) // (held or footprint)))


def _memory(card: torch.device | None) -> int:
    """Return the bytes that one batch may take: the owner's limit, else what suits the device."""
    given = config().batch
    if given is not None:
        return given
    return _MEMORY if card is None else int(_SHARE * torch.cuda.mem_get_info(card)[0])
