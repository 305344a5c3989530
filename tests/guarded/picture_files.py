"""Pictures that a person gives, in class folders or a zip file of them, and the cache of decoded ones."""

import io
import zipfile

import numpy as np
from PIL import Image

from idc_core.datasets.pictures import read_pictures
from idc_core.datasets.preparation import Preparation
from tests.guarded import crafted_arrays, crafted_binaries, damage
from tests.guarded.reader import Reader

random = np.random.default_rng(0)
PIXELS = {f"{name}/{number}.png": random.integers(0, 256, (4, 5)) for name in "ab" for number in range(2)}
PICTURE_READERS = ("idc_core.datasets.pictures", "idc_core.datasets.row_cache", "idc_core.datasets.streamed")


def png_of(values):
    """A small grey picture as PNG."""
    stream = io.BytesIO()
    Image.fromarray(values.astype(np.uint8)).save(stream, "PNG")
    return stream.getvalue()


def picture_zip(folder):
    """A zip file of two class folders."""
    path = folder / "data" / "mine.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, values in PIXELS.items():
            packed.writestr(name, png_of(values))
    return path


def picture_folder(folder):
    """One picture of two class folders."""
    for name, values in PIXELS.items():
        path = folder / "data" / "mine" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png_of(values))
    return path


def pictures_of(path):
    """All pictures of class folders, and their classes."""
    found = [read_pictures(path, Preparation(), split, None, None) for split in ("train", "test")]
    return [(one.inputs, one.targets, one.class_names) for one in found]


def decoded(name):
    """A file of the cache of decoded pictures."""

    def prepare(folder):
        picture_folder(folder)
        pictures_of(folder / "data" / "mine")
        (kept,) = (folder / "home" / "pictures").iterdir()
        return kept / name

    return prepare


def valid_pictures(found):
    """Whether pictures are such as the engine takes."""
    return all(one.dtype == np.float32 and one.ndim == 4 and one.min() >= 0 and one.max() <= 1 for one, *_ in found)


PICTURE_FILES = (
    Reader(
        "pictures in a zip file",
        PICTURE_READERS,
        picture_zip,
        pictures_of,
        {"archive": crafted_arrays.archive},
        dict.fromkeys(("damage", "archive"), "names, which tell the classes, and times carry no checksum"),
        damage.zip_heads,
        tries=60,
        flips=30,
        valid=valid_pictures,
    ),
    *(
        Reader(
            f"decoded pictures, {name}",
            PICTURE_READERS,
            decoded(name),
            lambda path: pictures_of(path.parents[3] / "data" / "mine"),
            tries=30,
            flips=30,
            special=False,
            mends=True,
        )
        for name in ("rows", "digests")
    ),
    Reader(
        "pictures in a folder",
        PICTURE_READERS,
        picture_folder,
        lambda path: pictures_of(path.parents[1]),
        {"parts": crafted_binaries.png},
        {"parts": "the checksums of the parts are right: somebody else's file", "special": "a file less"},
        damage.all_of,
        tries=60,
        flips=30,
        valid=valid_pictures,
    ),
)
