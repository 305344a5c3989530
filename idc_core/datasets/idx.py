"""Images and labels in pairs of IDX files: what MNIST, Fashion-MNIST and the cached CIFAR-10 share."""

import gzip
import struct
from io import BufferedReader
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idc_core.base.progress import Progress, report
from idc_core.datasets.archived_pictures import scale
from idc_core.datasets.dataset import Items
from idc_core.datasets.sources import RemoteFile, Source
from idc_core.errors import DataError
from idc_core.guarded import Budget, open_gzip

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
    targets, label_count = _read_idx(labels, ())
    _check_labels(targets, classes, labels)
    pixels, count = _read_idx(images, item_shape, limit)
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
_CHUNK = 1 << 20
# Deflate cannot expand more than 1,032 times; real pictures expand less than ten times. A file that claims to
# expand a hundredfold into more than a megabyte is a trap or a mistake.
_MAX_EXPANSION = 100
_SMALL = 1 << 20


def _read_idx(path: Path, item_shape: tuple[int, ...], limit: int | None = None) -> tuple[NDArray[np.uint8], int]:
    """Return the first `limit` items (n, *item_shape) of a gzipped IDX file of unsigned bytes, and how many it has.

    The whole file is checked, also when only a part is kept.

    Raises
    ------
    DataError
        If the file is cut off or not gzip, has another magic number or item shape, holds fewer or more bytes
        than its header says, or claims an implausible size.
    """
    with open_gzip(path, str(path)) as stream:
        count = _read_header(stream, path, item_shape)
        size = int(np.prod(item_shape, dtype=np.int64))
        kept = count if limit is None else min(limit, count)
        Budget(str(path)).take(kept * size, "its items")
        items = np.empty((kept, *item_shape), np.uint8)
        filled = _fill(stream, items.reshape(-1).data)
        while filled < count * size and (chunk := stream.read(min(_CHUNK, count * size - filled))):
            filled += len(chunk)
        if filled < count * size:
            raise DataError(
                f"{path} holds {filled:,} bytes of data where its header says {count:,} items of {size} "
                "bytes: the file is not complete, copy it again."
            )
        if stream.read(1):
            raise DataError(
                f"{path} holds more data than the {count:,} items of {size} bytes that its header says: "
                "the file is not what it claims, copy it again."
            )
    return items, count


def write_idx(path: Path, items: NDArray[np.uint8]) -> None:
    """Write an array of unsigned bytes, items along its first axis, as a gzipped IDX file."""
    header = struct.pack(f">BBBB{items.ndim}I", 0, 0, _UNSIGNED_BYTE, items.ndim, *items.shape)
    # No time stamp: the same array always gives the same file.
    with path.open("wb") as raw, gzip.GzipFile(path.name, "wb", 6, raw, mtime=0) as stream:
        stream.write(header)
        stream.write(np.ascontiguousarray(items).data)


def _read_header(stream: BufferedReader, path: Path, item_shape: tuple[int, ...]) -> int:
    dimensions = 1 + len(item_shape)
    header = stream.read(4 + 4 * dimensions)
    if len(header) < 4 + 4 * dimensions:
        raise DataError(f"{path} ends inside its header: copy it again.")
    magic, count, *shape = struct.unpack(f">{1 + dimensions}I", header)
    expected = _UNSIGNED_BYTE << 8 | dimensions
    if magic != expected:
        raise DataError(
            f"{path} has the magic number {magic}, expected {expected} (IDX, unsigned bytes, {dimensions} "
            "dimensions): is it another file under this name?"
        )
    if tuple(shape) != item_shape:
        raise DataError(f"{path} holds items of shape {tuple(shape)}, expected {item_shape}.")
    if count == 0:
        raise DataError(f"{path} holds no items.")
    # Checked before anything of that size is allocated.
    size = int(np.prod(item_shape, dtype=np.int64)) * count
    if size > max(_SMALL, _MAX_EXPANSION * path.stat().st_size):
        raise DataError(
            f"{path} claims {size:,} bytes of data in a file of {path.stat().st_size:,}, more than "
            f"{_MAX_EXPANSION} times its size: the header is wrong or the file is a trap."
        )
    return int(count)


def _fill(stream: BufferedReader, view: memoryview) -> int:
    done = 0
    while done < len(view) and (step := stream.readinto(view[done : done + _CHUNK])):
        done += step
    return done
