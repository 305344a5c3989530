"""What the readers of files share: from all that a file holds to the items of one split."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets.dataset import Items
from idc_core.datasets.files.gaps import without_gaps
from idc_core.datasets.files.labels import as_targets
from idc_core.datasets.files.numbers import Numbers
from idc_core.datasets.preparation import Preparation
from idc_core.datasets.splits import chosen_splits, drawn_split, said_draw
from idc_core.datasets.words import as_tokens
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
    held, notes = {}, list(content.notes)
    for name, part in content.parts.items():
        _check_lengths(part, where)
        *arrays, note = without_gaps(part.inputs, part.targets, preparation.empty, where)
        held[name] = whole = Part(*arrays)
        content.budget.take(whole.inputs.nbytes * bool(note), "its inputs without what is not finite")
        notes += [note] * (bool(note) and note not in notes)
        content.budget.take(_ITEM * len(whole.targets), "its targets and the draw of its tests")
    chosen, draw = {"train": "", "test": ""}, said_draw(preparation.test_share, preparation.seed)
    if set(held) != {""}:
        chosen, draw = chosen_splits(held, where)
    used = list(dict.fromkeys(chosen.values()))
    targets, class_names, labelled = as_targets(
        [held[name].targets for name in used], preparation.task, content.class_names, where
    )
    places = drawn_split(targets[0], preparation.test_share, preparation.seed, where) if used == [""] else {}
    raw = [held[name].inputs for name in used]
    number = used.index(chosen[split])
    if raw[0].dtype.kind in "OU":
        training = _taken(raw[0], places.get("train"))
        texts = training if split == "train" else _taken(raw[number], places.get(split))
        made = as_tokens([str(text) for text in training], [str(text) for text in texts], preparation)
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
        (*notes, *made.notes, *labelled, draw),
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
        last = part.inputs.ndim > 1 and part.inputs.shape[-1] == labels
        line = ": where the last axis counts the items, save numpy.moveaxis(inputs, -1, 0)" if last else ""
        line = ": where targets are a row, save targets.ravel()" if part.targets.shape[1:] == (count,) else line
        raise DataError(f"{where} has {count:,} inputs and {labels:,} targets; expected as many{line}.")
    if not count:
        raise DataError(f"{where} has no items; expected at least one for training and one for testing.")
