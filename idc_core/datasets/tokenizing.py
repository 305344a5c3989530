"""Texts to token ids by the tokenizer of a Hugging Face folder, through the `tokenizers` library alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from idc_core.errors import DataError, IdcError, needing
from idc_core.guarded import member, read_json, read_text

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_TOKENIZER, SETTINGS, _CONFIG = "tokenizer.json", "tokenizer_config.json", "config.json"
_MOST_WORDS = 2_000_000
"""Entries of a vocabulary; the largest published ones have 262,144."""

_MOST_PATTERN = 2_000
_MOST_WORD = 1_000
_SAID = 60
_WORD_START = "▁"

_Result = TypeVar("_Result")


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
    """Return token ids of texts, with the marks that the tokenizer puts around them, cut and padded at the end.

    Parameters
    ----------
    texts : sequence of str
    folder : Path
        Holds `tokenizer.json`, or `vocab.txt` as of BERT, or `vocab.json` and `merges.txt` as of GPT-2.
    length : int
        Tokens of each text.

    Raises
    ------
    DataError
        If the folder has no tokenizer, or it is damaged, asks for work without end, or fails on a text.
    """
    tokenizer = _open_tokenizer(folder)
    where = f"The tokenizer in {folder}"
    padding = padding_of(folder, tokenizer)
    if padding is None:
        padding = 0
    _explained(where, lambda: tokenizer.enable_truncation(length))
    tokenizer.no_padding()
    ids = np.full((len(texts), length), padding, np.int64)
    # Half characters cannot be taken.
    whole = [text.encode("utf-8", "replace").decode() for text in texts]
    encoded = _explained(where, lambda: tokenizer.encode_batch(whole))
    for row, encoding in zip(ids, encoded, strict=True):
        row[: len(encoding.ids)] = encoding.ids[:length]
    vocabulary = _vocabulary(tokenizer, where)
    if ids.size and ids.max() >= len(vocabulary):
        raise DataError(f"{where} gives the id {ids.max():,}, but its vocabulary ends at {len(vocabulary) - 1:,}.")
    return _Tokens(ids, vocabulary, _special(tokenizer, padding))


def _open_tokenizer(folder: Path) -> Tokenizer:
    """Return the `tokenizers.Tokenizer` of a folder; DataError where there is none, or it is damaged."""
    with needing("huggingface", f"The tokenizer in {folder}"):
        from tokenizers import Tokenizer  # takes a moment

    path = member(folder, _TOKENIZER)
    if path is None:
        return _explained(f"The tokenizer in {folder}", lambda: _of_words(folder))
    where = f"The tokenizer {path}"
    text = read_text(path, where)
    _check(read_json(text.encode(), where, dict[str, object]), where)
    tokenizer = _explained(where, lambda: Tokenizer.from_str(text))
    if getattr(tokenizer.model, "dropout", None):
        tokenizer.model.dropout = None  # the same text gives the same tokens
    return tokenizer


def has_tokenizer(folder: Path) -> bool:
    """Whether there is a tokenizer in a folder."""
    return any(member(folder, name) is not None for name in (_TOKENIZER, "vocab.txt", "vocab.json"))


def padding_of(folder: Path, tokenizer: Tokenizer | None = None) -> int | None:
    """Return the id of padding: the network's own, the tokenizer's, or else the end of the text; None without any."""
    network = _settings(folder, _CONFIG)
    if type(given := network.get("pad_token_id")) is int and given >= 0:
        return given
    if tokenizer is None and has_tokenizer(folder):
        tokenizer = _open_tokenizer(folder)
    if tokenizer is not None:
        settings = _settings(folder, SETTINGS)
        for name in ("pad_token", "eos_token"):
            token = settings.get(name)
            token = token.get("content") if isinstance(token, dict) else token
            if isinstance(token, str) and (number := tokenizer.token_to_id(token)) is not None:
                return int(number)
    end = network.get("eos_token_id")
    return end if type(end) is int and end >= 0 else None


def _settings(folder: Path, name: str) -> dict[str, Any]:
    path = member(folder, name)
    return {} if path is None else read_json(path, str(path), dict[str, object])


def _of_words(folder: Path) -> Tokenizer:
    """Build the tokenizer of a folder that holds its vocabulary alone."""
    from tokenizers import AddedToken, processors
    from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer
    from tokenizers.implementations.byte_level_bpe import ByteLevelBPETokenizer

    settings = _settings(folder, SETTINGS)
    listed, named, merges = (member(folder, name) for name in ("vocab.txt", "vocab.json", "merges.txt"))
    if listed is not None:
        words = read_text(listed, f"The vocabulary {listed}").split("\n")
        longest = max(map(len, words))
        if longest > _MOST_WORD:
            raise DataError(f"The vocabulary {listed} has a word of {longest:,} characters; at most {_MOST_WORD:,}.")
        vocabulary = {word.rstrip("\r"): number for number, word in enumerate(words) if word}
        return BertWordPieceTokenizer(
            vocabulary,
            lowercase=settings.get("do_lower_case", True) is not False,
            strip_accents=settings.get("strip_accents"),
            handle_chinese_chars=settings.get("tokenize_chinese_chars", True) is not False,
        )._tokenizer
    if named is None or merges is None:
        raise DataError(
            f"{folder} has no {_TOKENIZER}. From Python, save it with "
            "AutoTokenizer.from_pretrained(folder).save_pretrained(folder)."
        )
    numbers = read_json(named, f"The vocabulary {named}", dict[str, int])
    lines = read_text(merges, f"The merges {merges}").splitlines()
    pairs = [(first, second) for first, _, second in (line.partition(" ") for line in lines) if second]
    pairs = [pair for pair in pairs if pair[0] != "#version:"]
    tokenizer = ByteLevelBPETokenizer(numbers, pairs, add_prefix_space=settings.get("add_prefix_space") is True)
    if "<s>" in numbers and "</s>" in numbers:  # RoBERTa's
        end, begin = ("</s>", numbers["</s>"]), ("<s>", numbers["<s>"])
        tokenizer._tokenizer.post_processor = processors.RobertaProcessing(end, begin, True, False)
    tokenizer._tokenizer.add_special_tokens(
        [
            AddedToken(token, special=True)
            for token in ("<s>", "</s>", "<pad>", "<unk>", "<|endoftext|>")
            if token in numbers
        ]
    )
    return tokenizer._tokenizer


def _check(content: dict[str, object], where: str) -> None:
    """Refuse what would keep the machine busy without end, or take memory without end."""
    for place in _places(content):
        pattern = place.get("Regex")
        if isinstance(pattern, str):
            _check_pattern(pattern, where)
        for name in ("id", "max_input_chars_per_word", "max_length"):
            if type(number := place.get(name)) is int and number > _MOST_WORDS:
                raise DataError(f"{where} says {name} {number:,}; expected at most {_MOST_WORDS:,}.")


def _places(content: object) -> Iterator[dict[str, object]]:
    """Yield all objects of a JSON document, but not those of its vocabulary."""
    left = [content]
    while left:
        here = left.pop()
        if isinstance(here, dict):
            yield here
            left.extend(value for name, value in here.items() if name not in ("vocab", "merges"))
        elif isinstance(here, list):
            left.extend(here)


def _check_pattern(pattern: str, where: str) -> None:
    """Refuse a pattern that repeats what repeats itself: looking for it may take longer than anybody waits."""
    if len(pattern) > _MOST_PATTERN:
        raise DataError(f"{where} has a pattern of {len(pattern):,} characters; expected at most {_MOST_PATTERN:,}.")
    plain = re.sub(r"\\.", "x", pattern)
    plain = re.sub(r"\[[^\]]*\]", "x", plain)
    repeated: list[bool] = [False]
    for place, sign in enumerate(plain):
        if sign == "(":
            repeated.append(False)
        elif sign == ")" and len(repeated) > 1:
            inner = repeated.pop()
            again = re.match(r"\)(?:[*+]|\{\d*,?(?:\d{2,})?\})", plain[place:]) is not None
            if inner and again:
                raise DataError(
                    f"{where} has the pattern {pattern[:_SAID]!r}, which repeats what repeats itself: looking for it "
                    "may never end. Give another tokenizer."
                )
            repeated[-1] = repeated[-1] or inner or again
        elif sign in "*+" or re.match(r"\{\d*,(?:\d{2,})?\}", plain[place:]):
            repeated[-1] = True


def _vocabulary(tokenizer: Tokenizer, where: str) -> tuple[str, ...]:
    """Return readable words by token id; each is there once."""
    words = _explained(where, lambda: tokenizer.get_vocab(with_added_tokens=True))
    highest = max(words.values(), default=-1)
    if highest >= _MOST_WORDS:
        raise DataError(f"{where} has ids up to {highest:,}; expected at most {_MOST_WORDS:,}.")
    content = tokenizer.get_added_tokens_decoder()
    plain = _of_bytes if any(word.startswith("Ġ") for word in words) else _of_pieces
    vocabulary = [f"#{number}" for number in range(highest + 1)]
    taken = set()
    for word, number in sorted(words.items(), key=lambda item: item[1]):
        shown = word if number in content else plain(word)
        vocabulary[number] = shown if shown and shown not in taken else word
        taken.add(vocabulary[number])
    return tuple(vocabulary)


def _special(tokenizer: Tokenizer, padding: int) -> tuple[int, ...]:
    """Return the ids that stand for no word: padding, the unknown word, then all other marks."""
    marks = {number: token.content for number, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    unknown = getattr(tokenizer.model, "unk_token", None)
    number = None if unknown is None else tokenizer.token_to_id(unknown)
    if number is None:
        number = next((place for place, mark in marks.items() if mark in ("[UNK]", "<unk>", "[MASK]", "<mask>")), None)
    first = padding if number is None else int(number)
    return (padding, first, *(place for place in sorted(marks) if place not in (padding, first)))


def _of_pieces(word: str) -> str:
    """Return a piece of SentencePiece with its space; pieces of words as of BERT stay as they are."""
    return word.replace(_WORD_START, " ") if word.startswith(_WORD_START) else word


def _of_bytes(word: str) -> str:
    """Return a piece of bytes, which byte-level tokenizers write as letters, as the text it stands for."""
    content = bytes(_BYTES[sign] for sign in word if sign in _BYTES)
    if len(content) < len(word):
        return word
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return word  # a part of a character
    return text if text.strip().isprintable() else word


def _byte_letters() -> dict[str, int]:
    """Return the letters that GPT-2's tokenizer writes bytes as: its own sign, or one from 256 on."""
    own = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [number for number in range(256) if number not in own]
    return {chr(number): number for number in own} | {chr(256 + place): number for place, number in enumerate(others)}


_BYTES = _byte_letters()


def _explained(where: str, work: Callable[[], _Result]) -> _Result:
    """Call the library; whatever it makes of a damaged tokenizer, panics too, is a DataError."""
    try:
        return work()
    except IdcError:
        raise
    except BaseException as error:  # a panic of Rust is no Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        text = str(error).strip().splitlines() or [type(error).__name__]
        raise DataError(f"{where} cannot be used ({text[0][:300]}). Save it again, or give another one.") from error
