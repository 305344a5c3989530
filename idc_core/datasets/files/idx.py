"""IDX files, as MNIST is published: images and labels in pairs, plain or gzipped."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from idc_core.base.progress import Progress
from idc_core.datasets.dataset import Items
from idc_core.datasets.files.contents import Content, Part, items_of, listed
from idc_core.datasets.formats import data_format
from idc_core.datasets.preparation import Preparation
from idc_core.datasets.splits import named_split
from idc_core.errors import DataError
from idc_core.guarded import Budget, open_gzip, opened

ENDINGS = (".idx", ".idx.gz", "-ubyte", "-ubyte.gz")

_KINDS = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_MOST_SIDES = 4
_BLOCK = 1 << 20


@data_format(*ENDINGS, label="IDX, images and labels in pairs")
def _read_idx_pair(
    path: Path, preparation: Preparation, split: str, limit: int | None, on_progress: Progress | None
) -> Items:
    """Read the pairs of files of the folder that the path lies in."""
    if not any(file != path for file in path.parent.iterdir() if file.name.lower().endswith(ENDINGS)):
        raise DataError(
            f"{path} is one IDX file alone: images and labels lie beside each other, as train-images-idx3-ubyte and "
            "train-labels-idx1-ubyte. Give the folder of both, or save both in an npz file."
        )
    return read_idx_folder(path.parent, preparation, split)


def read_idx_folder(folder: Path, preparation: Preparation, split: str) -> Items:
    """Read the pairs of IDX files in a folder: images and labels, told by the words image and label in their names."""
    where, budget = str(folder), Budget(str(folder))
    names = sorted(file.name for file in folder.iterdir() if file.name.lower().endswith(ENDINGS))
    pairs: dict[str, dict[str, Path]] = {}
    for name in names:
        kind = "targets" if "label" in name.lower() else "inputs"
        pair = pairs.setdefault(_split_of(name), {})
        if kind in pair:
            raise DataError(f"{where} holds {listed([pair[kind].name, name])}, which may both be meant; take one away.")
        pair[kind] = folder / name
    if not pairs or not all(len(pair) == 2 for pair in pairs.values()):
        raise DataError(
            f"{where} holds the IDX files {listed(names)}; expected images and labels in pairs, such as "
            "train-images-idx3-ubyte and train-labels-idx1-ubyte."
        )
    if "test" in pairs:
        pairs.pop("validation", None)
    parts = {
        name: Part(_read_idx_array(pair["inputs"], budget), _read_idx_array(pair["targets"], budget))
        for name, pair in pairs.items()
    }
    return items_of(Content(parts, budget, notes=("IDX files",)), preparation, split, where)


def _split_of(name: str) -> str:
    """Return the split that any part of a name says, as in emnist-digits-train-images-idx3-ubyte, or ""."""
    return next(filter(None, (named_split(part)[0] for part in re.split(r"[-_. ]", name))), "")


def _read_idx_array(path: Path, budget: Budget) -> NDArray[np.generic]:
    """Return the array of an IDX file of any type.

    Raises
    ------
    DataError
        If it is no such file, or holds fewer or more bytes than its header says.
    """
    where = str(path)
    with _open(path, where) as stream:
        head = stream.read(4)
        if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in _KINDS or not 1 <= head[3] <= _MOST_SIDES:
            raise DataError(f"{where} is no IDX file of 1 to {_MOST_SIDES} dimensions: it begins with {head.hex()}.")
        sizes = stream.read(4 * head[3])
        if len(sizes) < 4 * head[3]:
            raise DataError(f"{where} ends inside its header: copy it again.")
        shape = struct.unpack(f">{head[3]}I", sizes)
        kind = np.dtype(_KINDS[head[2]])
        size = int(np.prod([int(side) for side in shape], dtype=object)) * kind.itemsize
        blocks, read = [], 0
        # What a header promises is not reserved before it has come.
        while read < size and (block := stream.read(min(_BLOCK, size - read))):
            budget.take(2 * len(block), "its values")
            blocks.append(block)
            read += len(block)
        if read < size or stream.read(1):
            more = "more" if read == size else f"{read:,}"
            raise DataError(f"{where} holds {more} bytes of data where its header says {size:,}: copy it again.")
    values = np.frombuffer(b"".join(blocks), kind).reshape(shape)
    return values.astype(kind.newbyteorder("="))


@contextmanager
def _open(path: Path, where: str) -> Iterator[BinaryIO]:
    if path.name.lower().endswith(".gz"):
        with open_gzip(path, where) as stream:
            yield stream
    else:
        with opened(path, where) as stream:
            yield stream
