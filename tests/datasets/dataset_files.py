"""Small files in the layout of the real ones, whole or damaged, for the tests of the datasets."""

import gzip
import io
import struct
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

from idc_core.datasets.cifar10 import _CLASS_NAMES
from idc_core.datasets.newsgroups import GROUPS

CIFAR_ZIP = "cifar10-jpeg.zip"
UDACITY_ZIP = "udacity-center-100x100.zip"
NEWS_ZIP = "20news-bydate-6.zip"


def idx_bytes(items, magic=None, shape=None):
    """The content of an IDX file, before compression; `magic` and `shape` overrule the header."""
    magic = 0x0800 | items.ndim if magic is None else magic
    shape = items.shape if shape is None else shape
    return struct.pack(f">{1 + len(shape)}I", magic, *shape) + items.astype(np.uint8).tobytes()


def write_gz(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content, 6))
    return path


def digits(count, seed):
    random = np.random.default_rng(seed)
    return random.integers(0, 256, (count, 28, 28), np.uint8), random.integers(0, 10, count, np.uint8)


def write_mnist(folder, train=60, test=40):
    for prefix, count, seed in (("train", train, 1), ("t10k", test, 2)):
        images, labels = digits(count, seed)
        write_gz(folder / f"{prefix}-images-idx3-ubyte.gz", idx_bytes(images))
        write_gz(folder / f"{prefix}-labels-idx1-ubyte.gz", idx_bytes(labels))
    return folder


def picture(size, seed=0, mode="RGB", form="JPEG"):
    """An encoded picture of one colour, which the seed chooses."""
    colour = tuple(int(value) for value in np.random.default_rng(seed).integers(0, 256, 3))
    stream = io.BytesIO()
    Image.new(mode, (size, size), colour if mode == "RGB" else colour[0]).save(stream, form)
    return stream.getvalue()


def write_zip(path, members, method=zipfile.ZIP_STORED):
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            # A ZipInfo keeps the name as given; writestr(str) would mend some hostile ones.
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return path


def cifar_members(per_class=3):
    return {
        f"{split}/{name}/{number:04d}.jpg": picture(32, (split == "test", label, number))
        for split in ("train", "test")
        for label, name in enumerate(_CLASS_NAMES)
        for number in range(per_class)
    }


def udacity_members(frames=400):
    stamps = [1_479_425_441_000_000_000 + 50_000_000 * index for index in range(frames)]
    rows = [f"{stamp},{np.sin(index / 50):.6f}" for index, stamp in enumerate(stamps)]
    members = {"steering.csv": "\n".join(["frame_id,steering_angle", *rows]) + "\n"}
    members.update({f"center/{stamp}.jpg": picture(100, index) for index, stamp in enumerate(stamps)})
    return members


def news_members(per_group=4):
    members = {}
    for split in ("train", "test"):
        for label, group in enumerate(GROUPS):
            for number in range(per_group):
                body = f"{split} about {group} n{number}\n> quoted\nAnn wrote:\nlast{label}\n\n--\nMe\n"
                name = f"20news-bydate-{split}/{group}/{1000 + number}"
                members[name] = f"From: someone@example.org\nSubject: {group}\n\n{body}".encode("latin-1")
    return members


def write_all(root):
    """All the datasets that are read from files, small."""
    write_mnist(root / "mnist")
    write_mnist(root / "fashion-mnist")
    write_zip(root / "cifar10" / CIFAR_ZIP, cifar_members())
    write_zip(root / "udacity" / UDACITY_ZIP, udacity_members())
    write_zip(root / "20newsgroups" / NEWS_ZIP, news_members(), zipfile.ZIP_DEFLATED)
    return root


def tree(folder):
    """Every file below a folder with its content, to see that nothing was written."""
    return {str(path): path.is_file() and path.read_bytes() for path in Path(folder).rglob("*")}
