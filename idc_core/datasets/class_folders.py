"""From the names of pictures to splits and classes: train/cat/1.png, or cat/1.png with a split that is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.base.parameters import shown
from idc_core.datasets.preparation import Preparation
from idc_core.datasets.splits import chosen_splits, drawn_split, named_split, said_draw
from idc_core.errors import DataError

_EXPECTED = "expected names such as cat/1.png, or train/cat/1.png and test/cat/2.png"
_PICTURES = frozenset(("image", "img", "picture", "photo", "input", "jpegimage", "rgb"))
_MASKS = frozenset(
    (
        "mask",
        "label",
        "annotation",
        "gt",
        "groundtruth",
        "ground_truth",
        "segmentation",
        "segmentationclas",
        "target",
        "seg",
    )
)
"""Names, without an s at their end, of folders that hold pictures, and what is marked in each."""
_NO_SIGN = "\N{REPLACEMENT CHARACTER}"

_Listed = list[tuple[str, str]]
"""Names of pictures, each with its class folder."""


@dataclass(frozen=True, eq=False)
class _ClassFolders:
    """What the folders say.

    Attributes
    ----------
    class_names : tuple of str
        Names of the class folders, sorted as Python sorts them: the order that torchvision gives them, too.
    names : dict of str to tuple of str
        Pictures of "train" and "test", in an order drawn by the seed: the first ones are of all classes.
    targets : dict of str to ndarray of int64
        Their classes.
    notes : tuple of str
        What was decided, each in a few words.
    """

    class_names: tuple[str, ...]
    names: dict[str, tuple[str, ...]]
    targets: dict[str, NDArray[np.int64]]
    notes: tuple[str, ...]


def class_folders(names: Sequence[str], where: str, preparation: Preparation, what: str = "picture") -> _ClassFolders:
    """Sort pictures, or other files, into splits and classes.

    Parameters
    ----------
    names : sequence of str
        With "/" between folders; in the same order whenever they are the same.
    where : str
        What they lie in, for messages.
    preparation : Preparation
        Its `test_share` and `seed` draw what the folders do not say.
    what : str
        What they are, for messages.

    Returns
    -------
    ClassFolders

    Raises
    ------
    DataError
        If there are no two classes, or a split has no pictures.
    """
    parts = _without_top([name.split("/") for name in names])
    tops = _splits_of(parts)
    doubled = {top for top in tops if {part[1] for part in parts if part[0] == top and len(part) > 1} == {top}}
    by_split: dict[str, _Listed] = {}
    left = 0
    for name, part in zip(names, parts, strict=True):
        split = tops.get(part[0], "") if len(part) > 1 else ""
        twice = len(part) > 3 and part[0] in doubled  # as programs that unpack into a folder of the same name do
        rest = part[1 + twice :] if tops else part
        if tops and not split:
            left += 1
        elif len(rest) < 2:
            raise DataError(f"{where}: the {what} {shown(name)} lies in no class folder; {_EXPECTED}.")
        else:
            by_split.setdefault(split, []).append((name, rest[0]))
    notes = [f"{left:,} {what}s outside the folders of the splits left out"] if left else []
    return _numbered(by_split, where, preparation, notes)


def _splits_of(parts: list[list[str]]) -> dict[str, str]:
    """Return the split of each folder that is named after one: train, or train_set beside test_set.

    Beside folders of other names, one that holds files and no folders is a class: train beside bus and car.
    """
    deep = {path[0] for path in parts if len(path) > 2}
    named = {path[0]: named_split(path[0]) for path in parts if len(path) > 1}
    if not all(split for split, _ in named.values()) and not deep & {top for top, (split, _) in named.items() if split}:
        return {}
    for word in ("", *sorted({rest for split, rest in named.values() if split and rest})):
        tops = {top: split for top, (split, rest) in named.items() if split and rest == word}
        if tops and (not word or len(set(tops.values())) > 1):
            return tops
    return {}


def _without_top(parts: list[list[str]]) -> list[list[str]]:
    """Take away folders that hold everything else, as a zip file has one that is named like itself."""
    while all(len(path) > 2 for path in parts) and len({path[0] for path in parts}) == 1 and not _splits_of(parts):
        parts = [path[1:] for path in parts]
    return parts


def _numbered(found: dict[str, _Listed], where: str, preparation: Preparation, notes: list[str]) -> _ClassFolders:
    """Choose or draw the splits, number the classes, and put each split into an order drawn by the seed."""
    folders = sorted({label for listed in found.values() for _, label in listed})
    if len(folders) < 2:
        raise DataError(
            f"{where} has pictures of one class only ({shown(folders[0])}); expected a folder for each of two or more."
        )
    plain = {folder.lower().removesuffix("s") for folder in folders}
    if plain & _MASKS and plain - _MASKS and plain <= _MASKS | _PICTURES:
        raise DataError(
            f"{where} has the folders {' and '.join(map(shown, folders))}, which are pictures and what is marked in "
            "them, and no classes. Put the pictures alone into a folder for each class, or return them with a class "
            "each from a setup file."
        )
    names = tuple("".join(sign if sign.isprintable() else _NO_SIGN for sign in label) for label in folders)
    if len(set(names)) < len(names):
        raise DataError(f"{where} has class folders that differ only in signs that cannot be printed; rename them.")
    number = {folder: at for at, folder in enumerate(folders)}
    seed, share = preparation.seed, preparation.test_share
    if list(found) in ([""], ["train"]):
        (whole,) = found.values()
        drawn = drawn_split(np.array([number[label] for _, label in whole]), share, seed, where)
        splits = {split: [whole[at] for at in positions] for split, positions in drawn.items()}
        note = said_draw(share, seed)
    else:
        chosen, note = chosen_splits(found, where)
        splits = {split: _shuffled(found[chosen[split]], seed) for split in ("train", "test")}
    return _ClassFolders(
        names,
        {split: tuple(name for name, _ in listed) for split, listed in splits.items()},
        {split: np.array([number[label] for _, label in listed], np.int64) for split, listed in splits.items()},
        (note, *notes),
    )


def _shuffled(listed: _Listed, seed: int) -> _Listed:
    """Draw the order; the stream is one that stays the same with every numpy."""
    random = np.random.RandomState(np.random.MT19937(np.random.SeedSequence(seed)))
    return [listed[at] for at in random.permutation(len(listed))]
