"""Kinds of files that networks can come from: one reader an ending. Needs no torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from idc_core.base.foreign import KERAS, LEARN
from idc_core.base.registry import Registry
from idc_core.errors import ModelError, of_a_network

if TYPE_CHECKING:
    from torch.nn import Module

    from idc_core.datasets.preparation import Preparation

_Read = Callable[[Path], "Module"]
_ReadOutput = Callable[..., "Module"]
_Expect = Callable[[Path], "Preparation | None"]
_Tell = Callable[[Path], str]


@dataclass(frozen=True)
class Interface:
    """What a file says of a network's inputs and outputs.

    Attributes
    ----------
    inputs : tuple of str
        Names of its inputs.
    output_axes : tuple of int
        How many axes each of its outputs has, the batch among them; 0 where that is not told.
    """

    inputs: tuple[str, ...] = ()
    output_axes: tuple[int, ...] = ()


@dataclass(frozen=True)
class NetworkFormat:
    """One kind of file: its ending, or "/" for a folder; its name for people; its reader; what inputs it asks for.

    `expects` says how data must be prepared, as far as the files tell, and `data` the name of the data set that the
    network takes, or ""; None where they do not. `read_output(path, output=name, classes=count,
    held=numbers)` reads the file with one of its outputs, and inputs held at numbers, where it has a say in that;
    `interface` says which inputs and outputs these are.
    """

    ending: str
    label: str
    read: _Read
    expects: _Expect | None = None
    trusted: bool = False  # it may run code, so that only the owner's command line opens it
    data: _Tell | None = None
    read_output: _ReadOutput | None = None
    interface: Callable[[Path], Interface] | None = None


NETWORK_FORMATS: Registry[NetworkFormat] = Registry("network format")
"""Network formats by the ending of their files."""


def _network_format(
    ending: str,
    *,
    label: str,
    expects: _Expect | None = None,
    trusted: bool = False,
    data: _Tell | None = None,
    read_output: _ReadOutput | None = None,
    interface: Callable[[Path], Interface] | None = None,
) -> Callable[[_Read], _Read]:
    """Enter the decorated reader for an ending."""

    def enter(read: _Read) -> _Read:
        NETWORK_FORMATS.enter(
            ending, NetworkFormat(ending, label, read, expects, trusted, data, read_output, interface)
        )
        return read

    return enter


def _data_of_weights(path: Path) -> str:
    from idc_core.models.architectures import data_of  # needs torch

    return data_of(path)


def _onnx_output(path: Path, output: str = "", classes: int = 0, held: Mapping[str, float] | None = None) -> Module:
    from idc_core.models.onnx import load_onnx  # needs torch

    return load_onnx(path, scores=True, output=output, classes=classes, held=held)


def _onnx_expects(path: Path) -> Preparation | None:
    from idc_core.datasets.preparation import Preparation
    from idc_core.models.onnx.reading import axes_of_input  # needs torch

    read_as = {3: "series", 4: "pictures"}.get(axes_of_input(path), "")
    return Preparation(read_as=read_as) if read_as else None


def _onnx_interface(path: Path) -> Interface:
    from idc_core.models.onnx.reading import interface_of  # needs torch

    return Interface(*interface_of(path))


@_network_format(".onnx", label="ONNX", expects=_onnx_expects, read_output=_onnx_output, interface=_onnx_interface)
def _onnx(path: Path) -> Module:
    return _onnx_output(path)


@_network_format(".safetensors", label="weights (safetensors)", data=_data_of_weights)
def _safetensors(path: Path) -> Module:
    from idc_core.models.architectures import read_architecture  # needs torch

    return read_architecture(path)


@_network_format(".pt2", label="torch.export", trusted=True)
def _exported(path: Path) -> Module:
    from idc_core.models.exported import load_exported  # needs torch

    return load_exported(path)


_TORCH = (
    'torch.onnx.export(net, (inputs,), "net.onnx", dynamo=True, dynamic_shapes=({0: "n"},)), or the weights of an '
    'architecture of the registry by safetensors.torch.save_file(net.state_dict(), "net.safetensors"), or register '
    "the network in a setup file"
)

REFUSED: dict[str, tuple[str, str]] = {
    **dict.fromkeys((".pt", ".pth", ".ckpt", ".bin", ".jit"), ("of PyTorch (pickle or TorchScript)", _TORCH)),
    **dict.fromkeys((".pkl", ".pickle", ".joblib"), ("of pickle", f"{LEARN} (scikit-learn), or {_TORCH}")),
    **dict.fromkeys((".h5", ".hdf5", ".keras"), ("of Keras", KERAS)),
}
"""Endings of files that can run code when they are opened: what they are, and how to save the network instead."""

_STRANGERS = ((b"PK\x03\x04", "a zip archive, as torch.save writes"), (b"\x89HDF", "an HDF5 file, as Keras writes"))
_PICKLES = tuple(bytes((0x80, number)) for number in range(2, 6))


def _folder_expects(path: Path) -> Preparation:
    from idc_core.models.huggingface.expecting import expects

    return expects(path)


@_network_format("/", label="Hugging Face folder", expects=_folder_expects)
def _folder(path: Path) -> Module:
    from idc_core.models.huggingface.reading import load_folder  # needs torch

    return load_folder(path)


def format_of(path: Path) -> NetworkFormat:
    """Return the format of a file or folder; ModelError where there is none for it."""
    ending = "/" if path.is_dir() else path.suffix.lower()
    if ending == ".py":
        raise ModelError(f"{path} is code, which only `idc_core.open_setup` and --setup read; then give a name of it.")
    if ending in REFUSED:
        kind, instead = REFUSED[ending]
        raise ModelError(f"{path} is a file {kind}, which can run code when it is opened; save it by {instead}.")
    if ending not in NETWORK_FORMATS:
        raise ModelError(f"{path} is no network that can be read; expected {', '.join(sorted(NETWORK_FORMATS))}.")
    return NETWORK_FORMATS[ending]


@of_a_network()
def check_content(path: Path) -> None:
    """Refuse a file that is not there, or that holds another format than its name says."""
    from idc_core.guarded import opened  # with NumPy, which a list of formats does not need

    if path.is_dir():
        return
    with opened(path, f"The file {path}") as stream:
        start = stream.read(9)
    content = next((form for magic, form in _STRANGERS if start.startswith(magic)), "")
    # A safetensors file begins with the length of its header, which may have these two bytes.
    if start[:2] in _PICKLES and not (start[2:8] == bytes(6) and start[8:] == b"{"):
        content = "a pickle, as torch.save and joblib write"
    if content and path.suffix.lower() != ".pt2":
        kind = format_of(path).label
        raise ModelError(f"{path} is named as {kind}, but it is {content}; it was not opened. Save it as {kind}.")
