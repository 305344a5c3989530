"""From a path to a network of the registry. Needs no torch before the network is built."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from idc_core.base.own_code import free_name
from idc_core.errors import ModelError, of_a_network
from idc_core.lrp.explained import LAYOUTS, Explain, checked
from idc_core.models.entry import Found
from idc_core.models.formats import NetworkFormat, check_content, format_of
from idc_core.models.own import OwnModel
from idc_core.models.registry import MODELS, find_entry
from idc_core.models.scaling import Scaling

if TYPE_CHECKING:
    from idc_core.datasets.preparation import Preparation
    from idc_core.models.network import Network

_SMALL = 1 << 20
_PART = 1 << 20


@dataclass(frozen=True, eq=False)
class NetworkFile:
    """The network of one file or folder, and what it is opened with; called, it reads the network, weights included.

    Attributes
    ----------
    path : Path
        A file whose ending is in `NETWORK_FORMATS`, or a folder; says where what is wrong lies.
    scaling : Scaling, optional
        What is done to inputs of 0..1 in front of the network; part of its fingerprint.
    architecture : str
        For a safetensors file: the network in `MODELS` whose architecture has these weights.
    trust : bool
        Whether formats that can run code are read.
    explain : str or callable, optional
        Which scores are meant where the network returns more than one row of them per input: see
        `idc_core.lrp.explained.explaining`.
    output : str
        Name or number of the output that scores are read from, of a network with several; "": the likeliest one.
    output_names : tuple of str
        What its outputs are called, in their order; empty: as the file says.
    dataset : str
        Name of its data, where it is known: the width of scores is that of their classes.
    held : mapping of str to float
        Inputs of an ONNX file that are held at a number, by name.
    output_layout : str
        "time-first" where scores are (time, n, classes), "batch-first" where not; "": told by a batch of two.

    Raises
    ------
    ModelError
        If there is no reader for it, its content is of another kind, or it can run code and is not trusted.
    """

    path: Path
    scaling: Scaling | None = None
    architecture: str = ""
    trust: bool = False
    explain: Explain | None = None
    output: str = ""
    output_names: tuple[str, ...] = ()
    dataset: str = ""
    held: Mapping[str, float] = field(default_factory=dict)
    output_layout: str = ""

    def __post_init__(self) -> None:
        """Make the path whole, and refuse what cannot be read."""
        object.__setattr__(self, "path", Path(self.path).expanduser().absolute())
        if self.format.trusted and not self.trust:
            raise ModelError(
                f"{self.path} can run code when it is read; give --trust if you made it, or trust who did."
            )
        if self.architecture and self.format.ending != ".safetensors":
            raise ModelError(
                f"{self.path} brings its own architecture; {self.architecture!r:.100} is for a .safetensors file."
            )
        if self.output_layout not in ("", *LAYOUTS):
            raise ModelError(f"output_layout must be {' or '.join(LAYOUTS)}, not {self.output_layout!r:.60}.")
        if self.held and not self.format.read_output:
            raise ModelError(f"{self.path} has no inputs that can be held at a number by name; leave out --hold.")
        check_content(self.path)
        if self.explain is not None:
            checked(self.explain)

    @cached_property
    def format(self) -> NetworkFormat:
        """What reads it."""
        return format_of(self.path)

    @property
    def expects(self) -> Preparation | None:
        """How its data must be prepared, as far as the files tell."""
        return self.format.expects(self.path) if self.format.expects else None

    def __call__(self) -> Network:
        """Read the network, weights included."""
        from idc_core.models.wrapping import check_finite, put_before

        if self.architecture:
            from idc_core.models.architectures import read_architecture

            network = cast("Network", read_architecture(self.path, self.architecture))
        else:
            chooses = self.format.read_output
            read = (
                partial(chooses, output=self.output, classes=self._classes, held=self.held)
                if chooses
                else self.format.read
            )
            network = cast("Network", read(self.path))
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
        digest.update(self.output.encode())
        digest.update("".join(f" {name}={value!r}" for name, value in self.held.items()).encode())
        folder = self.path.is_dir()
        for file in sorted(self.path.iterdir()) if folder else [self.path]:
            if folder and not (file.is_file() and file.stat().st_size <= _SMALL):
                continue  # weights are part of every fingerprint anyway
            with of_a_network(), opened(file, f"The file {file}") as stream:
                for part in iter(partial(stream.read, _PART), b""):
                    digest.update(part)
        return digest.hexdigest()[:16]

    def entry(
        self,
        data: Path | str = "",
        *,
        name: str = "",
        label: str = "",
        layer: str = "",
        found: Found | None = None,
        without_data: bool = False,
    ) -> OwnModel:
        """Return what a registry holds of it.

        `data` is what it takes: a name in `DATASETS`, or a path or URL, which `open_data` enters, prepared as the
        network's files ask. It may be left out where the file tells, or `without_data`; its name is empty then. `name`
        and `label` are by default after the file. `layer` is analysed unless another one is chosen, by default the last
        hidden layer with weights. `found` is what is known of it already, so that it is not read for that.

        Raises
        ------
        ModelError, DataError
            If nothing says what it takes, or the data cannot be read.
        """
        name = name or free_name(self.path, MODELS)
        dataset = self._data(data)
        if not (dataset or without_data):
            raise ModelError(
                f"{self.path} does not say what it takes: name its data with --data (in Python data=...), a data set "
                "or a path."
            )
        return OwnModel(
            name=name,
            label=label or name,
            help=f"Read from {self.path.name}.",
            build=replace(self, dataset=dataset),
            dataset=dataset,
            default_layer=layer,
            explain=self.explain,
            output="" if self.format.read_output else self.output,
            output_names=self.output_names,
            output_layout=self.output_layout,
            found=cast("Found", found),
        )

    @property
    def _classes(self) -> int:
        """How many classes its data have; 1 of a regression, 0 where that is not known."""
        from idc_core.datasets.registry import DATASETS

        if self.dataset not in DATASETS:
            return 0
        return len(DATASETS[self.dataset].class_names) or 1

    def _data(self, data: Path | str) -> str:
        """Return the name of its data; empty where neither the person nor the file tells."""
        if self.architecture:
            data = data or find_entry(self.architecture).dataset
        if not data:
            return self.format.data(self.path) if self.format.data else ""
        from idc_core.datasets.registry import DATASETS, open_data  # many need no data to load a network

        return str(data) if str(data) in DATASETS else open_data(data, preparation=self.expects).name


def open_network(file: NetworkFile, data: Path | str = "", **known: Any) -> OwnModel:
    """Enter a network into `MODELS`, in place of what was opened from its file before; see `NetworkFile.entry`."""
    entry = file.entry(data, **known)
    MODELS[entry.name] = entry
    return entry
