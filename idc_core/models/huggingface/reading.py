"""The way in: from the path of a Hugging Face folder to a network that takes pictures or token ids."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from idc_core.models.huggingface.building import build, fill
from idc_core.models.huggingface.configuration import read_configuration, weight_files
from idc_core.models.huggingface.layers import offered_layers
from idc_core.models.huggingface.padding import put_mask_before
from idc_core.models.huggingface.processing import read_processing
from idc_core.models.huggingface.weights import count_values, read_state, widest
from idc_core.models.wrapping import put_before


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
    processing = read_processing(configuration)
    config, architecture = build(configuration, count_values(files))
    state = read_state(files)
    network = fill(configuration, config, architecture, state, dtype or widest(state)).eval()
    if configuration.kind == "text":
        put_mask_before(network, configuration)
    elif processing.scaling.said:
        put_before(network, processing.scaling)
    network.class_names = configuration.class_names  # type: ignore[assignment]
    network.offered_layers = offered_layers(network)  # type: ignore[assignment]
    return network
