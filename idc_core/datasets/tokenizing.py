"""Texts to token ids by the tokenizer of a Hugging Face folder: what transformers makes of them, whatever its class."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets.pretrained import CONFIG, MOST_WORDS, TOKENIZER, TOKENIZERS, explained, open_pretrained, quiet
from idc_core.errors import DataError
from idc_core.guarded import member, read_json

_WORD_START = "▁"


class _Tokens(NamedTuple):
    """Texts as token ids.

    Attributes
    ----------
    ids : ndarray, int64 (n, length)
    vocabulary : tuple of str
        Words by token id, readable; what begins a word after a space begins with a space.
    special : tuple of int
        Ids that stand for no word: padding, the unknown word (padding where there is none), then marks.
    """

    ids: NDArray[np.int64]
    vocabulary: tuple[str, ...]
    special: tuple[int, ...]


def tokenize(texts: Sequence[str], folder: Path, length: int) -> _Tokens:
    """Return token ids of texts, with the marks that the tokenizer puts around them, cut and padded at its sides.

    Parameters
    ----------
    texts : sequence of str
    folder : Path
        Whatever `AutoTokenizer` of transformers reads: `tokenizer.json`, or a vocabulary and the name of its class.
    length : int
        Tokens of each text.

    Raises
    ------
    DataError
        If the folder has no tokenizer, or it is damaged, asks for work without end, or fails on a text.
    """
    tokenizer = _open_tokenizer(folder)
    where = f"The tokenizer in {folder}, {type(tokenizer).__name__},"
    said, padding = _said_padding(folder, tokenizer), padding_of(folder, tokenizer) or 0
    ids = np.full((len(texts), length), padding, np.int64)
    begins_padded = tokenizer.padding_side == "left"
    # Half characters cannot be taken.
    whole = [text.encode("utf-8", "replace").decode() for text in texts]
    with quiet():
        made = explained(where, lambda: tokenizer(whole or [""], truncation=True, max_length=length))
    if any(any(kinds) for kinds in made.get("token_type_ids", ())):
        raise DataError(f"{where} gives each token a type (token_type_ids), which is not followed. Give another one.")
    for row, found in zip(ids, made["input_ids"], strict=bool(whole)):
        if len(found) > length or None in found:
            raise DataError(f"{where} has no unknown word, or makes more tokens than the length {length:,}.")
        if said is None and padding in found:
            raise DataError(f"{where} has no padding for shorter texts: write a pad_token_id into {folder / CONFIG}.")
        row[length - len(found) if begins_padded else 0 :][: len(found)] = found
    vocabulary = _vocabulary(tokenizer, where)
    if ids.size and ids.max() >= len(vocabulary):
        raise DataError(f"{where} gives the id {ids.max():,}, but its vocabulary ends at {len(vocabulary) - 1:,}.")
    return _Tokens(ids, vocabulary, _special(tokenizer, padding))


def _open_tokenizer(folder: Path) -> Any:
    """Return the tokenizer of a folder; DataError where there is none, or it is damaged."""
    if not has_tokenizer(folder):
        raise DataError(
            f"{folder} has no {TOKENIZER}. From Python, save it with "
            "AutoTokenizer.from_pretrained(folder).save_pretrained(folder)."
        )
    tokenizer = open_pretrained(folder, "AutoTokenizer")
    needed = {name for kind, name in tokenizer.vocab_files_names.items() if kind in ("vocab_file", "merges_file")}
    absent = sorted(name for name in needed if member(folder, name) is None)
    if absent and member(folder, TOKENIZER) is None:
        raise DataError(f"{folder} has neither {TOKENIZER} nor the {', '.join(absent)} of {type(tokenizer).__name__}.")
    model: Any = getattr(getattr(tokenizer, "_tokenizer", None), "model", None)
    if getattr(model, "dropout", None):
        model.dropout = None  # the same text gives the same tokens
    return tokenizer


def has_tokenizer(folder: Path) -> bool:
    """Whether there is a tokenizer in a folder."""
    return any(member(folder, name) is not None for name in TOKENIZERS)


def padding_of(folder: Path, tokenizer: Any = None) -> int | None:
    """Return the id of padding: what the folder says, 0 where its tokenizer has none, None without a tokenizer."""
    if tokenizer is None and has_tokenizer(folder):
        tokenizer = _open_tokenizer(folder)
    said = _said_padding(folder, tokenizer)
    return 0 if said is None and tokenizer is not None else said


def _said_padding(folder: Path, tokenizer: Any) -> int | None:
    """Return the id of padding: the network's own, the tokenizer's, or else the end of the text; None without any."""
    path = member(folder, CONFIG)
    network: dict[str, Any] = {} if path is None else read_json(path, str(path), dict[str, object])
    own = (getattr(tokenizer, "pad_token_id", None), getattr(tokenizer, "eos_token_id", None))
    given = (network.get("pad_token_id"), *own, network.get("eos_token_id"))
    return next((number for number in given if type(number) is int and number >= 0), None)


def _vocabulary(tokenizer: Any, where: str) -> tuple[str, ...]:
    """Return readable words by token id; each is there once."""
    words: dict[str, int] = explained(where, tokenizer.get_vocab)
    highest = max(words.values(), default=-1)
    if highest >= MOST_WORDS:
        raise DataError(f"{where} has ids up to {highest:,}; expected at most {MOST_WORDS:,}.")
    content = tokenizer.added_tokens_decoder
    plain = _of_bytes if any(word.startswith("Ġ") for word in words) else _of_pieces
    vocabulary = [f"#{number}" for number in range(highest + 1)]
    taken = set()
    for word, number in sorted(words.items(), key=lambda item: item[1]):
        shown = word if number in content else plain(word)
        vocabulary[number] = shown if shown and shown not in taken else word
        taken.add(vocabulary[number])
    return tuple(vocabulary)


def _special(tokenizer: Any, padding: int) -> tuple[int, ...]:
    """Return the ids that stand for no word: padding, the unknown word, then all other marks."""
    marks = {number for number, token in tokenizer.added_tokens_decoder.items() if token.special}
    known = (tokenizer.unk_token_id, tokenizer.mask_token_id, padding)
    first = next(number for number in known if number is not None)
    return (padding, first, *sorted(marks.union(tokenizer.all_special_ids) - {padding, first}))


def _of_pieces(word: str) -> str:
    """Return a piece of SentencePiece with its space; pieces of words as of BERT stay as they are."""
    return word.replace(_WORD_START, " ") if word.startswith(_WORD_START) else word


def _of_bytes(word: str) -> str:
    """Return a piece of bytes, which byte-level tokenizers write as letters, as the text it stands for."""
    from tokenizers.decoders import ByteLevel

    text: str = ByteLevel().decode([word])
    return text if text.strip().isprintable() and "\ufffd" not in text else word  # else a part of a character
