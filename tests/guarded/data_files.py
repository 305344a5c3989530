"""The files that data sets are opened from."""

import gzip
import json
from functools import partial

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from idc_core.datasets.formats import format_of
from idc_core.datasets.preparation import Preparation
from tests.datasets.dataset_files import idx_bytes
from tests.datasets.dataset_files import picture as published_picture
from tests.guarded import crafted_arrays, crafted_binaries, crafted_texts, damage
from tests.guarded.own_files import ARCHIVED, FORGED, HEADER, TEXT, saved, written
from tests.guarded.reader import Reader

random = np.random.default_rng(0)
BYTES = random.integers(0, 256, (6, 4, 5), dtype=np.uint8)
CLASSES = np.array([0, 2, 1, 1, 0, 2])


def both(path):
    """The items of both splits."""
    read = format_of(path).read
    found = [read(path, Preparation(), split, None, None) for split in ("train", "test")]
    return [(one.inputs, one.targets, one.vocabulary, one.texts, one.class_names) for one in found]


def fitting(found):
    """Whether items are such as a data set takes."""
    return all(
        len(inputs) == len(targets) > 0
        and np.isfinite(inputs).all()
        and inputs.dtype in (np.float32, np.int64)
        and (inputs.ndim != 4 or (inputs.min() >= 0 and inputs.max() <= 1))
        and (targets.dtype == np.float32 or (targets.min() >= 0 and targets.max() < len(names)))
        and all(name.isprintable() and name.strip() for name in names)
        for inputs, targets, _, _, names in found
    )


def npy_pair(folder):
    """Write an array with its labels beside it."""
    np.save(folder / "data" / "y.npy", CLASSES)
    np.save(folder / "data" / "x.npy", BYTES)
    return folder / "data" / "x.npy"


ROWS = [{"width": place / 4, "text": f"word {place}", "label": "cat" if place % 2 else "dog"} for place in range(6)]
NUMBERED = "width,height,label\n" + "".join(f"{place / 4},-{place},{'ab'[place % 2]}\n" for place in range(6))


def parquet_table(folder, **settings):
    """Write texts with labels."""
    path = folder / "data" / "mine.parquet"
    parquet.write_table(pa.Table.from_pylist(ROWS), path, **settings)
    return path


def pictures(folder):
    """Write pictures as bytes in a table."""
    path = folder / "data" / "mine.parquet"
    image = [{"bytes": published_picture(8, place), "path": None} for place in range(4)]
    parquet.write_table(pa.table({"image": image, "label": [0, 1, 0, 1]}), path)
    return path


def named_pictures(folder):
    """Write a table that names pictures beside it."""
    for place in range(4):
        (folder / "data" / f"{place}.jpg").write_bytes(published_picture(8, place))
    text = "image,label\n" + "".join(f"{place}.jpg,{place % 2}\n" for place in range(4))
    return written("mine.csv", text)(folder)


def idx_pair(folder):
    """Write images with their labels beside them."""
    (folder / "data" / "labels.idx").write_bytes(idx_bytes(CLASSES))
    return written("images.idx", idx_bytes(BYTES))(folder)


def lines(change):
    """Change one of the records of a file, as `crafted_texts` does."""

    def craft(content, random):
        records = content.split(b"\n")
        place = random.randrange(len(records))
        records[place] = change(records[place], random)
        return b"\n".join(records)

    return craft


def table(what, prepare, modules, crafts, heads=damage.all_of, tries=300):
    """An entry for a table."""
    return Reader(
        f"data, {what}",
        tuple(f"idc_core.datasets.files.{module}" for module in (*modules, "tables")),
        prepare,
        both,
        crafts,
        dict.fromkeys(("damage", *crafts), TEXT),
        heads,
        tries=tries,
        flips=150,
        valid=fitting,
    )


ARRAYS = ("idc_core.datasets.files.arrays", "idc_core.datasets.other_files")

DATA = (
    Reader(
        "data, npz",
        ARRAYS,
        saved(np.savez, x_train=BYTES, y_train=CLASSES, x_test=BYTES[:2], y_test=CLASSES[:2]),
        both,
        ARCHIVED,
        FORGED,
        damage.zip_heads,
        tries=300,
        flips=60,
        valid=fitting,
    ),
    Reader(
        "data, npy",
        ARRAYS,
        npy_pair,
        both,
        {"headers": crafted_arrays.array},
        dict.fromkeys(("damage", "headers"), HEADER),
        tries=300,
        valid=fitting,
    ),
    table("numbers as CSV", written("mine.csv", NUMBERED), ("delimited",), {"cells": crafted_texts.csv_text}),
    table(
        "CSV, gzipped",
        written("mine.csv.gz", gzip.compress(NUMBERED.encode(), mtime=0)),
        ("delimited",),
        {"content": crafted_binaries.zipped(crafted_texts.csv_text)},
        tries=200,
    ),
    table("pictures that CSV names", named_pictures, ("table_pictures",), {"cells": crafted_texts.csv_text}, tries=150),
    table("JSON", written("mine.json", json.dumps(ROWS)), ("json_lines",), {"values": crafted_texts.json_text}),
    table(
        "JSON lines",
        written("mine.jsonl", "\n".join(map(json.dumps, ROWS))),
        ("json_lines",),
        {"values": lines(crafted_texts.json_text)},
        damage.ends,
    ),
    table("Parquet", parquet_table, ("parquet",), {}),
    table("Parquet, plain", partial(parquet_table, use_dictionary=False, compression="none"), ("parquet",), {}),
    table("Parquet, pictures", pictures, ("parquet", "table_pictures"), {}, damage.ends, 150),
    Reader(
        "data, IDX",
        ("idc_core.datasets.files.idx",),
        idx_pair,
        both,
        {"content": crafted_binaries.idx},
        dict.fromkeys(("damage", "content"), HEADER),
        tries=300,
        flips=60,
        valid=fitting,
    ),
)
