"""Files that expand to more memory than is allowed: refused before they do."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.datasets.files.reading import both, refusal

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def little(tmp_path, monkeypatch):
    """A limit of 16 MiB."""
    (tmp_path / "config.toml").write_text("[limits]\nmemory_mib = 16\n")
    monkeypatch.setenv("IDC_CONFIG", str(tmp_path / "config.toml"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def bombs(folder):
    """Write files that expand; yield their paths."""
    (folder / "it.csv.gz").write_bytes(gzip.compress(b"a,label\n" + b"1,0\n" * 5_000_000))
    yield folder / "it.csv.gz"
    (folder / "it.jsonl.gz").write_bytes(gzip.compress(b'{"a": 1, "label": 0}\n' * 2_000_000))
    yield folder / "it.jsonl.gz"
    (folder / "it.json").write_text("[" + "{}," * 400_000 + "{}]")
    yield folder / "it.json"
    numbers = pa.table({"a": np.zeros(10_000_000), "label": np.zeros(10_000_000, np.int8)})
    for number, settings in enumerate(({}, {"use_dictionary": False}, {"data_page_version": "2.0"})):
        parquet.write_table(numbers, folder / f"{number}.parquet", compression="zstd", **settings)
        yield folder / f"{number}.parquet"
    one = pa.DictionaryArray.from_arrays(np.zeros(1_000, np.int32), ["x " * 100_000])
    parquet.write_table(pa.table({"text": one, "label": np.arange(1_000) % 2}), folder / "texts.parquet")
    yield folder / "texts.parquet"
    (folder / "images").mkdir()
    (folder / "images" / "images.idx.gz").write_bytes(
        gzip.compress(b"\0\0\x08\x03" + bytes([0, 0, 100, 0]) + bytes([0, 0, 4, 0]) * 2 + bytes(20 << 20))
    )
    (folder / "images" / "labels.idx").write_bytes(b"\0\0\x08\x01\0\0\0\2\0\1")
    yield folder / "images"


@pytest.mark.slow
def test_what_expands_is_refused_by_the_limit(little):
    tried = 0
    for path in bombs(little):
        assert path.is_dir() or path.stat().st_size < 3 << 20
        assert "of memory; at most 16,777,216 are allowed" in refusal(path), path
        tried += 1
    assert tried == 8


def test_texts_written_as_differences_are_refused(tmp_path):
    table = pa.table({"text": ["a" * 50 + str(n) for n in range(20)], "label": [0, 1] * 10})
    parquet.write_table(
        table, tmp_path / "it.parquet", use_dictionary=False, column_encoding={"text": "DELTA_BYTE_ARRAY"}
    )
    assert "DELTA_BYTE_ARRAY" in refusal(tmp_path / "it.parquet")
    parquet.write_table(
        table, tmp_path / "it.parquet", use_dictionary=False, column_encoding={"text": "DELTA_LENGTH_BYTE_ARRAY"}
    )
    assert sorted(both(tmp_path / "it.parquet")[0].texts)[0] == "a" * 50 + "0"


WAYS = [
    {"compression": "gzip"},
    {"compression": "none"},
    {"data_page_version": "2.0"},
    {"write_statistics": False},
    {"use_dictionary": False},
    {"version": "1.0"},
    {"row_group_size": 7},
    {"data_page_size": 64},
    {"write_page_index": True},
]


@pytest.mark.parametrize("settings", WAYS)
def test_every_way_to_write_parquet_is_read(tmp_path, settings):
    table = pa.table({"a": np.arange(60) / 8, "b": pa.array([None if n == 5 else n for n in range(60)]),
                      "label": ["x", "y", "z"] * 20})  # fmt: skip
    parquet.write_table(table, tmp_path / "it.parquet", **settings)
    train, test = both(tmp_path / "it.parquet", inputs="a")
    found = np.sort(np.concatenate([train.inputs, test.inputs])[:, 0])
    np.testing.assert_array_equal(found, np.arange(60, dtype=np.float32) / 8)
    assert "has no value in row 6 (1 of 60 rows; columns 'b')" in refusal(tmp_path / "it.parquet")


def test_a_pickle_under_any_name_is_not_opened(tmp_path):
    import pickle

    class Trap:
        def __reduce__(self):
            return Path.touch, (tmp_path / "executed",)

    content = pickle.dumps(Trap())
    for ending in ("npz", "npy", "csv", "parquet", "json", "jsonl", "idx"):
        (tmp_path / f"x.{ending}").write_bytes(content)
        refusal(tmp_path / f"x.{ending}")
    np.savez(tmp_path / "x.npz", x=np.array([Trap()] * 4, object), y=np.arange(4))
    assert "Python objects, which are not read" in refusal(tmp_path / "x.npz")
    assert not (tmp_path / "executed").exists()


MEASURED = """
import json, sys
from multiprocessing import get_context
from pathlib import Path
from idc_core.datasets.formats import format_of
from idc_core.datasets.preparation import Preparation
from idc_core.errors import IdcError
import pyarrow.compute, pyarrow.csv, pyarrow.parquet

def peak():
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) >> 10

def read(path):
    before, said = peak(), ""
    try:
        format_of(path).read(path, Preparation(), "train", None, None)
    except IdcError as error:
        said = str(error)
    return path.name, (said, peak() - before)

with get_context("fork").Pool(1, maxtasksperchild=1) as processes:
    print(json.dumps(dict(processes.map(read, map(Path, sys.argv[1:]), chunksize=1))))
"""


def measured(folder):
    """What is said of every file, and the mebibytes that reading it took, in a process of its own."""
    command = [sys.executable, "-c", MEASURED, *map(str, sorted(folder.iterdir()))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the child process measures itself as only Linux can")
def test_the_worst_files_take_less_than_a_gigabyte(tmp_path):
    (tmp_path / "wide.csv").write_bytes(b"label," + b"a," * 1_000_000 + b"b\n" + b"1," * 1_000_000 + b"1,1\n")
    (tmp_path / "cells.csv").write_bytes(b"a,label\n" + b"1,0\n" * 16_000_000)
    (tmp_path / "texts.csv").write_bytes(b"text,label\n" + b"a b,0\nc,1\n" * 300_000)
    (tmp_path / "cells.csv.gz").write_bytes(gzip.compress(b"a,label\n" + b"1,0\n" * 140_000_000, 1))
    (tmp_path / "records.jsonl").write_bytes(b'{"text":"a","label":0}\n' * 200_000)
    found = measured(tmp_path)
    assert all(taken < 1024 for _, taken in found.values()), found
    assert "1,000,002 columns" in found["wide.csv"][0]
    assert "of memory; at most" in found["cells.csv.gz"][0]


@pytest.mark.parametrize("column", ["a", "text", "label"])
def test_texts_that_are_listed_once_are_counted_for_every_row(little, column):
    one = pa.DictionaryArray.from_arrays(np.zeros(50, np.int32), ["x" * 1_000_000])
    others = {"b": np.arange(50), "label": ["ash", "elm"] * 25}
    parquet.write_table(pa.table({**others, column: one}), little / "it.parquet", compression="zstd")
    assert (little / "it.parquet").stat().st_size < 10_000
    assert "a text for each row, would take 20" in refusal(little / "it.parquet")


def test_values_of_a_fixed_width_are_counted_by_it(little):
    wide = pa.array([b"x" * 500_000] * 50, pa.binary(500_000))
    parquet.write_table(pa.table({"a": wide, "label": [0, 1] * 25}), little / "it.parquet", compression="zstd")
    assert "a page of it once expanded would take" in refusal(little / "it.parquet")
