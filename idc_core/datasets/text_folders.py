"""Texts in class folders: pos/1.txt and neg/1.txt, in a folder or a zip file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from idc_core.datasets.class_folders import class_folders
from idc_core.datasets.dataset import Items
from idc_core.datasets.encodings import as_utf_8
from idc_core.datasets.preparation import Preparation
from idc_core.datasets.words import as_tokens
from idc_core.guarded import Budget

ENDING = ".txt"
_TEXT = 200


def texts_among(names: Sequence[str]) -> tuple[str, ...]:
    """Return the texts in folders that lie as deep as most of them; none where they lie in one folder alone."""
    texts = [name for name in names if name.lower().endswith(ENDING) and "/" in name]
    depths = Counter(name.count("/") for name in texts)
    usual = max(depths, key=depths.__getitem__, default=0)
    found = tuple(name for name in texts if name.count("/") == usual)
    return found if len({name.rpartition("/")[0] for name in found}) > 1 else ()


def read_texts(
    names: Sequence[str], read: Callable[[str], bytes], where: str, preparation: Preparation, split: str
) -> Items:
    """Return one split of texts in class folders as token ids.

    Parameters
    ----------
    names : sequence of str
        What `texts_among` returned.
    read : callable
        From a name to the content of its file.
    where : str
        What they lie in, for messages.
    preparation : Preparation
    split : {"train", "test"}

    Raises
    ------
    DataError
        If there are no two class folders, or a file is no text.
    """
    folders, budget = class_folders(names, where, preparation, "text"), Budget(where)

    def text(name: str) -> str:
        content = read(name)
        budget.take(_TEXT + 4 * len(content), "its texts")
        return as_utf_8(content, f"{where}: {name!r}", budget)[0].decode()

    training = [text(name) for name in folders.names["train"]]
    wanted = training if split == "train" else [text(name) for name in folders.names[split]]
    made = as_tokens(training, wanted, preparation)
    return Items(
        made.inputs,
        folders.targets[split],
        made.vocabulary,
        made.texts,
        folders.class_names,
        (*made.notes, *folders.notes),
        whole=True,
        special=made.special,
    )
