"""Images and labels in pairs of IDX files: what MNIST, Fashion-MNIST and the cached CIFAR-10 share."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets.base import Items
from idc_core.datasets.idx import read_idx
from idc_core.datasets.images import scale
from idc_core.errors import DataError
from idc_core.progress import Progress, report

PREFIXES = {"train": "train", "test": "t10k"}
"""How the files of a split begin."""


def idx_files(split: str, dimensions: int) -> tuple[str, str]:
    """Return the names of the image file (of so many dimensions) and the label file of a split."""
    prefix = PREFIXES[split]
    return f"{prefix}-images-idx{dimensions}-ubyte.gz", f"{prefix}-labels-idx1-ubyte.gz"


def read_labelled(
    folder: Path,
    split: str,
    item_shape: tuple[int, ...],
    classes: int,
    limit: int | None,
    on_progress: Progress | None,
) -> Items:
    """Read the images and labels of one split.

    Parameters
    ----------
    folder : Path
        Where the two files are.
    split : {"train", "test"}
        Which split.
    item_shape : tuple of int
        Shape of an image in the file: (H, W) or (C, H, W).
    classes : int
        Labels must be below.
    limit : int or None
        Keep only the first.
    on_progress : Progress or None
        Callback.

    Returns
    -------
    Items
        Images float32 (n, C, H, W) in 0..1, labels int64 (n,).

    Raises
    ------
    DataError
        If a file is damaged, if they hold different numbers of items, or if a label is out of range.
    """
    images, labels = (folder / name for name in idx_files(split, 1 + len(item_shape)))
    report(on_progress, 0, 2, f"Reading {images.name}")
    targets, label_count = read_idx(labels, ())
    check_labels(targets, classes, labels)
    pixels, count = read_idx(images, item_shape, limit)
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


def check_labels(labels: NDArray[np.uint8], classes: int, source: Path) -> None:
    """Refuse labels outside 0 .. classes - 1, naming the first one and `source`."""
    wrong = np.flatnonzero(labels >= classes)
    if len(wrong):
        raise DataError(
            f"{source} gives item {wrong[0]:,} the label {labels[wrong[0]]}, expected 0..{classes - 1} "
            f"({len(wrong):,} such labels in all)."
        )
