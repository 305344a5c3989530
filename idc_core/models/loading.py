"""From a registry name to a network that is ready to use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from idc_core.base.devices import choose
from idc_core.base.files import COMMAND
from idc_core.base.own_code import looks_like_path, said_source
from idc_core.base.parameters import shown
from idc_core.errors import ModelError
from idc_core.lrp.explained import Explain
from idc_core.models.card import WEIGHTS_FOLDER, ModelCard
from idc_core.models.entry import ModelEntry
from idc_core.models.network import Network
from idc_core.models.network_file import NetworkFile
from idc_core.models.own import OwnModel
from idc_core.models.published import load_published
from idc_core.models.registry import MODELS, find_entry
from idc_core.models.scaling import Scaling
from idc_core.models.weights import fingerprint, read_weights


def load_model(
    name: str | Path,
    *,
    weights: Path | str | None = None,
    data: Path | str = "",
    scaling: Scaling | None = None,
    architecture: str = "",
    trust: bool = False,
    explain: Explain | None = None,
    output: str | int = "",
    class_names: Sequence[str] = (),
    held: Mapping[str, float] | None = None,
    output_layout: str = "",
    device: str = "",
) -> Network:
    """Load a network of the registry with its trained weights, or one from a file.

    Parameters
    ----------
    name : str or Path
        A name in `MODELS`, or the path of a file or folder.
    weights : str or Path, optional
        Weights to use instead of the project's own: a `.safetensors` file (for published networks a `.npz`
        file), with the card or layer list beside it under the same name with the ending `.json`.
    data : str or Path
        Of a path: name or path of the data that the network takes; it is then entered into `MODELS`. Without, the
        network takes arrays, and its card names no data.
    scaling, architecture, trust, explain, output, class_names, held, output_layout
        Of a path: as in `idc_core.models.network_file.NetworkFile`, where `class_names` are its `output_names`.
    device : str
        Where it runs: "cpu", "cuda", "cuda:1", "mps", or "auto" for the first accelerator that is there. By default
        what the command line, else the config file, says, else the processor.

    Returns
    -------
    Network
        A `torch.nn.Module` in eval mode, float32, with its `ModelCard` as the attribute `card`.
        Its outputs are scores before any softmax.

    Raises
    ------
    ModelError
        If the name is unknown or no name, or a file is absent, damaged or belongs to another network.
    SettingError
        If the device is not there.
    """
    for what, given in (
        ("name of a network, or the path of its file,", name),
        ("path of weights", weights),
        ("name or path of the data", data),
    ):
        if not isinstance(given, str | Path) and not (given is None and given is weights):
            raise ModelError(f"Expected the {what} as text or Path, not {shown(given)}.")
    weights = None if weights is None else Path(weights)
    where = choose(device)
    if str(name) not in MODELS and looks_like_path(str(name)):
        names = tuple(map(str, class_names))
        file = NetworkFile(
            Path(name),
            scaling,
            architecture,
            trust,
            explain,
            str(output),
            names,
            held=dict(held or {}),
            output_layout=output_layout,
        )
        entry: ModelEntry = file.entry(data, without_data=True)
        if entry.dataset:
            MODELS[entry.name] = entry
    elif any((data, scaling, architecture, trust, explain is not None, str(output), class_names, held, output_layout)):
        raise ModelError(
            f"{name} is no path: data, scaling, architecture, trust, explain, output, class_names, held and "
            "output_layout are for networks from files."
        )
    else:
        entry = find_entry(str(name))
    if isinstance(entry, OwnModel):
        network = _load_complete(entry, weights)
    else:
        network = load_published(entry, weights) if entry.published else _load_trained(entry, weights)
    return network.to(where).eval()


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
        raise ModelError(f"The weights file {path} does not exist; `{COMMAND} train {entry.name}` trains it.")
    network = entry.build()
    read_weights(network, path)
    description = path.with_suffix(".json")
    card = ModelCard.read(description)
    computed = fingerprint(network)
    if card.fingerprint != computed or card.name != entry.name:
        raise ModelError(
            f"The card {description} is of {card.name} with fingerprint {card.fingerprint}, but "
            f"the weights beside it are {entry.name} with {computed}: the two files do not belong together."
        )
    if card.task != entry.task:
        raise ModelError(f"The card {description} says {card.task}, but {entry.name} is for {entry.task}.")
    card.check_network(network, str(description))
    network.card = card
    return network
