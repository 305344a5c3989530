"""Images and labels in pairs of IDX files: what MNIST, Fashion-MNIST and the cached CIFAR-10 share."""

import gzip
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idc_core.base.progress import Progress, report
from idc_core.datasets.archived_pictures import scale
from idc_core.datasets.dataset import Items
from idc_core.datasets.sources import RemoteFile, Source
from idc_core.errors import DataError
from idc_core.guarded import Budget, open_gzip, opened

_PREFIXES = {"train": "train", "test": "t10k"}
"""How the files of a split begin."""


def idx_files(split: str, dimensions: int) -> tuple[str, str]:
    """Return the names of the image file (of so many dimensions) and the label file of a split."""
    prefix = _PREFIXES[split]
    return f"{prefix}-images-idx{dimensions}-ubyte.gz", f"{prefix}-labels-idx1-ubyte.gz"


def mnist_layout(
    url: str,
    *,
    train_images: tuple[str, int],
    train_labels: tuple[str, int],
    test_images: tuple[str, int],
    test_labels: tuple[str, int],
) -> Source:
    """Describe the four files of MNIST below an address: the SHA-256 of each, and its megabytes, rounded up."""
    names = (*idx_files("train", 3), *idx_files("test", 3))
    pinned = (train_images, train_labels, test_images, test_labels)
    return Source(tuple(RemoteFile(url + name, *each) for name, each in zip(names, pinned, strict=True)))


def read_labelled(
    folder: Path, split: str, item_shape: tuple[int, ...], classes: int, limit: int | None, on_progress: Progress | None
) -> Items:
    """Read the images and labels of one split: float32 (n, C, H, W) in 0..1 and int64 (n,) below `classes`.

    Raises
    ------
    DataError
        If a file is damaged, if they hold different numbers of items, or if a label is out of range.
    """
    images, labels = (folder / name for name in idx_files(split, 1 + len(item_shape)))
    report(on_progress, 0, 2, f"Reading {images.name}")
    targets, label_count = read_idx(labels, Budget(str(labels)), ())
    _check_labels(targets, classes, labels)
    pixels, count = read_idx(images, Budget(str(images)), item_shape, limit)
    if count != label_count:
        raise DataError(
            f"{images} holds {count:,} images but {labels.name} beside it {label_count:,} labels: "
            "they do not belong together."
        )
    report(on_progress, 1, 2, f"Scaling {images.name}")
    shape = item_shape if len(item_shape) == 3 else (1, *item_shape)
    inputs = scale(pixels.reshape(-1, *shape))
    report(on_progress, 2, 2, f"Read {images.name}")
    return Items(inputs, targets[:limit].astype(np.int64))


def _check_labels(labels: NDArray[np.uint8], classes: int, source: Path) -> None:
    """Refuse labels outside 0 .. classes - 1, naming the first one and `source`."""
    wrong = np.flatnonzero(labels >= classes)
    if len(wrong):
        raise DataError(
            f"{source} gives item {wrong[0]:,} the label {labels[wrong[0]]}, expected 0..{classes - 1} "
            f"({len(wrong):,} such labels in all)."
        )


_UNSIGNED_BYTE = 0x08
_KINDS = {_UNSIGNED_BYTE: "u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_MOST_SIDES = 4
_CHUNK = 1 << 20
# Deflate cannot expand more than 1,032 times; real pictures expand less than ten times. A file that claims to
# expand a hundredfold into more than a megabyte is a trap or a mistake.
_MAX_EXPANSION = 100
_SMALL = 1 << 20


def read_idx(
    path: Path, budget: Budget, item_shape: tuple[int, ...] | None = None, limit: int | None = None
) -> tuple[NDArray[Any], int]:
    """Return the first `limit` items of an IDX file, plain or gzipped, and how many it has.

    The whole file is checked, also when a part is kept. With an `item_shape` it holds pictures as bytes, or labels.

    Raises
    ------
    DataError
        If it is no such file, is cut off, has items of another shape, or holds other bytes than its header says.
    """
    where = str(path)
    with open_gzip(path, where) if path.name.lower().endswith(".gz") else opened(path, where) as stream:
        head = stream.read(4)
        if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in _KINDS or not 1 <= head[3] <= _MOST_SIDES:
            found = head.hex() or "nothing"
            raise DataError(f"{where} is no IDX file of 1 to {_MOST_SIDES} dimensions: its header is {found}.")
        sizes = stream.read(4 * head[3])
        if len(sizes) < 4 * head[3]:
            raise DataError(f"{where} ends inside its header: copy it again.")
        count, *sides = struct.unpack(f">{head[3]}I", sizes)
        kind = np.dtype(_KINDS[head[2]])
        if item_shape is not None and (kind != np.uint8 or tuple(sides) != item_shape or not count):
            found = f"{count:,} items of shape {tuple(sides)}, {kind}"
            raise DataError(f"{where} holds {found}; expected some of shape {item_shape}, uint8: is it another file?")
        each = math.prod(sides) * kind.itemsize
        size, kept = count * each, each * min(count, count if limit is None else limit)
        if item_shape is not None and size > max(_SMALL, _MAX_EXPANSION * path.stat().st_size):
            raise DataError(
                f"{where} claims {size:,} bytes of data in a file of {path.stat().st_size:,}, more than "
                f"{_MAX_EXPANSION} times its size: the header is wrong or the file is a trap."
            )
        blocks, read = [], 0
        # What a header promises is not reserved before it has come.
        while read < size and (block := stream.read(min(_CHUNK, size - read))):
            if read < kept:
                budget.take(2 * len(block), "its values")
                blocks.append(block)
            read += len(block)
        if read < size or stream.read(1):
            more = "more" if read == size else f"{read:,}"
            raise DataError(f"{where} holds {more} bytes of data where its header says {size:,}: copy it again.")
    values = np.frombuffer(b"".join(blocks)[:kept], kind).reshape(-1, *sides) if each else np.empty((0, *sides), kind)
    return values.astype(kind.newbyteorder("=")), count


def write_idx(path: Path, items: NDArray[np.uint8]) -> None:
    """Write an array of unsigned bytes, items along its first axis, as a gzipped IDX file."""
    header = struct.pack(f">BBBB{items.ndim}I", 0, 0, _UNSIGNED_BYTE, items.ndim, *items.shape)
    # No time stamp: the same array always gives the same file.
    with path.open("wb") as raw, gzip.GzipFile(path.name, "wb", 6, raw, mtime=0) as stream:
        stream.write(header)
        stream.write(np.ascontiguousarray(items).data)
