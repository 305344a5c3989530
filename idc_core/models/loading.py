"""From a registry name to a network that is ready to use."""

from __future__ import annotations

from pathlib import Path

from idc_core.errors import ModelError
from idc_core.models.card import ModelCard
from idc_core.models.entry import ModelEntry
from idc_core.models.network import Network
from idc_core.models.published import load_published
from idc_core.models.registry import find_entry
from idc_core.models.weights import WEIGHTS_FOLDER, fingerprint, read_weights


def load_model(name: str, *, weights: Path | None = None) -> Network:
    """Load a network of the registry with its trained weights.

    Parameters
    ----------
    name : str
        A name in `MODELS`.
    weights : Path, optional
        Weights to use instead of the project's own: a `.safetensors` file (for published networks a `.npz`
        file), with the card or layer list beside it under the same name with the ending `.json`.

    Returns
    -------
    Network
        A `torch.nn.Module` in eval mode, float32 on the CPU, with its `ModelCard` as the attribute `card`.
        Its outputs are scores before any softmax.

    Raises
    ------
    ModelError
        If the name is unknown, or a file is absent, damaged or belongs to another network.
    """
    entry = find_entry(name)
    if entry.complete:
        network = _load_complete(entry, weights)
    else:
        network = load_published(entry, weights) if entry.published else _load_trained(entry, weights)
    return network.eval()


def _load_complete(entry: ModelEntry, weights: Path | None) -> Network:
    network = entry.build()
    if weights is not None:
        read_weights(network, weights)
    network.card = entry.card(network, metrics={}, recipe={}, seed=None, split="")
    return network


def _load_trained(entry: ModelEntry, weights: Path | None) -> Network:
    path = weights if weights is not None else WEIGHTS_FOLDER / f"{entry.name}.safetensors"
    if not path.exists():
        raise ModelError(f"The weights file {path} does not exist; `python -m idc_core train {entry.name}` trains it.")
    network = entry.build()
    read_weights(network, path)
    description = path.with_suffix(".json")
    card = ModelCard.read(description)
    found = fingerprint(network)
    if card.fingerprint != found or card.name != entry.name:
        raise ModelError(
            f"The card {description} is of {card.name} with fingerprint {card.fingerprint}, but "
            f"the weights beside it are {entry.name} with {found}: the two files do not belong together."
        )
    card.check_network(network, str(description))
    network.card = card
    return network
