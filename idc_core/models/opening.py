"""From a path to a network of the registry. Needs no torch before the network is built."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from idc_core.datasets.opening import open_data
from idc_core.datasets.registry import DATASETS
from idc_core.errors import DataError, ModelError
from idc_core.explained import Explain, checked
from idc_core.models.card import Task
from idc_core.models.formats import check_content, format_of
from idc_core.models.own import OwnModel
from idc_core.models.registry import MODELS, find_entry
from idc_core.models.scaling import Scaling
from idc_core.own_code import free_name, next_edition

if TYPE_CHECKING:
    from idc_core.models.entry import ModelEntry
    from idc_core.models.network import Network

_SMALL = 1 << 20
_PART = 1 << 20


class FileBuilder:
    """Builds the network of one file or folder; `path` says where what is wrong lies.

    Raises
    ------
    ModelError
        If there is no reader for it, its content is of another kind, or it can run code and is not trusted.
    """

    def __init__(self, path: Path, scaling: Scaling | None, architecture: str, trust: bool) -> None:
        found = format_of(path)
        if found.trusted and not trust:
            raise ModelError(f"{path} can run code when it is read; give --trust if you made it, or trust who did.")
        if architecture and found.ending != ".safetensors":
            raise ModelError(f"{path} brings its own architecture; {architecture!r:.100} is for a .safetensors file.")
        check_content(path)
        self.path, self.scaling, self.architecture = path, scaling, architecture
        self._read = found.read

    def __call__(self) -> Network:
        """Read the network, weights included."""
        from idc_core.models.wrapping import check_finite, put_before

        if self.architecture:
            from idc_core.models.architectures import read_architecture

            network = cast("Network", read_architecture(self.path, self.architecture))
        else:
            network = cast("Network", self._read(self.path))
        check_finite(network, str(self.path))
        if self.scaling is not None and self.scaling.said:
            put_before(network, self.scaling)
            network.remarks = (*getattr(network, "remarks", ()), f"Inputs are {self.scaling.said}.")
        return network

    @cached_property
    def digest(self) -> str:
        """16 hexadecimal digits that change with the file, or the small files of a folder, and with the scaling."""
        from idc_core.guarded import opened

        digest = hashlib.sha256(json.dumps(self.scaling.to_json() if self.scaling else {}).encode())
        folder = self.path.is_dir()
        for file in sorted(self.path.iterdir()) if folder else [self.path]:
            if folder and not (file.is_file() and file.stat().st_size <= _SMALL):
                continue  # weights are part of every fingerprint anyway
            try:
                with opened(file, f"The file {file}") as stream:
                    for part in iter(partial(stream.read, _PART), b""):
                        digest.update(part)
            except DataError as error:
                raise ModelError(str(error)) from error
        return digest.hexdigest()[:16]


def open_network(
    path: Path | str,
    *,
    data: Path | str = "",
    name: str = "",
    label: str = "",
    layer: str = "",
    layers: Sequence[str] = (),
    scaling: Scaling | None = None,
    architecture: str = "",
    trust: bool = False,
    explain: Explain | None = None,
) -> ModelEntry:
    """Enter the network of a file or folder into `MODELS`, in place of what was opened from it before.

    Parameters
    ----------
    path : Path or str
        A file whose ending is in `NETWORK_FORMATS`, or a folder.
    data : Path or str
        What it takes: a name in `DATASETS`, or a path or URL, which `open_data` enters, prepared as the network's
        files ask. It may be left out where the file tells.
    name, label : str
        By default after the file.
    layer : str
        Analysed unless another one is chosen; by default the last hidden layer with weights.
    layers : sequence of str
        All that are offered; by default those with weights, poolings, and blocks that sum branches.
    scaling : Scaling, optional
        What is done to inputs of 0..1 in front of the network; part of its fingerprint.
    architecture : str
        For a safetensors file: the network in `MODELS` whose architecture has these weights.
    trust : bool
        Whether formats that can run code are read.
    explain : str or callable, optional
        Which scores are meant where the network returns more than one row of them per input: see
        `idc_core.explained.explaining`.

    Returns
    -------
    ModelEntry

    Raises
    ------
    ModelError
        If it cannot be read as a network, or nothing says what it takes.
    DataError
        If the data cannot be read.
    """
    entry = read_entry(
        path,
        data=data,
        name=name,
        label=label,
        layer=layer,
        layers=layers,
        scaling=scaling,
        architecture=architecture,
        trust=trust,
        explain=explain,
    )
    if not entry.dataset:
        raise ModelError(
            f"{path} does not say what it takes: name its data with --data (in Python data=...), a data set or a path."
        )
    MODELS[entry.name] = entry
    return entry


def read_entry(
    path: Path | str,
    *,
    data: Path | str = "",
    name: str = "",
    label: str = "",
    layer: str = "",
    layers: Sequence[str] = (),
    scaling: Scaling | None = None,
    architecture: str = "",
    trust: bool = False,
    explain: Explain | None = None,
) -> OwnModel:
    """Return what `open_network` would enter; it may have no data, whose name is then empty."""
    whole = Path(path).expanduser().absolute()
    build = FileBuilder(whole, scaling, architecture, trust)
    name = name or free_name(whole, MODELS, lambda entry: _path_of(cast("ModelEntry", entry)))
    return OwnModel(
        name=name,
        label=label or name,
        help=f"Read from {whole.name}.",
        build=cast("Callable[[], Network]", build),
        layers=tuple(layers),
        dataset=_data(whole, data, architecture),
        default_layer=layer,
        parameters=None,
        recipe=None,
        citation="",
        licence="",
        task=cast("Task", None),
        complete=True,
        edition=next_edition(),
        explain=None if explain is None else checked(explain),
    )


def _data(path: Path, data: Path | str, architecture: str) -> str:
    """Return the name of the data of a network; empty where neither the person nor the file tells."""
    found = format_of(path)
    if architecture:
        data = data or find_entry(architecture).dataset
    if not data:
        return found.data(path) if found.data else ""
    if str(data) in DATASETS:
        return str(data)
    return open_data(data, preparation=found.expects(path) if found.expects else None).name


def _path_of(entry: ModelEntry) -> Path | None:
    """Return the file that an entry was opened from."""
    return getattr(entry.build, "path", None)
