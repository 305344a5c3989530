"""The files of kept results, and of what a person says of them."""

import hashlib
import json
import struct
from dataclasses import replace

from idc_core import store
from idc_core.errors import DataError
from idc_core.guarded import open_sealed_text, seal_text
from idc_core.runs.importing import import_runs
from idc_core.store import documents, result_file
from idc_core.store.decisions import Decisions, decide, decided
from idc_core.tracing.traces import Traces
from tests.guarded import crafted_binaries, crafted_texts, damage
from tests.guarded.reader import AbsentError, Reader
from tests.store.test_values import RESULTS

FORGED = "the checksum is right: it finds damage, not forgery"
FACTS = store.Facts("sums", "0" * 16, "2026-01-01T00:00:00+00:00", 1.5, {"m": 6, "layer": "fc1"}, {"IDC": 0.4})
ID = "0" * 32


def result(folder):
    """A result with values of every kind."""
    path = folder / "home" / "results" / f"{ID}{result_file.ENDING}"
    path.parent.mkdir(parents=True, exist_ok=True)
    result_file.write(path, [one for place, one in enumerate(RESULTS) if place not in (2, 3, 6)], FACTS)
    return path


def read(path):
    """A result and its facts."""
    return store.read(path), store.read_facts(path)


def forged(content, random):
    """Another tree or other facts under a right checksum."""
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    texts = header["__metadata__"]
    which = random.choice(("tree", "facts"))
    texts[which] = crafted_texts.json_text(texts[which].encode(), random).decode(errors="replace")
    body = content[8 + length :]
    digest = hashlib.blake2b(digest_size=16)
    for name in ("facts", "tree"):
        digest.update(texts[name].encode(errors="replace"))
    for name in sorted(set(header) - {"__metadata__"}):
        one = header[name]
        kind = {"F32": "<f4", "F64": "<f8", "F16": "<f2", "I32": "<i4", "I64": "<i8", "BOOL": "|b1", "U8": "|u1"}
        digest.update(f"{name} {kind[one['dtype']]} {tuple(one['shape'])}".encode())
        first, last = one["data_offsets"]
        digest.update(body[first:last])
    texts["checksum"] = digest.hexdigest()
    written = json.dumps(header).encode()
    return struct.pack("<Q", len(written)) + written + body


def brought(folder):
    """Traces that came from another computer."""
    path = folder / "data" / f"{ID}{result_file.ENDING}"
    traces = next(one for one in RESULTS if isinstance(one, Traces))
    result_file.write(path, traces, replace(FACTS, kind="trace", settings={}, scores={}))
    return path


def imported(path):
    """The traces once they are among the results, from which they go again."""
    said = import_runs([path])
    if said.refused:
        raise DataError(said.refused[0])
    found = store.read(store.results_folder() / path.name)
    store.delete(ID)
    return found


def mark(folder):
    """A name and a pin."""
    store.mark(ID, store.Mark("best so far", pinned=True))
    return folder / "home" / "marks" / f"{ID}.json"


def marks(path):
    """What is said of the result."""
    documents._read.cache_clear()  # files change faster here than their times tell
    found = store.marks()
    if ID not in found:
        raise AbsentError("A damaged mark is as if it were not said.")
    return found[ID].name, found[ID].pinned


def decision(folder):
    """Decisions on a cell and on two inputs."""
    decide(ID, Decisions().on_cell("0-1", "later").on_inputs({"a" * 16: 3, "b" * 16: None}))
    return folder / "home" / "decisions" / f"{ID}.json"


def decisions(path):
    """What was decided."""
    documents._read.cache_clear()
    if (found := decided(ID)) == Decisions():
        raise AbsentError("Damaged decisions are as if nothing was decided.")
    return found.cells, found.inputs


def inner(content, random):
    """A document with other values under a right checksum."""
    return seal_text(crafted_texts.json_text(open_sealed_text(content, ""), random).decode(errors="replace"))


RESULT_FILES = (
    Reader(
        "kept results",
        ("idc_core.store.result_file", "idc_core.store.results"),
        result,
        read,
        {"tensors": crafted_binaries.safetensors, "values under a new checksum": forged},
        {"values under a new checksum": FORGED},
        damage.ends,
        tries=600,
        flips=300,
    ),
    Reader(
        "results from elsewhere",
        ("idc_core.runs.importing",),
        brought,
        imported,
        {"tensors": crafted_binaries.safetensors, "values under a new checksum": forged},
        {"values under a new checksum": FORGED},
        damage.ends,
        tries=300,
        flips=100,
    ),
    Reader(
        "names and pins of results",
        ("idc_core.store.marks",),
        mark,
        marks,
        {"text": crafted_texts.json_text, "values under a new checksum": inner},
        {"values under a new checksum": FORGED},
        damage.all_of,
        tries=300,
        flips=100,
    ),
    Reader(
        "decisions on cells",
        ("idc_core.store.decisions",),
        decision,
        decisions,
        {"text": crafted_texts.json_text, "values under a new checksum": inner},
        {"values under a new checksum": FORGED},
        damage.all_of,
        tries=300,
        flips=100,
    ),
)
