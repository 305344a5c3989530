"""Networks of the registry trained anew from other seeds, so that a result can be of networks rather than of one."""

from __future__ import annotations

from dataclasses import asdict

from idc_core.base.files import cache_folder
from idc_core.base.progress import Progress
from idc_core.base.ranges import SEED
from idc_core.models.entry import Recipe
from idc_core.models.loading import load_model
from idc_core.models.network import Network
from idc_core.models.registry import find_entry
from idc_core.models.training import train


def load_training(
    name: str, seed: int, recipe: Recipe | None = None, *, on_progress: Progress | None = None
) -> Network:
    """Return a network as it comes out of a training from a seed: from the cache, or trained now and kept there.

    `recipe` is another one than the network's own. Raises as `idc_core.models.train`; a network that was published
    with its weights has no recipe of its own, and needs one here.
    """
    entry = find_entry(name)
    SEED.check(seed)
    chosen = entry.recipe if recipe is None else recipe
    settings = {} if chosen is None else asdict(chosen)
    told = "-".join(str(value) for key, value in settings.items() if key not in ("note", "weight_decay"))
    folder = cache_folder() / "trainings" / f"{name}-{told}" / str(seed)
    weights = folder / f"{name}.safetensors"
    if not (weights.exists() and weights.with_suffix(".json").exists()):
        train(name, out=folder, seed=seed, recipe=recipe, on_progress=on_progress)
    return load_model(name, weights=weights)
