"""Images from OpenML, written as IDX files."""

import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets.download import Source
from idc_core.datasets.idx import idx_files, write_idx


def openml_source(name: str, item_shape: tuple[int, ...], counts: dict[str, tuple[int, ...]], megabytes: int) -> Source:
    """Describe how to get an image dataset from OpenML.

    Parameters
    ----------
    name : str
        Name on openml.org; version 1 is taken.
    item_shape : tuple of int
        Shape of an image, (H, W) or (C, H, W), grey levels 0..255.
    counts : dict
        Images per class in "train" and "test". OpenML keeps both splits in one table, training images first;
        the counts prove that this order was kept.
    megabytes : int
        About how much is transferred.

    Returns
    -------
    Source
        Writes the four IDX files of MNIST's layout.
    """
    size = int(np.prod(item_shape))

    def make(scratch: Path, ready: Path) -> None:
        from sklearn.datasets import fetch_openml  # costs a second, and only a download needs it

        # A retry is no news: whether the download worked is said at the end.
        warnings.filterwarnings("ignore", "A network error occurred", UserWarning)
        # It compares what it downloads with the MD5 sum that OpenML publishes. The types are given because it
        # would read labels as categories, on which it fails with pandas 3, and pixels as 64-bit integers.
        bunch = fetch_openml(
            name,
            version=1,
            data_home=str(scratch),
            as_frame=False,
            parser="pandas",
            n_retries=1,
            read_csv_kwargs={"dtype": dict.fromkeys(range(size), np.float32)},
        )
        pixels, labels = _as_bytes(name, bunch.data, "grey levels"), _as_bytes(name, bunch.target, "labels")
        if pixels.shape != (len(labels), size):
            raise ValueError(f"{name} from OpenML has the shape {pixels.shape}")
        first = 0
        for split, expected in counts.items():
            part = slice(first, first + sum(expected))
            found = np.bincount(labels[part], minlength=len(expected)).tolist()
            if found != list(expected):
                raise ValueError(f"{name} from OpenML has {found} {split} images per class, not {expected}")
            images, names = idx_files(split, 1 + len(item_shape))
            write_idx(ready / images, pixels[part].reshape(-1, *item_shape))
            write_idx(ready / names, labels[part])
            first = part.stop
        if first != len(labels):
            raise ValueError(f"{name} from OpenML has {len(labels)} images, not {first}")

    return Source(megabytes, make)


def _as_bytes(name: str, values: object, what: str) -> NDArray[np.uint8]:
    array = np.asarray(values)
    if array.dtype == object:  # labels as text, which may be quoted
        array = np.array([int(str(value).strip("'")) for value in array])
    with np.errstate(invalid="ignore"):
        result = array.astype(np.uint8)
    # Also false for NaN, fractions, and values outside 0..255.
    if not np.array_equal(result, array):
        raise ValueError(f"{name} from OpenML has {what} that are not whole numbers in 0..255")
    return result
