"""torch Datasets that are read item by item: small ones into memory, many pictures to disk."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset

from idc_core.datasets import DATASETS, gathered, load_dataset, streamed
from idc_core.datasets.registry import dataset
from idc_core.datasets.row_cache import RowCache
from idc_core.datasets.streamed import StreamedInputs
from idc_core.errors import DataError


class Pictures(Dataset):
    """Noise, as bytes or as floats; counts how often an item is asked for."""

    def __init__(self, kind, count=40):
        pixels = np.random.default_rng(0).integers(0, 256, (count, 3, 6, 5), np.uint8)
        self.pixels = torch.tensor(pixels if kind == "bytes" else pixels.astype(np.float32) / np.float32(256))
        self.asked = 0

    def __len__(self):
        return len(self.pixels)

    def __getitem__(self, place):
        self.asked += 1
        return self.pixels[place], place % 4


@pytest.fixture
def streams(monkeypatch, tmp_path):
    """More than a few pictures go to disk."""
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    monkeypatch.setattr(gathered, "IN_MEMORY", 5_000)
    monkeypatch.setattr(streamed, "IN_MEMORY", 5_000)
    return tmp_path / "pictures"


def read(given, split="test"):
    dataset("gathered", class_names="abcd")(lambda split: given)
    return load_dataset("gathered", split)


@pytest.mark.parametrize("kind", ["bytes", "floats"])
def test_pictures_on_disk_are_those_of_the_sequence(streams, kind):
    given = Pictures(kind)
    expected = given.pixels.numpy() / np.float32(255 if kind == "bytes" else 1)
    found = read(given)
    assert isinstance(found.inputs, StreamedInputs)
    np.testing.assert_array_equal(found.inputs, expected)
    np.testing.assert_array_equal(found.inputs[[7, 2]], expected[[7, 2]])
    np.testing.assert_array_equal(found.targets, np.arange(40) % 4)
    assert (found.inputs.min(), found.inputs.max()) == (expected.min(), expected.max())
    size = 40 * 90 * (1 if kind == "bytes" else 4)
    assert [one.stat().st_size for one in streams.glob("read-*/rows")] == [size]
    before = found.fingerprint
    assert read(Pictures(kind)).fingerprint == before
    given.pixels[3] = given.pixels[4]
    assert read(given).fingerprint != before
    del DATASETS["gathered"], found
    gc.collect()
    assert list(streams.iterdir()) == []


def test_little_stays_in_memory(tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    found = read(Pictures("bytes"))
    assert isinstance(found.inputs, np.ndarray)
    assert not (tmp_path / "pictures").exists()
    table = [(row, 0) for row in np.zeros((9, 4))]
    assert read(table).inputs.shape == (9, 4)


def test_what_the_disk_loses_is_read_again(streams):
    given = Pictures("floats")
    found = read(given)
    asked = given.asked
    (rows,) = streams.glob("read-*/rows")
    content = bytearray(rows.read_bytes())
    content[5 * 360] ^= 1
    rows.write_bytes(content)
    np.testing.assert_array_equal(found.inputs, given.pixels)
    assert given.asked == asked + 1
    rows.unlink()
    np.testing.assert_array_equal(found.inputs[[1, 2]], given.pixels[[1, 2]])
    given.pixels[9] += 0.001
    with pytest.raises(DataError, match="item 9 is another one than when it was read first"):
        np.asarray(found.inputs)


def changed(place, value):
    given = [(np.full((3, 6, 5), 0.5, np.float32), 1) for _ in range(40)]
    given[place] = value
    return given


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (changed(8, (np.full((3, 6, 5), np.nan), 0)), "item 8 has values that are not finite"),
        (changed(8, (np.zeros((3, 6, 4)), 0)), r"item 8 has the shape \(3, 6, 4\) and the first one \(3, 6, 5\)"),
        (changed(8, (np.zeros((3, 6, 5), np.uint8), 0)), "item 8 is of type uint8, unlike the first one"),
        (changed(8, np.zeros(3)), r"item 8 is a ndarray; expected \(input, target\)"),
        (changed(8, (np.zeros((3, 6, 5)), "cat")), "expected class numbers"),
        ([], "is empty"),
    ],
)
def test_mistakes_name_the_item_and_leave_nothing_on_disk(streams, given, said):
    with pytest.raises(DataError, match=said):
        read(given)
    gc.collect()
    assert not streams.exists() or list(streams.iterdir()) == []


def test_a_full_disk_is_one_sentence(streams, monkeypatch):
    monkeypatch.setattr("idc_core.datasets.row_cache._MOST", 100)
    with pytest.raises(DataError, match="40 pictures would take 14,400 bytes on disk"):
        read(Pictures("floats"))
    assert RowCache(streams, 1, 1).count == 1


LARGE = """
import torch
import idc_core as idc
from torch import nn
from torch.utils.data import Dataset

class Pictures(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, place):
        random = torch.Generator().manual_seed(place)
        return torch.rand(3, 14, 14, generator=random).repeat_interleave(16, 1).repeat_interleave(16, 2), place % 2

torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(3, 8, 8, 8), nn.ReLU(), nn.MaxPool2d(4), nn.Flatten(), nn.Linear(392, 16), nn.ReLU(), nn.Linear(16, 2)
)
idc.dataset("large")(lambda split: Pictures(3600 if split == "train" else 400))
train, test = (idc.load_dataset("large", split) for split in ("train", "test"))
assert train.inputs.nbytes + test.inputs.nbytes > 2.4e9
assert 0 < idc.analyze(net, train, test, "4", 3).score <= 1
print(next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) // 1024)
"""


@pytest.mark.rare
@pytest.mark.skipif(sys.platform != "linux", reason="the process measures itself as only Linux can")
def test_four_thousand_pictures_of_a_torch_dataset_take_a_third_of_their_size(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", LARGE],
        cwd=Path(__file__).resolve().parents[2],
        env={**os.environ, "IDC_HOME": str(tmp_path), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert not done.returncode, done.stderr[-3000:]
    assert int(done.stdout) < 800
    assert list((tmp_path / "pictures").iterdir()) == []
