"""What inputs a Hugging Face folder asks for."""

from __future__ import annotations

from pathlib import Path

from idc_core.datasets.picture_processor import PictureProcessor
from idc_core.datasets.preparation import Preparation
from idc_core.datasets.pretrained import PROCESSORS, TOKENIZER_SETTINGS
from idc_core.datasets.tokenizing import has_tokenizer
from idc_core.errors import of_a_network
from idc_core.guarded import member
from idc_core.models.huggingface.configuration import Configuration, read_configuration, read_member

_LONGEST = 512
"""Tokens of a text, where the folder allows more."""

_POSITIONS = ("max_position_embeddings", "n_positions", "n_ctx", "seq_length")
_COUNTED_FROM_PADDING = ("roberta", "camembert", "longformer", "mpnet", "ibert", "data2vec-text", "xmod", "esm")
"""In types of models whose positions begin behind the id of padding."""


@of_a_network()
def expects(path: Path) -> Preparation:
    """Return how pictures or texts must be prepared for the network of a folder.

    Raises
    ------
    ModelError
        If the folder is damaged, or holds no classifier of texts or pictures.
    """
    configuration = read_configuration(path)
    if configuration.kind == "text":
        return Preparation(tokenizer=path if has_tokenizer(path) else None, length=_length(configuration))
    channels, size = _channels_of(configuration), configuration.values.get("image_size")
    if (processor := processor_of(configuration)) is not None:
        return Preparation(size=processor.size, channels=channels, processor=path)
    sides = tuple(size) if isinstance(size, list) else (size, size)
    return Preparation(size=sides if type(size) in (int, list) else None, channels=channels)


def processor_of(configuration: Configuration) -> PictureProcessor | None:
    """Return the image processor of a folder, or None where it has none; DataError where it cannot be followed."""
    folder = configuration.folder
    if configuration.kind != "pictures" or all(member(folder, name) is None for name in PROCESSORS):
        return None
    return PictureProcessor(folder, _channels_of(configuration))


def _channels_of(configuration: Configuration) -> int:
    """Return 1 for a network of grey pictures, else 3."""
    return 1 if configuration.values.get("num_channels") == 1 else 3


def _length(configuration: Configuration) -> int:
    """Return how many tokens a text has at most: what tokenizer and positions allow, and no more than `_LONGEST`."""
    settings = read_member(configuration.folder, TOKENIZER_SETTINGS) or {}
    positions = next((configuration.values[name] for name in _POSITIONS if name in configuration.values), None)
    if type(positions) is int and any(part in configuration.model_type for part in _COUNTED_FROM_PADDING):
        positions -= (1 if configuration.model_type == "mpnet" else configuration.padding or 0) + 1
    limits = settings.get("model_max_length", settings.get("max_len")), positions, _LONGEST
    return min(limit for limit in limits if type(limit) is int and limit > 0)
