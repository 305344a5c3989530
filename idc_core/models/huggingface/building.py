"""From a checked configuration and weights to a network of transformers, offline and without a word from it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from idc_core.datasets.pretrained import explained, quiet
from idc_core.errors import ModelError
from idc_core.models.huggingface.configuration import MOST_LABELS, MOST_SAID, Configuration, one_line

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

_MOST_NAMED = 6
_TASKS = {
    "text": ("SEQUENCE_CLASSIFICATION",),
    "pictures": ("IMAGE_CLASSIFICATION", "OBJECT_DETECTION", "SEMANTIC_SEGMENTATION"),
}
"""In names of transformers' tables of classes."""


def build(configuration: Configuration, held: int) -> tuple[object, type[nn.Module]]:
    """Return the configuration and the class of transformers for a folder.

    Parameters
    ----------
    configuration : Configuration
    held : int
        Numbers that the folder's weights hold: a network of many more is refused before it takes memory.

    Raises
    ------
    ModelError
        If transformers knows no such network, cannot build it, or it does not go with the weights.
    """
    with quiet():
        config, architecture = explained(_said(configuration), lambda: _known(configuration))
        with torch.device("meta"):
            empty: nn.Module = explained(
                _said(configuration), lambda: architecture._from_config(config, attn_implementation="eager")
            )
    needed = sum(value.numel() for value in empty.parameters())
    head = MOST_LABELS * 1024
    names = len(configuration.class_names)
    if config.num_labels != names:
        raise ModelError(
            f"{configuration.where} names {names:,} classes, but describes a network with {config.num_labels:,} "
            "outputs. Let id2label name every output, and leave num_labels out."
        )
    if needed > 2 * held + head:
        raise ModelError(
            f"{configuration.where} describes a network of {needed:,} numbers, but the weights hold {held:,}: config "
            "and weights are of different networks."
        )
    return config, architecture


def fill(
    configuration: Configuration,
    config: PreTrainedConfig,
    architecture: type[PreTrainedModel],
    state: dict[str, Tensor],
    dtype: torch.dtype,
) -> nn.Module:
    """Return the network with its weights; ModelError where some are missing, left over or of another shape."""
    with quiet():
        network, loaded = explained(
            _said(configuration),
            lambda: architecture.from_pretrained(
                None,
                config=config,
                state_dict=state,
                dtype=dtype,
                attn_implementation="eager",
                local_files_only=True,
                use_safetensors=True,
                ignore_mismatched_sizes=True,
                output_loading_info=True,
            ),
        )
    where = f"{configuration.folder}: the weights do not fit {configuration.architecture}"
    if loaded["missing_keys"]:
        raise ModelError(
            f"{where}: {_listed(loaded['missing_keys'])} missing, which would be random numbers. Give the folder of a "
            "network that was trained as a classifier."
        )
    if loaded["mismatched_keys"]:
        raise ModelError(f"{where}: {_listed(mismatch[0] for mismatch in loaded['mismatched_keys'])} of another shape.")
    if loaded["unexpected_keys"]:
        raise ModelError(f"{where}: {_listed(loaded['unexpected_keys'])} left over.")
    built: nn.Module = network
    return built


def _known(configuration: Configuration) -> tuple[PreTrainedConfig, type[PreTrainedModel]]:
    """Return transformers' configuration and class of a network; nothing but its own classes is ever looked up."""
    from transformers import CONFIG_MAPPING
    from transformers.models.auto import modeling_auto

    if configuration.model_type not in CONFIG_MAPPING:
        raise ModelError(
            f"{configuration.where} says the model_type {configuration.model_type!r}, which the installed transformers "
            "does not know. Install a newer one, or build the network in a setup file."
        )
    config = CONFIG_MAPPING[configuration.model_type].from_dict(dict(configuration.values))
    config.use_cache, config.return_dict = False, True
    offered: dict[str, type[PreTrainedModel]] = {}
    for task in _TASKS[configuration.kind]:
        known = getattr(modeling_auto, f"MODEL_FOR_{task}_MAPPING").get(type(config), ())
        offered |= {offer.__name__: offer for offer in (known if isinstance(known, tuple | list) else (known,))}
    if configuration.architecture not in offered:
        raise ModelError(
            f"{configuration.where} names the architecture {configuration.architecture!r:.80}; expected "
            f"{' or '.join(offered) or 'another model_type'} of the model_type {configuration.model_type!r}."
        )
    return config, offered[configuration.architecture]


def _said(configuration: Configuration) -> str:
    return f"{configuration.where}: {configuration.architecture}"


def _listed(names: Iterable[object]) -> str:
    """Return names in a sentence, the first of many."""
    lines = sorted(one_line(str(name), MOST_SAID) for name in names)
    more = f" and {len(lines) - _MOST_NAMED:,} more" if len(lines) > _MOST_NAMED else ""
    return ", ".join(lines[:_MOST_NAMED]) + more + (" are" if len(lines) > 1 else " is")
