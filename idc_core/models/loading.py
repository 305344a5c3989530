"""From a registry name to a network that is ready to use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from idc_core.errors import ModelError
from idc_core.models.card import ModelCard
from idc_core.models.entry import ModelEntry
from idc_core.models.network import Network
from idc_core.models.own import OwnModel
from idc_core.models.published import load_published
from idc_core.models.registry import MODELS, find_entry
from idc_core.models.weights import WEIGHTS_FOLDER, fingerprint, read_weights
from idc_core.own_code import said_source

FORMATS: dict[str, Callable[[Path], Network]] = {}
"""Readers of files by their ending, as ".onnx"; "/" is a folder."""


def load_model(name: str, *, weights: Path | None = None) -> Network:
    """Load a network of the registry with its trained weights.

    Parameters
    ----------
    name : str
        A name in `MODELS`, or the path of a file whose ending is in `FORMATS`.
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
    if name not in MODELS and (read := _reader_of_file(name)) is not None:
        return read(Path(name))
    entry = find_entry(name)
    if isinstance(entry, OwnModel):
        network = _load_complete(entry, weights)
    else:
        network = load_published(entry, weights) if entry.published else _load_trained(entry, weights)
    return network.eval()


def _reader_of_file(name: str) -> Callable[[Path], Network] | None:
    """Return the reader of a file by its ending; None where the name is no such file."""
    path = Path(name)
    if path.suffix == ".py":
        raise ModelError(f"{name} is code, which only `idc_core.open_setup` and --setup read; then give a name of it.")
    return FORMATS.get("/" if path.is_dir() else path.suffix.lower())


def _load_complete(entry: OwnModel, weights: Path | None) -> Network:
    network = entry.open()
    if weights is not None:
        read_weights(network, weights)
    source = {"source": said_source(entry.build), "remarks": getattr(network, "remarks", ())}
    network.card = entry.card(network, metrics={}, recipe=source, seed=None, split="")
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
