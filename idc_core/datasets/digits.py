"""The 1,797 handwritten digits that ship with scikit-learn, resized to 28x28."""

import importlib.util
import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from idc_core.base.progress import Progress, report
from idc_core.datasets.dataset import Items
from idc_core.datasets.registry import shipped
from idc_core.errors import DataError
from idc_core.guarded import open_gzip

_TEST_ITEMS = 540
_SIDE = 28
_LEVELS = 16
_SEED = 0
_MOST_BYTES = 1 << 20


@shipped(
    "digits",
    "Handwritten digits (scikit-learn)",
    "1,797 real handwritten digits, 8x8 pixels resized to 28x28; they come with scikit-learn: no download.",
    class_names=tuple("0123456789"),
    input_shape=(1, _SIDE, _SIDE),
    citation=(
        "E. Alpaydin, C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, "
        "1998, doi:10.24432/C50P49"
    ),
    licence="CC BY 4.0",
)
def load(split: str, limit: int | None, on_progress: Progress | None) -> Items:
    """Return images float32 (n, 1, 28, 28) in 0..1 and labels int64 (n,) of one split."""
    report(on_progress, 0, 1, "Reading the digits")
    pixels, labels = _read(_find())
    chosen = _split_indices(labels)[split][:limit]
    # Rows first, then columns, as Pillow resizes a picture: all pictures at once take a fifth of the time.
    inputs = _widened(_widened(pixels[chosen]).transpose(0, 2, 1)).transpose(0, 2, 1)[:, None]
    report(on_progress, 1, 1, "Reading the digits")
    return Items(np.divide(inputs, np.float32(_LEVELS), order="C"), labels[chosen])


def _widened(pictures: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return pictures (n, rows, columns) with `_SIDE` columns."""
    rows = Image.fromarray(np.ascontiguousarray(pictures.reshape(-1, pictures.shape[2])))
    return np.asarray(rows.resize((_SIDE, rows.height), Image.Resampling.BILINEAR)).reshape(*pictures.shape[:2], _SIDE)


def _split_indices(labels: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    """Return ascending positions of "train" and "test", which has 540, so that every class has its share in both."""
    classes, counts = np.unique(labels, return_counts=True)
    # Largest remainders: whole shares first, what is left to the classes that lost most by rounding down.
    shares = counts * _TEST_ITEMS / len(labels)
    sizes = np.floor(shares).astype(np.int64)
    sizes[np.argsort(sizes - shares, kind="stable")[: _TEST_ITEMS - sizes.sum()]] += 1
    # RandomState, not default_rng: its stream is frozen (NEP 19), so the split is the same with every numpy.
    random = np.random.RandomState(_SEED)
    test = np.zeros(len(labels), bool)
    for label, size in zip(classes, sizes, strict=True):
        test[random.permutation(np.flatnonzero(labels == label))[:size]] = True
    return {"train": np.flatnonzero(~test), "test": np.flatnonzero(test)}


def _find() -> Path:
    # The file is read directly: importing scikit-learn for it would cost a second at every start.
    spec = importlib.util.find_spec("sklearn")
    if spec is None or spec.origin is None:
        raise DataError("The digits come with scikit-learn, which is missing: pip install scikit-learn.")
    return Path(spec.origin).parent / "datasets" / "data" / "digits.csv.gz"


def _read(path: Path) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    try:
        with open_gzip(path, str(path)) as stream:
            text = stream.read(_MOST_BYTES).decode("ascii")
        table = np.loadtxt(io.StringIO(text), delimiter=",", dtype=np.int64, ndmin=2)
    except (DataError, ValueError, OverflowError) as error:
        raise DataError(f"The digits cannot be read from {path} ({error}): install scikit-learn again.") from error
    if table.shape != (1797, 65) or table[:, :64].min() < 0 or table[:, :64].max() > _LEVELS:
        raise DataError(
            f"{path} holds a table of {table.shape}, expected 1,797 digits of 64 pixels in 0..16 and a "
            "class: install scikit-learn again."
        )
    if table[:, 64].min() < 0 or table[:, 64].max() > 9:
        raise DataError(f"{path} holds classes outside 0..9: install scikit-learn again.")
    return table[:, :64].reshape(-1, 8, 8).astype(np.float32), table[:, 64].copy()
