"""The way in: from the path of a Hugging Face folder to a network that takes pictures or token ids."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from idc_core.datasets.naming import Naming, Other
from idc_core.datasets.picture_processor import PictureProcessor
from idc_core.datasets.pretrained import PROCESSORS
from idc_core.datasets.tokenizing import padding_of
from idc_core.errors import ModelError, of_a_network
from idc_core.guarded import Budget, member
from idc_core.models.huggingface.building import build, fill
from idc_core.models.huggingface.configuration import (
    ADAPTERS,
    MOST_SAID,
    Configuration,
    one_line,
    read_configuration,
    weight_files,
)
from idc_core.models.huggingface.expecting import processor_of
from idc_core.models.huggingface.layers import offered_layers
from idc_core.models.named_inputs import put_naming
from idc_core.models.scaling import Scaling
from idc_core.models.weights import read_headers, read_tensors
from idc_core.models.wrapping import put_before

if TYPE_CHECKING:
    from transformers import PreTrainedConfig


@of_a_network()
def load_folder(path: Path, dtype: torch.dtype | None = None) -> nn.Module:
    """Read the network of a Hugging Face folder.

    Parameters
    ----------
    path : Path
        Folder with `config.json` and `model.safetensors`, or its index and parts.
    dtype : torch.dtype, optional
        Of the weights; by default as they are stored, at least float32.

    Returns
    -------
    Module
        A network of transformers in eval mode. It takes pictures of 0..1, scaled inside as the folder's processor
        does, or token ids int64 (n, length) alone, whose mask follows from the id of padding. `class_names` are the
        folder's; `offered_layers` the layers worth a look.

    Raises
    ------
    ModelError
        If the folder is damaged, would run code, or holds no classifier of texts or pictures with all its weights.
    """
    configuration = read_configuration(path)
    files = weight_files(path)
    processor = processor_of(configuration)
    config, architecture = build(configuration, _count_values(files))
    state = _read_state(files)
    network = fill(configuration, config, architecture, state, dtype or _widest(state)).eval()
    if configuration.kind == "text":
        _put_mask_before(network, configuration)
    elif processor is not None and (scaling := _scaling(processor)).said:
        put_before(network, scaling)
    network.class_names = configuration.class_names  # type: ignore[assignment]
    network.remarks = tuple(_remarks(configuration, processor))  # type: ignore[assignment]
    network.offered_layers = offered_layers(network)  # type: ignore[assignment]
    return network


def _scaling(processor: PictureProcessor) -> Scaling:
    """Return what a processor does to pixels of 0..1; what a fit has found is the number of its settings that is so."""
    for factor in (255.0, 1.0):
        mean, deviation = (
            tuple(_named(value, processor.numbers) for value in values)
            for values in (-factor * processor.offset / processor.slope, factor / processor.slope)
        )
        if processor.numbers.issuperset(deviation):
            break
    return Scaling(mean, deviation, factor, "BGR" if processor.is_reversed else "RGB")


def _named(value: float, numbers: Iterable[float]) -> float:
    """Return the number of some, or of four digits, that is equal within the precision of the fit; else itself."""
    near = min((0.0, float(f"{value:.4g}"), *numbers), key=lambda number: abs(number - value))
    return near if abs(near - value) <= _SLACK * max(1, abs(value)) else float(value)


def _remarks(configuration: Configuration, processor: PictureProcessor | None) -> Iterator[str]:
    """Say what the folder holds that is not applied, and what it does not hold."""
    if any(member(configuration.folder, name) is not None for name in ADAPTERS):
        yield (
            f"The adapter beside the weights ({ADAPTERS[0]}) is not applied: merge it in Python with "
            "merge_and_unload() and save the network again."
        )
    if configuration.kind == "pictures" and processor is None:
        yield f"The folder has no image processor ({PROCESSORS[0]}): pictures are taken as 0 to 1, without a mean."


_SLACK = 2e-7

_NO_PADDING = -1
"""Stands for no token: all are read."""


def _put_mask_before(network: nn.Module, configuration: Configuration) -> None:
    """Let a network of texts take token ids alone: it gets the mask of what is no padding as a second input.

    A decoder reads its answer at the last token that is no padding; without a padding id of its own it takes the
    tokenizer's, which is the end of the text where there is none.
    """
    padding = configuration.padding
    if padding is None:
        padding = padding_of(configuration.folder)
        own: PreTrainedConfig = network.config
        own.get_text_config().pad_token_id = own.pad_token_id = _NO_PADDING if padding is None else padding
    padding = _NO_PADDING if padding is None else padding
    put_naming(network, Naming("input_ids", (Other("attention_mask", "mask", "int64", padding),)))


_KINDS = ("F16", "BF16", "F32", "F64", "I64", "I32", "I16", "I8", "U8", "BOOL")


def _count_values(paths: Sequence[Path]) -> int:
    """Return how many numbers some safetensors files hold, as their headers say; nothing else of them is read.

    Raises
    ------
    ModelError
        If a header is damaged, or a tensor is of a type that no network here has (quantised weights).
    """
    total = 0
    for path in paths:
        for name, header in read_headers(path).items():
            if header.dtype not in _KINDS:
                raise ModelError(
                    f"The weights file {path}: the tensor {one_line(name, MOST_SAID)!r} is of the type "
                    f"{header.dtype[:MOST_SAID]}; expected {', '.join(_KINDS)}. Save the network with float weights."
                )
            total += math.prod(header.shape)
    return total


def _read_state(paths: Sequence[Path]) -> dict[str, Tensor]:
    """Return the tensors of some safetensors files by name.

    Raises
    ------
    ModelError
        If a file is damaged or larger than is allowed, two hold the same tensor, or a value is not finite.
    """
    state: dict[str, Tensor] = {}
    budget = Budget(str(paths[0]))
    for path in paths:
        for name, value in read_tensors(path, budget).items():
            said = f"The weights file {path}: the tensor {one_line(name, MOST_SAID)!r}"
            if name in state:
                raise ModelError(f"{said} is in another file, too.")
            if value.is_floating_point() and not bool(torch.isfinite(value).all()):
                raise ModelError(f"{said} holds values that are not finite.")
            state[name] = value
    return state


def _widest(state: dict[str, Tensor]) -> torch.dtype:
    """Return the widest type of floating-point numbers among some tensors, at least float32."""
    return max(
        (value.dtype for value in state.values() if value.is_floating_point()),
        key=lambda kind: torch.finfo(kind).bits,
        default=torch.float32,
    )
