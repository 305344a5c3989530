"""IDX files, as MNIST is published: images and labels in pairs, plain or gzipped."""

from __future__ import annotations

import re
from pathlib import Path

from idc_core.base.progress import Progress
from idc_core.datasets.dataset import Items
from idc_core.datasets.files.contents import Content, Part, items_of
from idc_core.datasets.files.names import listed
from idc_core.datasets.formats import data_format
from idc_core.datasets.idx import read_idx
from idc_core.datasets.preparation import Preparation
from idc_core.datasets.splits import named_split
from idc_core.errors import DataError
from idc_core.guarded import Budget

ENDINGS = (".idx", ".idx.gz", "-ubyte", "-ubyte.gz")


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
        name: Part(read_idx(pair["inputs"], budget)[0], read_idx(pair["targets"], budget)[0])
        for name, pair in pairs.items()
    }
    return items_of(Content(parts, budget, notes=("IDX files",)), preparation, split, where)


def _split_of(name: str) -> str:
    """Return the split that any part of a name says, as in emnist-digits-train-images-idx3-ubyte, or ""."""
    return next(filter(None, (named_split(part)[0] for part in re.split(r"[-_. ]", name))), "")
