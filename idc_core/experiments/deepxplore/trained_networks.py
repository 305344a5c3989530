"""Networks that an experiment trains, each once: finished ones are kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

import torch

from idc_core.base.progress import Progress
from idc_core.base.threads import number
from idc_core.datasets import Dataset
from idc_core.models.entry import Recipe
from idc_core.models.network import Network
from idc_core.models.training import fit, reproducible
from idc_core.store.cache import ArrayFolder, records_folder
from idc_core.suites.suite import content_address

FORMAT = 1
"""Goes up when the weights change."""


def trained_network(
    build: Callable[[], Network],
    about: str,
    data: Dataset,
    recipe: Recipe,
    seed: int,
    on_progress: Progress | None = None,
    *,
    without: int = 0,
) -> Network:
    """Return a network that `build` makes, trained on `data`, in eval mode; read where it is finished.

    `about` tells what `build` makes from everything else, and how many of the last inputs it is trained `without`, in
    the order of all; the fingerprint of `data` tells what is learnt. The seed is of the first weights, the order of
    inputs and dropout. CancelledError if `on_progress` returned False.
    """
    key = content_address(FORMAT, number(), about, data.fingerprint, sorted(asdict(recipe).items()), seed)
    folder = ArrayFolder(records_folder() / "trained_networks")
    with reproducible(seed):
        network = build()
        held = folder.get(key)
        if held is None:
            fit(network, data, recipe, seed=seed, without=without, label=about, on_progress=on_progress)
            folder[key] = {part: value.contiguous().numpy() for part, value in network.state_dict().items()}
        else:
            network.load_state_dict({part: torch.from_numpy(value) for part, value in held.items()})
    return network.eval()
