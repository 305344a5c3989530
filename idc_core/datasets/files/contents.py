"""What the readers of files share: from all that a file holds to the items of one split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets.dataset import Items
from idc_core.datasets.files.labels import as_targets
from idc_core.datasets.files.numbers import Numbers
from idc_core.datasets.newsgroups import LENGTH, build_vocabulary, encode_texts, words_of
from idc_core.datasets.preparation import Preparation
from idc_core.datasets.splits import chosen_splits, drawn_split, said_draw
from idc_core.errors import DataError
from idc_core.guarded import Budget

# A dozen numbers of 64 bits: targets, their classes, and what the draw needs of each.
_ITEM = 100


@dataclass(frozen=True)
class Part:
    """Inputs and targets of one split as they are in the files; texts are an array of them."""

    inputs: NDArray[np.generic]
    targets: NDArray[np.generic]


@dataclass(frozen=True)
class Content:
    """All that a file, or a folder of them, holds.

    Attributes
    ----------
    parts : dict of str to Part
        By split ("train", "validation", "test"), or one by "" where the files tell none.
    vocabulary, class_names : tuple of str
        Names of features or words by token id, and of classes, where the files have them.
    notes : tuple of str
        What was done so far, in words.
    """

    parts: dict[str, Part]
    budget: Budget
    vocabulary: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())


def items_of(content: Content, preparation: Preparation, split: str, where: str) -> Items:
    """Return the items of one split.

    Raises
    ------
    DataError
        If they are no inputs and targets that the engine takes. `where` is the beginning of a sentence.
    """
    for part in content.parts.values():
        _check_lengths(part, where)
        content.budget.take(_ITEM * len(part.targets), "its targets and the draw of its tests")
    chosen, draw = {"train": "", "test": ""}, said_draw(preparation.test_share, preparation.seed)
    if set(content.parts) != {""}:
        chosen, draw = chosen_splits(content.parts, where)
    used = list(dict.fromkeys(chosen.values()))
    targets, class_names, labelled = as_targets(
        [content.parts[name].targets for name in used], preparation.task, content.class_names, where
    )
    places = drawn_split(targets[0], preparation.test_share, preparation.seed, where) if used == [""] else {}
    raw = [content.parts[name].inputs for name in used]
    number = used.index(chosen[split])
    if raw[0].dtype.kind in "OU":
        training = _taken(raw[0], places.get("train"))
        texts = training if split == "train" else _taken(raw[number], places.get(split))
        made = _as_tokens([str(text) for text in training], [str(text) for text in texts], preparation, where)
    else:
        numbers = Numbers(raw, preparation, where, content.vocabulary)
        size = len(raw[number]) if not places else len(places[split])
        content.budget.take(2 * size * numbers.bytes_each, "its inputs as numbers of 32 bits")
        inputs = numbers.convert(_taken(raw[number], places.get(split)))
        made = Items(inputs, targets[number], content.vocabulary, notes=numbers.notes)
    return Items(
        made.inputs,
        _taken(targets[number], places.get(split)),
        made.vocabulary,
        made.texts,
        class_names,
        (*content.notes, *made.notes, *labelled, draw),
        whole=True,
        special=made.special,
    )


def _taken(values: NDArray[np.generic], places: NDArray[np.int64] | None) -> NDArray[np.generic]:
    return values if places is None else values[places]


def _check_lengths(part: Part, where: str) -> None:
    if not part.inputs.ndim or not part.targets.ndim:
        raise DataError(f"{where} has a single number where inputs or targets should be; expected one row per item.")
    count, labels = len(part.inputs), len(part.targets)
    if count != labels:
        raise DataError(f"{where} has {count:,} inputs and {labels:,} targets; expected as many.")
    if not count:
        raise DataError(f"{where} has no items; expected at least one for training and one for testing.")


def listed(names: Sequence[str], most: int = 30) -> str:
    """Write names for a message, each quoted so that no character of it is taken for the message's own."""
    text = ", ".join(ascii(name[:60]) for name in names[:most])
    return f"{text}, and {len(names) - most:,} more" if len(names) > most else text or "nothing"


_TOKENS = 128
"""Tokens per text where a tokenizer makes them and no length is given."""


def _as_tokens(training: Sequence[str], wanted: Sequence[str], preparation: Preparation, where: str) -> Items:
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
