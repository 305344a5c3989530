"""Padding of texts: its token id, and the attention mask that a network gets beside the ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

from idc_core.datasets.naming import Naming, Other
from idc_core.datasets.tokenizing import padding_of
from idc_core.errors import DataError, ModelError
from idc_core.models.huggingface.configuration import Configuration
from idc_core.models.named_inputs import put_naming

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

_NO_PADDING = -1
"""Stands for no token: all are read."""


def put_mask_before(network: nn.Module, configuration: Configuration) -> None:
    """Let a network of texts take token ids alone: it gets the mask of what is no padding as a second input.

    A decoder reads its answer at the last token that is no padding; without a padding id of its own it takes the
    tokenizer's, which is the end of the text where there is none.
    """
    padding = configuration.padding
    if padding is None:
        padding = _of_tokenizer(configuration)
        own: PreTrainedConfig = network.config
        own.get_text_config().pad_token_id = own.pad_token_id = _NO_PADDING if padding is None else padding
    padding = _NO_PADDING if padding is None else padding
    put_naming(network, Naming("input_ids", (Other("attention_mask", "mask", "int64", padding),)))


def _of_tokenizer(configuration: Configuration) -> int | None:
    try:
        return padding_of(configuration.folder)
    except DataError as error:
        raise ModelError(str(error)) from error
