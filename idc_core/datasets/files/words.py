"""Texts of files, made token ids: by words, or by a tokenizer that was given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from idc_core.datasets.dataset import Items
from idc_core.datasets.newsgroups import LENGTH, build_vocabulary, encode_texts, words_of
from idc_core.datasets.preparation import Preparation

_TOKENS = 128
"""Tokens per text where a tokenizer makes them and no length is given."""


def as_tokens(training: Sequence[str], wanted: Sequence[str], preparation: Preparation, where: str) -> Items:
    """Return token ids of texts, without targets.

    Parameters
    ----------
    training, wanted : sequence of str
        Texts of the training split, which alone tell vocabulary and length, and those to be returned.
    preparation : Preparation
    where : str
        What is read, for messages: the beginning of a sentence.

    Returns
    -------
    Items
        Inputs int64 (n, length) with vocabulary, texts and notes.

    Raises
    ------
    DataError
        If the tokenizer cannot be read.
    """
    if preparation.tokenizer is not None:
        return _by_tokenizer(wanted, preparation.tokenizer, preparation.length or _TOKENS)
    longest = max((len(words_of(text)) for text in training), default=0)
    length = preparation.length or max(1, min(LENGTH, longest))
    vocabulary = build_vocabulary(training)
    note = f"texts as words, {len(vocabulary):,} in the vocabulary, {length:,} per text"
    ids = encode_texts(wanted, vocabulary, length)
    return Items(ids, np.zeros(len(ids), np.int64), vocabulary, tuple(wanted), notes=(note,))


def _by_tokenizer(texts: Sequence[str], folder: Path, length: int) -> Items:
    from idc_core.datasets.tokenizing import tokenize  # takes a moment

    ids, vocabulary, *_ = tokenize(texts, folder, length)
    note = f"token ids by the tokenizer {folder.name}, {length:,} per text"
    return Items(ids, np.zeros(len(ids), np.int64), vocabulary, tuple(texts), notes=(note,))
