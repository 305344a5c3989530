"""The files of the library: entries, and zipped folders that are unpacked into it."""

import dataclasses
import io

from idc_core import library
from idc_core.guarded import open_sealed_text, seal_text
from idc_core.library.adding import add_upload
from idc_core.models.formats import NETWORK_FORMATS, NetworkFormat
from idc_core.store import documents
from tests.guarded import crafted_arrays, crafted_texts, damage
from tests.guarded.own_files import MEMBERS
from tests.guarded.reader import Reader

MEMBERS_OF_FOLDER = [("config.json", b'{"classes": 3}'), ("inner/model.safetensors", bytes(range(200)))]


def entry(folder):
    """An entry with facts, settings and a check; its path."""
    whole = library.add_upload(io.BytesIO(b"a network"), "net.onnx", "network")
    facts = library.NetworkFacts("ONNX", 12, "0" * 16, "1 x 28 x 28", ("fc1", "fc2"), "fc1")
    settings = library.NetworkSettings("digits", "fc1", {"mean": [0.5]})
    library.replaced(whole, network=facts, network_settings=settings, check={"facts": [["a", "b"]]})
    return folder / "home" / "library" / "entries" / f"{whole.id}.json"


def plain_entry(path):
    """All that an entry says."""
    documents._read.cache_clear()  # files change faster here than their times tell
    return dataclasses.asdict(library.ENTRIES.find(path.stem))


def inner(content, random):
    """An entry with other values under a right checksum."""
    return seal_text(crafted_texts.json_text(open_sealed_text(content, ""), random).decode(errors="replace"))


def lawful(found):
    """Whether an entry leads nowhere outside the library."""
    return "/" not in found["content"] and ".." not in found["content"]


def zipped(folder):
    """A network's folder as a zip file."""
    path = folder / "data" / "net.zip"
    path.write_bytes(crafted_arrays.packed(MEMBERS_OF_FOLDER))
    return path


def unpacked(path):
    """Names and contents of what a zip file holds, once it was unpacked and removed again."""
    if "/" not in NETWORK_FORMATS:
        NETWORK_FORMATS["/"] = NetworkFormat("/", "folder", lambda path: None)  # type: ignore[arg-type]
    with path.open("rb") as stream:
        added = add_upload(stream, "net.zip", "network")
    files = (one for one in sorted(added.path.rglob("*")) if one.is_file())
    found = {str(one.relative_to(added.path)): one.read_bytes() for one in files}
    library.delete(added.id)
    return found


LIBRARY = (
    Reader(
        "entries of the library",
        ("idc_core.library.store",),
        entry,
        plain_entry,
        {"text": crafted_texts.json_text, "values under a new checksum": inner},
        {"values under a new checksum": "the checksum is right: it finds damage, not forgery"},
        damage.all_of,
        valid=lawful,
        tries=600,
        flips=300,
    ),
    Reader(
        "zipped folders",
        ("idc_core.library.contents",),
        zipped,
        unpacked,
        {"archive": crafted_arrays.archive},
        {"archive": MEMBERS},
        damage.zip_heads,
        tries=300,
        flips=100,
        special=False,
    ),
)
