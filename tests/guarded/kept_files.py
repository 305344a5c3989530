"""The files that this project writes and reads again: suites, notes, checks, and everything in the cache."""

import json

import numpy as np
import plotly.graph_objects as go
import torch

from idc_core.analysis.overview import Overview, TrainingReach
from idc_core.coverage.cell_table import CellTable
from idc_core.errors import DataError
from idc_core.evidence.finding import Control, Finding
from idc_core.experiments.retraining_results import RetrainedNetwork
from idc_core.gate import read_gate
from idc_core.gate.baseline import read_baseline
from idc_core.guarded import seal_text, seal_zip
from idc_core.inspection import inspect
from idc_core.inspection.blocks import BlockStore
from idc_core.inspection.database import database, keep
from idc_core.store import cache, documents, notes, reports
from idc_core.stories import page_file
from idc_core.stories import story as stories
from idc_core.stories.drawing import large
from idc_core.suites import open_saved, save_suite, saved_suites
from idc_core.suites.attacked import cached_block
from tests.guarded import crafted_arrays, crafted_texts, damage
from tests.guarded.network_files import build
from tests.guarded.own_files import ARCHIVED, CLASSES, MEMBERS, PICTURED, PICTURES, TEXT, of_suite, written
from tests.guarded.reader import AbsentError, Reader
from tests.inspection.planted import Table, is_letter, noisy_table, texts

FORGED = "the checksum is right: it finds damage, not forgery"
torch.set_num_threads(1)


def suite(folder):
    """A saved suite."""
    return save_suite("Mine", PICTURES, CLASSES, like=PICTURED)


def read_suite(path):
    """The tests of a saved suite."""
    documents._read.cache_clear()
    return of_suite(open_saved(path.stem))


def listed(path):
    """What the list says of a saved suite; absent where it does not."""
    documents._read.cache_clear()
    found = saved_suites()
    if path.stem not in found:
        raise AbsentError("it is not in the list")
    return found[path.stem]


def note(folder):
    """A note about a test."""
    return notes.NOTES.path(notes.write_note("Odd", "test 3", "LeNet-5", {"input": "3"}).name)


def read_note(path):
    """What the list says of a note; why there is none where it does not."""
    documents._read.cache_clear()  # files change faster here than their times tell
    found = {one.name: one for one in notes.kept_notes()}
    if path.stem in found:
        return found[path.stem]
    raise DataError(notes.NOTES.damaged().get(path.stem, "it is not in the list"))


def made_report(folder):
    """What is kept of a report that was made."""
    reports.note_report(reports.MadeReport({"m": "5"}, "LeNet-5", "2026-11-27"))
    return reports.REPORTS.path(*reports.REPORTS.listed())


def read_report(path):
    """A report that was made, as it is found."""
    documents._read.cache_clear()
    return reports.REPORTS.find(path.stem)


def told():
    """A story of one slide with a chart."""
    drawing = large(go.Figure(go.Bar(x=[1.0, 2.5], y=["a", "b"]), {"title": {"text": "T"}}))
    slide = stories.Slide("A says 2.5.", "clusters", {"m": "3"}, "LeNet", dict.fromkeys(stories.THEMES, drawing))
    return stories.Story("Mine", (slide,))


def story(folder):
    """A kept story."""
    return stories.STORIES.path(stories.new_story(told()))


def read_story(path):
    """A kept story, as it is found."""
    documents._read.cache_clear()
    return stories.STORIES.find(path.stem)


def page_of_story(folder):
    """A story as a web page, without the library that draws it."""
    page = page_file.write_page(told())
    begin, end = page.index(b'<script type="application/gzip"'), page.rindex(b"<script>")
    (folder / "story.html").write_bytes(page[:begin] + page[end:])
    return folder / "story.html"


def values_of_page(content, random):
    """A page with another story."""
    begin = content.index(page_file._BEGIN.encode()) + len(page_file._BEGIN)
    end = content.index(page_file._END.encode(), begin)
    return content[:begin] + crafted_texts.json_text(content[begin:end], random) + content[end:]


def page_heads(content):
    """Where the story is in a page."""
    begin = content.index(page_file._BEGIN.encode())
    return set(range(begin, content.index(page_file._END.encode(), begin), 7))


def resealed(craft):
    """A craft of the content under a checksum, which is made anew."""

    def change(content, random):
        # The checksum is the comment of the file: without it the content is a plain zip file.
        changed = craft(content, random)
        if changed[-22:-18] != b"PK\x05\x06" or changed[-2:] != b"\0\0":
            return changed
        return seal_zip(changed)

    return change


SEALED = {**ARCHIVED, **{f"{name} under a new checksum": resealed(craft) for name, craft in ARCHIVED.items()}}
RESEALED = {name: FORGED for name in SEALED if "new" in name}
WEIGHTS = {f"{name}.{part}": values.numpy() for name, layer in build().named_children() if hasattr(layer, "weight")
           for part, values in layer.state_dict().items()}  # fmt: skip
NETWORK = RetrainedNetwork(np.array([[0.5, 0.25], [0.75, 1.0]]), 3, PICTURES[:2], CLASSES[:2], WEIGHTS)


def network(folder):
    """A retrained network."""
    cache.ArrayFolder(folder / "home")["one"] = NETWORK.arrays()
    return folder / "home" / "one.npz"


def read_network(path):
    """Return a retrained network; absent where it is damaged."""
    held = cache.ArrayFolder(path.parent).get(path.stem)
    if held is None:
        raise AbsentError("the entry is damaged")
    return RetrainedNetwork.of(held)


def never():
    """Make something anew, which no test wants."""
    raise AbsentError("the entry is damaged")


def block(folder):
    """A block of attacked inputs."""
    cached_block(PICTURES, "key", lambda: PICTURES / 2)
    (path,) = (folder / "home" / "suites").glob("*.npz")
    return path


RECORD = {"score": 0.25, "names": ["a", "b"], "none": None, "inner": {"count": 3}}


def record(folder):
    """A record of finished work."""
    cache.stored("toy", {"seed": 1}, lambda: RECORD)
    (path,) = (folder / "home" / "runs" / "toy").glob("*.json")
    return path


def inner_json(content, random):
    """Other JSON under a new checksum."""
    inner = json.dumps(json.loads(content)["content"]).encode()
    return seal_text(crafted_texts.json_text(inner, random).decode("utf-8", "replace"))


STORES = []
"""Stores of blocks, which end with the process."""


def blocks(folder):
    """A store of blocks on disk."""
    STORES.append(BlockStore(0))
    STORES[-1].put(("key",), [torch.from_numpy(PICTURES)])
    (path,) = folder.rglob("0-0.npy")
    return path


def database_file(folder):
    """A database with one inspection."""
    found = inspect(Table(noisy_table(units=2)), texts(20), [is_letter(4)], ["pearson"], ["units"])
    keep(found, "first", folder / "home" / "inspection.duckdb")
    return folder / "home" / "inspection.duckdb"


def asked(path):
    """What the database says of it."""
    for log in path.parent.glob("*.wal"):
        log.unlink()
    return [database(path).ask(f"SELECT * FROM {view}").rows for view in ("runs", "hypotheses", "units", "scores")][1:]


TABLE = CellTable(
    (2, 3), np.array([[0, 1], [1, 2]], np.uint8), np.array([3, 1]), np.array([0, 1]), np.zeros((2, 0), np.int64)
)
REACH = TrainingReach(9, 3, ((1, 1),), (4,))
FOUND = Finding(
    "pair", "Tests of a", 3.0, Control("by chance", 0.5, 0.0, 2.0), 1.0, 3.0, 0.01, 0.0, 6, "", (("pair", "0-1"),)
)
PRINTS = ("a" * 16, "b" * 16, "c" * 16)
OVERVIEW = Overview(PRINTS, 4, 0.75, None, "fc1", 9, (5, 2), 0.25, 0.5, TABLE, REACH, (FOUND,), (2, 3), (0, 0, 1, 0))

GATE = """setup = "mine.py"
[[check]]
model = "net.onnx"
scaling = { mean = [0.5], factor = 255.0 }
preparation = { size = [8, 8], tokenizer = "words" }
[[check.limit]]
criterion = "kmnc"
parameters = { k = 10 }
at_least = 0.25
[[check.limit]]
kind = "confused-pairs"
"""
BASELINE = json.dumps(
    {"format": 1, "checks": {"a": {"settings": {"m": 6}, "facts": {}, "values": {"idc": 0.5, "pairs": [["1", "8"]]}}}}
)

KEPT = (
    Reader(
        "saved suites",
        ("idc_core.suites.saved_suites",),
        suite,
        read_suite,
        ARCHIVED | {"about": crafted_arrays.members({"json": crafted_texts.json_text})},
        dict.fromkeys((*ARCHIVED, "about"), MEMBERS),
        damage.zip_heads,
        tries=900,
        flips=200,
    ),
    Reader(
        "saved suites, list",
        ("idc_core.suites.saved_suites",),
        suite,
        listed,
        {"about": crafted_arrays.members({"json": crafted_texts.json_text})},
        {"about": MEMBERS},
        damage.zip_heads,
        tries=600,
        flips=100,
    ),
    Reader(
        "blocks of attacked inputs",
        ("idc_core.store.cache",),
        block,
        lambda path: cached_block(PICTURES, "key", never),
        SEALED,
        RESEALED,
        damage.zip_heads,
        tries=1200,
    ),
    Reader(
        "retrained networks",
        ("idc_core.store.cache", "idc_core.experiments.retraining_results"),
        network,
        read_network,
        SEALED,
        RESEALED,
        damage.zip_heads,
        tries=600,
        flips=200,
    ),
    Reader(
        "records of finished work",
        ("idc_core.store.cache", "idc_core.store.documents"),
        record,
        lambda path: cache.stored("toy", {"seed": 1}, never),
        {"values": crafted_texts.json_text, "values under a new checksum": inner_json},
        {"values under a new checksum": FORGED},
        damage.all_of,
        tries=1800,
    ),
    Reader(
        "blocks of an inspection",
        ("idc_core.inspection.blocks",),
        blocks,
        lambda path: STORES[-1].get(("key",)),
        heads=damage.all_of,
        tries=1800,
    ),
    Reader(
        "overview",
        ("idc_core.analysis.overview",),
        written("overview.json", OVERVIEW.to_json()),
        lambda path: Overview.from_json(path.read_text(encoding="utf-8", errors="replace")),
        {"values": crafted_texts.json_text},
        dict.fromkeys(("damage", "values"), TEXT),
        damage.all_of,
        tries=1800,
        special=False,
    ),
    Reader(
        "checks of a gate",
        ("idc_core.gate.settings",),
        written("idc.toml", GATE),
        read_gate,
        {"values": crafted_texts.toml_text},
        dict.fromkeys(("damage", "values"), TEXT),
        damage.all_of,
        tries=300,
        flips=100,
    ),
    Reader(
        "baseline of a gate",
        ("idc_core.gate.baseline",),
        written("idc-baseline.json", BASELINE),
        read_baseline,
        {"values": crafted_texts.json_text},
        dict.fromkeys(("damage", "values"), TEXT),
        damage.all_of,
        tries=300,
        flips=100,
    ),
    Reader(
        "notes",
        ("idc_core.store.notes",),
        note,
        read_note,
        {"values": crafted_texts.json_text},
        dict.fromkeys(("damage", "values"), TEXT),
        damage.all_of,
        tries=300,
        flips=100,
    ),
    Reader(
        "reports that were made",
        ("idc_core.store.reports",),
        made_report,
        read_report,
        {"values": crafted_texts.json_text, "values under a new checksum": inner_json},
        {"values under a new checksum": FORGED},
        damage.all_of,
        tries=300,
        flips=100,
    ),
    Reader(
        "stories",
        ("idc_core.stories.story",),
        story,
        read_story,
        {"values": crafted_texts.json_text, "values under a new checksum": inner_json},
        {"values under a new checksum": FORGED},
        damage.all_of,
        tries=300,
        flips=100,
    ),
    Reader(
        "pages of stories",
        ("idc_core.stories.page_file", "idc_core.stories.story"),
        page_of_story,
        lambda path: page_file.read_page(path.read_bytes(), path.name),
        {"values": values_of_page},
        dict.fromkeys(("damage", "values"), TEXT),
        heads=page_heads,
        tries=300,
        flips=100,
        special=False,
    ),
    Reader(
        "database of inspections",
        ("idc_core.sql.process", "idc_core.sql.database"),
        database_file,
        asked,
        heads=lambda content: {0, 8, 20, 4100, 8200, 12_300},
        tries=4,
        flips=1,
        special=False,
    ),
)
