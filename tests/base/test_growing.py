"""Arrays that grow in memory or on disk: the same numbers, and nothing left behind."""

import errno
import gc
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from idc_core.analysis.analysis import analyze
from idc_core.base import growing
from idc_core.base.growing import GrowingArrays, ShelvedRows, give_back, row_blocks
from idc_core.coverage.idc import IDC
from idc_core.errors import CancelledError, DataError
from tests.analysis.test_layer_sweep import TESTS, TRAIN, network


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    return tmp_path


def open_files(folder):
    """Files in a folder that this process has open, with or without a name."""
    held = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            held.append(str(link.readlink()))
        except OSError:
            continue
    return [one for one in held if one.startswith(str(folder))]


def mapped_files(folder):
    return [line for line in Path("/proc/self/maps").read_text().splitlines() if str(folder) in line]


@pytest.mark.parametrize("most", [0, 100, 1 << 20])
def test_rows_come_back_as_they_went(home, most, monkeypatch):
    monkeypatch.setattr(growing, "_BLOCK", 64)
    parts = [np.arange(n * 6, dtype=np.float32).reshape(n, 2, 3) + n for n in (4, 0, 1, 30)]
    arrays = GrowingArrays(most)
    for part in parts:
        arrays.append("cubes", part)
        arrays.append("numbers", part[:, 0, 0].astype(np.float64))
    whole = np.concatenate(parts)
    assert np.array_equal(np.concatenate(list(arrays.blocks("cubes"))), whole)
    arrays.append("cubes", parts[0])  # a read in between does not harm
    found = arrays.joined("cubes")
    assert np.array_equal(found, np.concatenate([whole, parts[0]]))
    assert found.dtype == np.float32
    assert not found.flags.writeable
    assert np.array_equal(arrays.joined("numbers"), whole[:, 0, 0].astype(np.float64))
    assert isinstance(found, np.memmap) == (most < 1000)
    assert np.array_equal(np.concatenate([rows for _, rows in row_blocks(found)]), found)
    give_back(found)
    assert found[0, 1, 2] == parts[0][0, 1, 2]
    assert list(home.iterdir()) == []


def test_many_small_rows_lie_in_few_blocks(monkeypatch):
    monkeypatch.setattr(growing, "_BLOCK", 4096)
    arrays = GrowingArrays(1 << 20)
    for number in range(1000):
        arrays.append("rows", np.full((3, 4), number, np.float32))
    blocks = list(arrays.blocks("rows"))
    assert max(block.nbytes for block in blocks) <= 4096
    assert len(blocks) <= 1000 * 48 / 4096 + 10
    assert np.array_equal(np.concatenate(blocks)[:, 0], np.arange(3000) // 3)


@pytest.mark.parametrize("most", [0, 150, 1 << 20])
def test_shelved_rows_are_taken_once_in_any_order(home, monkeypatch, most):
    monkeypatch.setattr(growing, "config", lambda: SimpleNamespace(activations=most))
    parts = {name: [np.full((n, 5), 10 * name + n, np.float32) for n in (1, 0, 3)] for name in range(4)}
    shelf = ShelvedRows()
    for place in range(3):  # the parts of one name lie between those of others
        for name, own in parts.items():
            shelf.put(name, own[place])
    assert bool(open_files(home)) == (most < 1000)
    for name in (2, 0, 3, 1):
        assert name in shelf
        taken = list(shelf.take(name))
        assert [part.tolist() for part in taken] == [part.tolist() for part in parts[name]]
        assert name not in shelf
        assert list(shelf.take(name)) == []
        shelf.put("late", parts[name][2])
    assert np.array_equal(np.concatenate(list(shelf.take("late")))[:, 0], np.repeat([23, 3, 33, 13], 3))
    assert not open_files(home)  # everything is taken
    assert list(home.iterdir()) == []


def same(one, two):
    assert one.importance.tobytes() == two.importance.tobytes()
    assert one.important.tolist() == two.important.tolist()
    assert one.covered == two.covered
    for left, right in zip(one.clusters, two.clusters, strict=True):
        assert left.centroids.tobytes() == right.centroids.tobytes()
        assert left.boundaries.tobytes() == right.boundaries.tobytes()
        assert (left.silhouettes, left.inertia) == (right.silhouettes, right.inertia)


@pytest.mark.parametrize(
    ("layer", "options"), [("conv", {}), ("hidden", {"priority": "absolute"}), ("hidden", {"original": True})]
)
def test_results_are_equal_bit_for_bit_below_and_above_the_bound(home, layer, options):
    fitted = [
        IDC(network(), layer, 4, in_memory=most, **options).fit(TRAIN).update(TESTS["few"]) for most in (1 << 20, 0)
    ]
    same(*fitted)
    found = [analyze(network(), TRAIN, TESTS["few"], layer, 4, in_memory=most, **options) for most in (1 << 20, 0)]
    same(*found)
    for name in ("train_activations", "test_activations", "test_relevance"):
        assert getattr(found[0], name).tobytes() == getattr(found[1], name).tobytes()
    assert list(home.iterdir()) == []


def test_the_config_file_sets_the_bound(home):
    rows = np.zeros((300_000, 1), np.float32)
    for mebibytes, on_disk in ((2, False), (1, True)):
        (home / "config.toml").write_text(f"[limits]\nactivations_mib = {mebibytes}\n", encoding="utf-8")
        os.utime(home / "config.toml", ns=(mebibytes, mebibytes))
        arrays = GrowingArrays()
        arrays.append("rows", rows)
        assert isinstance(arrays.joined("rows"), np.memmap) == on_disk


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="Linux lists what a process has open")
def test_nothing_is_left_after_a_result_is_gone_and_after_a_stop(home):
    found = analyze(network(), TRAIN, TESTS["few"], "hidden", 4, in_memory=0)
    assert mapped_files(home)
    del found
    gc.collect()
    assert not mapped_files(home)
    seen = []

    def stop(done, total, label):
        seen.extend(open_files(home))
        return done < 100

    with pytest.raises(CancelledError):
        IDC(network(), "hidden", 4, batch_size=20, in_memory=0).fit(TRAIN, on_progress=stop)
    gc.collect()
    assert seen
    assert not open_files(home)
    assert list(home.iterdir()) == []


def test_a_full_disk_is_told_in_a_sentence(home, monkeypatch):
    def full(*_args, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(growing, "TemporaryFile", full)
    with pytest.raises(DataError, match=r"memory has no room for.*No space left.*IDC_HOME"):
        IDC(network(), "hidden", 4, in_memory=0).fit(TRAIN)
