"""What inputs a Hugging Face folder asks for. Needs no torch."""

from __future__ import annotations

from pathlib import Path

from idc_core.datasets.preparation import Preparation
from idc_core.datasets.pretrained import TOKENIZER_SETTINGS
from idc_core.datasets.tokenizing import has_tokenizer
from idc_core.models.huggingface.configuration import Configuration, read_configuration
from idc_core.models.huggingface.members import read_member
from idc_core.models.huggingface.processing import read_processing

_LONGEST = 512
"""Tokens of a text, where the folder allows more."""

_POSITIONS = ("max_position_embeddings", "n_positions", "n_ctx", "seq_length")
_COUNTED_FROM_PADDING = ("roberta", "camembert", "longformer", "mpnet", "ibert", "data2vec-text", "xmod", "esm")
"""In types of models whose positions begin behind the id of padding."""


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
    processing = read_processing(configuration)
    return Preparation(
        size=processing.size,
        fit=processing.fit,
        channels=processing.channels,
        resample=processing.resample,
        margin=processing.margin,
    )


def _length(configuration: Configuration) -> int:
    """Return how many tokens a text has at most: what tokenizer and positions allow, and no more than `_LONGEST`."""
    settings = read_member(configuration.folder, TOKENIZER_SETTINGS) or {}
    positions = next((configuration.values[name] for name in _POSITIONS if name in configuration.values), None)
    if type(positions) is int and any(part in configuration.model_type for part in _COUNTED_FROM_PADDING):
        positions -= (configuration.padding or 0) + 1
    allowed = [limit for limit in (settings.get("model_max_length"), positions) if type(limit) is int and limit > 0]
    return min(*allowed, _LONGEST, _LONGEST)
