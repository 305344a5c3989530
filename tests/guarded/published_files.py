"""The files of data sets, as they are published, and the checksums of those that were downloaded."""

import gzip
import hashlib

import numpy as np

from idc_core.datasets import digits, load_dataset
from idc_core.datasets.cifar10 import _CLASS_NAMES
from idc_core.datasets.newsgroups import GROUPS
from idc_core.datasets.sources import _CHECKSUMS
from tests.datasets.dataset_files import CIFAR_ZIP, NEWS_ZIP, UDACITY_ZIP, idx_bytes, picture
from tests.guarded import crafted_arrays, crafted_binaries, crafted_texts, damage
from tests.guarded.own_files import MEMBERS
from tests.guarded.reader import Reader


def content(name, split="test"):
    """A function of a path that reads a data set, whose files lie where they are looked for."""

    def read(path):
        found = load_dataset(name, split)
        return found.inputs, found.targets, found.vocabulary, found.texts, found.fingerprint

    return read


def mnist(folder, count=3):
    """Images and labels of one split; the folder that they are in."""
    place = folder / "mnist"
    place.mkdir(parents=True)
    images = np.zeros((count, 28, 28), np.uint8)
    images[:, 3:5, 7:9] = np.arange(1, count + 1)[:, None, None]
    for name, items in (("t10k-images-idx3", images), ("t10k-labels-idx1", np.arange(count))):
        (place / f"{name}-ubyte.gz").write_bytes(gzip.compress(idx_bytes(items), 6, mtime=0))
    return place


def downloaded(folder):
    """The same in the cache, with the checksums of a download."""
    place = mnist(folder / "home")
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(place.iterdir())]
    (place / _CHECKSUMS).write_text("".join(lines))
    return place


def zipped(name, file, members, method):
    """A zip file of a data set."""

    def prepare(folder):
        path = folder / "data" / name / file
        path.parent.mkdir()
        path.write_bytes(crafted_arrays.packed(members.items(), method))
        return path

    return prepare


CIFAR = {f"test/{name}/0001.jpg": picture(32, place) for place, name in enumerate(_CLASS_NAMES[:2])}
STAMPS = [1_479_425_441_000_000_000 + place for place in range(7)]
DRIVE = {
    "steering.csv": "\n".join(
        ["frame_id,steering_angle", *(f"{stamp},0.{place}" for place, stamp in enumerate(STAMPS))]
    )
}
DRIVE |= {f"center/{stamp}.jpg": picture(100, 0) for stamp in STAMPS}
NEWS = {
    f"20news-bydate-{split}/{group}/{number}": f"From: a\n\n{split} about {group}\n> quoted\nwords\n\n--\nMe\n".encode(
        "latin-1"
    )
    for split in ("train", "test")
    for number, group in enumerate(GROUPS[:2])
}
JPEG = {"jpg": damage.anything}


def archived(what, name, file, members, module, crafts, tries, method=0):
    """An entry for a data set in a zip file."""
    ways = {"archive": crafted_arrays.archive, "members": crafted_arrays.members(crafts)}
    return Reader(
        what,
        (module, "idc_core.datasets.archived_pictures"),
        zipped(name, file, members, method),
        content(name),
        ways,
        dict.fromkeys(ways, MEMBERS),
        damage.zip_heads if name != "udacity" else damage.ends,
        tries=tries,
        flips=tries // 4,
    )


def digits_file(folder):
    """The digits that come with scikit-learn, once more; read from there from now on."""
    path = folder / "data" / "digits.csv.gz"
    path.write_bytes(digits._find().read_bytes())
    return path


def read_digits(path):
    return digits._read(path)


GZIP = "the checksum is right: somebody else's file"
IDX = {"content": crafted_binaries.zipped(crafted_binaries.idx)}


def idx(what, file):
    """An entry for one of two files that belong together."""
    return Reader(
        f"IDX, {what}",
        ("idc_core.datasets.idx",),
        lambda folder: mnist(folder / "data") / file,
        content("mnist"),
        IDX,
        {"content": GZIP},
        damage.all_of,
        tries=1200,
    )


PUBLISHED = (
    idx("images", "t10k-images-idx3-ubyte.gz"),
    idx("labels", "t10k-labels-idx1-ubyte.gz"),
    archived("CIFAR-10", "cifar10", CIFAR_ZIP, CIFAR, "idc_core.datasets.cifar10", JPEG, 600),
    archived(
        "drive", "udacity", UDACITY_ZIP, DRIVE, "idc_core.datasets.udacity", JPEG | {"csv": crafted_texts.csv_text}, 600
    ),
    Reader(
        "drive, steering angles",
        ("idc_core.datasets.udacity",),
        zipped("udacity", UDACITY_ZIP, DRIVE, 0),
        content("udacity"),
        {"table": lambda content, random: one_member(content, "steering.csv", crafted_texts.csv_text, random)},
        {"table": MEMBERS},
        tries=360,
        flips=50,
    ),
    archived("newsgroups", "20newsgroups", NEWS_ZIP, NEWS, "idc_core.datasets.newsgroups", {}, 400, 8),
    Reader(
        "digits",
        ("idc_core.datasets.digits",),
        digits_file,
        read_digits,
        {
            "content": crafted_binaries.zipped(
                lambda inner, random: damage.anything(inner[:9000], random) + inner[9000:]
            )
        },
        {"content": GZIP},
        tries=12,
        flips=6,
    ),
    Reader(
        "downloads",
        ("idc_core.datasets.sources",),
        lambda folder: downloaded(folder) / "t10k-images-idx3-ubyte.gz",
        content("mnist"),
        IDX,
        heads=damage.all_of,
        tries=900,
    ),
    Reader(
        "downloads, checksums",
        ("idc_core.datasets.sources",),
        lambda folder: downloaded(folder) / _CHECKSUMS,
        content("mnist"),
        {"text": crafted_texts.csv_text},
        heads=damage.all_of,
        tries=900,
    ),
)


def one_member(content, name, change, random):
    """A zip file with one member changed."""
    members = crafted_arrays.unpacked(content)
    members[name] = change(members[name], random)
    return crafted_arrays.packed(members.items(), 0)
