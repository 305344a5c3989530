"""Texts as token ids: by the words of the training texts, or by a tokenizer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets.dataset import Items
from idc_core.datasets.preparation import Preparation

LENGTH = 200
_VOCABULARY_WORDS = 10_000
_PADDING, _UNKNOWN = 0, 1
_SPECIAL = ("<padding>", "<unknown>")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")  # letters and digits, with apostrophes inside: don't
_TOKENS = 128
"""Tokens per text where a tokenizer makes them and no length is given."""


def build_vocabulary(texts: Sequence[str]) -> tuple[str, ...]:
    """Return words by token id: two marks for padding and unknown words, then the 10,000 commonest.

    Equal counts come in alphabetical order.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(_words_of(text))
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return _SPECIAL + tuple(word for word, _ in ranked[:_VOCABULARY_WORDS])


def encode_texts(texts: Sequence[str], vocabulary: Sequence[str], length: int = LENGTH) -> NDArray[np.int64]:
    """Return ids int64 (n, length) of the first words of each text; 1 outside the vocabulary, 0 after the end."""
    ids = {word: index for index, word in enumerate(vocabulary)}
    tokens = np.full((len(texts), length), _PADDING, np.int64)
    for row, text in zip(tokens, texts, strict=True):
        numbers = [ids.get(word, _UNKNOWN) for word in _words_of(text)[:length]]
        row[: len(numbers)] = numbers
    return tokens


def _words_of(text: str) -> list[str]:
    """Return the words of a text, in small letters."""
    return _WORD.findall(text.lower())


def as_tokens(training: Sequence[str], wanted: Sequence[str], preparation: Preparation) -> Items:
    """Return token ids of texts, without targets.

    Parameters
    ----------
    training, wanted : sequence of str
        Texts of the training split, which alone tell vocabulary and length, and those to be returned.
    preparation : Preparation

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
        from idc_core.datasets.tokenizing import tokenize  # takes a moment

        length = preparation.length or _TOKENS
        ids, vocabulary, special = tokenize(wanted, preparation.tokenizer, length)
        note = f"token ids by the tokenizer {preparation.tokenizer.name}, {length:,} per text"
        return Items(ids, np.zeros(len(ids), np.int64), vocabulary, tuple(wanted), notes=(note,), special=special)
    longest = max((len(_words_of(text)) for text in training), default=0)
    length = preparation.length or max(1, min(LENGTH, longest))
    vocabulary = build_vocabulary(training)
    note = f"texts as words, {len(vocabulary):,} in the vocabulary, {length:,} per text"
    ids = encode_texts(wanted, vocabulary, length)
    return Items(ids, np.zeros(len(ids), np.int64), vocabulary, tuple(wanted), notes=(note,))
