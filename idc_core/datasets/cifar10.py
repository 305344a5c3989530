"""CIFAR-10, 60,000 small colour photographs of ten kinds of things."""

from pathlib import Path

import numpy as np

from idc_core.base.progress import Progress
from idc_core.datasets.archived_pictures import MAX_EXPANSION, decode_jpegs
from idc_core.datasets.dataset import Items
from idc_core.datasets.idx import idx_files, read_labelled, write_idx
from idc_core.datasets.registry import shipped
from idc_core.datasets.sources import RemoteFile, Source, obtain
from idc_core.errors import DataError
from idc_core.guarded import open_archive

_CLASS_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_ZIP = "cifar10-jpeg.zip"
_SEED = 0
_BATCHES = {"train": [f"data_batch_{number}.bin" for number in range(1, 6)], "test": ["test_batch.bin"]}


def _convert(fetched: Path, ready: Path) -> None:
    """Write the four IDX files of MNIST's layout from the binary batches: a label and 3 x 32 x 32 bytes per image."""
    import tarfile

    with tarfile.open(fetched / "cifar-10-binary.tar.gz") as archive:
        for split, batches in _BATCHES.items():
            members = [archive.extractfile(f"cifar-10-batches-bin/{name}") for name in batches]
            content = b"".join(member.read() for member in members if member is not None)
            records = np.frombuffer(content, np.uint8).reshape(-1, 1 + 3 * 32 * 32)
            images, labels = (ready / name for name in idx_files(split, 4))
            write_idx(images, records[:, 1:].reshape(-1, 3, 32, 32))
            write_idx(labels, records[:, 0])


_SOURCE = Source(
    (
        RemoteFile(
            "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
            "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            163,
        ),
    ),
    _convert,
)


@shipped(
    "cifar10",
    "CIFAR-10",
    "50,000 training and 10,000 test photographs of ten kinds of animals and vehicles, 32x32 colour.",
    class_names=_CLASS_NAMES,
    input_shape=(3, 32, 32),
    citation=(
        "A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, technical report, "
        "University of Toronto, 2009"
    ),
    licence="No licence text is given; the author asks for the citation.",
)
def load(split: str, limit: int | None, on_progress: Progress | None) -> Items:
    """Return images float32 (n, 3, 32, 32) in 0..1 and labels int64 (n,) of one split.

    The zip file holds JPEG images, which differ from the original pixels by a few grey levels; a download has
    the original pixels, in the original order.
    """
    folder = obtain("cifar10", "CIFAR-10", [(_ZIP,), idx_files(split, 4)], _SOURCE, on_progress)
    if (folder / _ZIP).is_file():
        return _read_zip(folder / _ZIP, split, limit, on_progress)
    return read_labelled(folder, split, (3, 32, 32), 10, limit, on_progress)


def _read_zip(path: Path, split: str, limit: int | None, on_progress: Progress | None) -> Items:
    with open_archive(path, str(path), expansion=MAX_EXPANSION) as archive:
        names = [name for name in archive.names if name.startswith(f"{split}/") and name.endswith(".jpg")]
        if not names:
            raise DataError(f"{path} has no images {split}/<class>/<number>.jpg.")
        labels = np.array([_label(path, name) for name in names], np.int64)
        # The files are grouped by class: a fixed shuffle makes the first items a fair sample.
        # RandomState, not default_rng: its stream is frozen (NEP 19).
        order = np.random.RandomState(_SEED).permutation(len(names))[:limit]
        chosen = [names[index] for index in order]
        images = decode_jpegs(archive, chosen, 32, on_progress, "Decoding CIFAR-10")
    return Items(images, labels[order])


def _label(path: Path, name: str) -> int:
    folder = name.split("/")[1]
    if folder not in _CLASS_NAMES:
        raise DataError(f"{path}: the member {name} is of no known class; expected one of {', '.join(_CLASS_NAMES)}.")
    return _CLASS_NAMES.index(folder)
