"""Results on disk: made once, found again, whole or absent, and never more than their limit."""

import multiprocessing
import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from idc_core import store
from idc_core.errors import CancelledError, DataError
from idc_core.store import result_file, versions

FORK = multiprocessing.get_context("fork")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    return tmp_path


def numbers(seed=0, size=1000):
    return np.random.default_rng(seed).normal(size=size)


def files(home):
    return sorted(path.name for path in (home / "results").glob("*"))


def test_the_same_is_made_once_and_read_again_as_it_was(home):
    made = []

    def make():
        made.append(1)
        return {"a": numbers(), "b": None}

    first = store.kept("sums", ("net", 3), make)
    again = store.kept("sums", ("net", 3), make)
    assert made == [1]
    assert np.array_equal(first["a"], again["a"])
    assert again["b"] is None
    assert not again["a"].flags.writeable
    assert [name.rpartition(".")[2] for name in files(home)] == ["safetensors"]


def test_another_key_kind_or_version_is_another_result(monkeypatch):
    places = {
        store.place(kind, key) for kind in ("a", "b") for key in ((1,), (1.5,), ("1",), (True,), (1, None), ((1,),))
    }
    assert len(places) == 12
    monkeypatch.setitem(versions._VERSIONS, "a", versions._OTHERS + 1)
    assert store.place("a", (1,)) not in places
    assert store.place("b", (1,)) in places


@pytest.mark.parametrize("key", [(object(),), (np.zeros(2),), ({1: [lambda: 1]},)])
def test_a_key_is_made_of_plain_values(key):
    with pytest.raises(store.UnkeptError):
        store.place("sums", key)


def test_a_damaged_file_is_made_again(home):
    store.kept("sums", (1,), numbers)
    (path,) = (home / "results").iterdir()
    whole = path.read_bytes()
    for place in [*range(0, 8), *range(8, len(whole), 331), len(whole) - 1]:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert store.find(path) is store.MISSING, place
    for end in (0, 7, 100, len(whole) - 1):
        path.write_bytes(whole[:end])
        assert store.find(path) is store.MISSING
    assert np.array_equal(store.kept("sums", (1,), numbers), numbers())
    assert np.array_equal(store.find(path), numbers())


def test_two_processes_that_ask_for_the_same_make_it_once(home):
    with FORK.Manager() as manager:
        made = manager.list()
        workers = [FORK.Process(target=_asked, args=(made,)) for _ in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert [worker.exitcode for worker in workers] == [0, 0, 0]
        assert sorted(made) == list(range(8))
    assert len(files(home)) == 8


def _asked(made):
    for key in range(8):
        found = store.kept("sums", (key,), lambda key=key: (made.append(key), numbers(key))[1])
        assert np.array_equal(found, numbers(key))


def test_whoever_waits_for_another_process_can_stop():
    """The other one is a thread here: a lock is one of the file, whoever holds it."""
    begun, ended = threading.Event(), threading.Event()

    def make():
        begun.set()
        ended.wait(30)
        return 1

    other = threading.Thread(target=store.kept, args=("sums", (1,), make))
    other.start()
    begun.wait(30)
    told = []
    with pytest.raises(CancelledError):
        store.kept("sums", (1,), lambda: 2, on_progress=lambda *state: bool(told.append(state)))
    ended.set()
    other.join()
    assert told == [(0, 0, "another process computes this")]
    assert store.kept("sums", (1,), lambda: 2) == 1


@pytest.mark.parametrize("step", range(9))
def test_whoever_is_killed_leaves_what_was_finished_and_no_more(home, step):
    """A process is killed at its n-th change of the disk."""
    store.kept("sums", (0,), numbers)
    child = FORK.Process(target=_killed_at, args=(step,))
    child.start()
    child.join()
    store.clean()
    assert not [name for name in files(home) if not name.endswith(".safetensors")]
    for path in (home / "results").glob("*.safetensors"):
        assert store.find(path) is not store.MISSING
    for key in range(3):
        assert np.array_equal(store.kept("sums", (key,), lambda key=key: numbers(key)), numbers(key))
    assert [name.rpartition(".")[2] for name in files(home)] == ["safetensors"] * 3


def _killed_at(step):
    left = [step]

    def counting(holder, name):
        call = getattr(holder, name)

        def counted(*given, **named):
            if not left[0]:
                os._exit(9)
            left[0] -= 1
            return call(*given, **named)

        setattr(holder, name, counted)

    for name in ("replace", "unlink", "mkdir"):
        counting(Path, name)
    counting(result_file, "save_file")
    for key in (1, 2):
        store.kept("sums", (key,), lambda key=key: numbers(key))
    os._exit(0)


@pytest.fixture
def one_mebibyte(home):
    (home / "config.toml").write_text("[limits]\nstore_mib = 1\n")


def test_what_was_used_longest_ago_goes_unless_it_is_pinned(home, one_mebibyte):
    def used(key, when):
        path = store.place("sums", (key,))
        os.utime(path, (when, when))
        return path

    for key in range(4):
        store.kept("sums", (key,), lambda: numbers(size=30_000))
    paths = [used(key, when) for key, when in enumerate((1, 2, 4, 3))]
    store.mark(paths[0].stem, store.Mark("the first", pinned=True))
    store.kept("sums", (4,), lambda: numbers(size=30_000))
    assert [path.exists() for path in paths] == [True, False, True, False]
    assert store.find(store.place("sums", (4,))) is not store.MISSING


def test_marks_are_kept_and_taken_back(home):
    id = "0" * 32
    store.mark(id, store.Mark("best <b>", pinned=True))
    assert store.marks() == {id: store.Mark("best <b>", pinned=True)}
    (home / "marks" / f"{id}.json").write_text("{}")
    assert store.marks() == {}
    store.mark(id, store.Mark())
    assert not list((home / "marks").iterdir())


def full_disk(*_, **__):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("trouble", ["full", "no folder"])
def test_without_room_the_result_comes_all_the_same_and_a_sentence_says_so(home, monkeypatch, trouble):
    if trouble == "full":
        monkeypatch.setattr(result_file, "save_file", full_disk)
    else:
        (home / "results").write_text("a file")
    told = []
    found = store.kept("sums", (1,), numbers, on_problem=told.append)
    assert np.array_equal(found, numbers())
    assert "cannot be kept" in str(told[0])
    assert "IDC_HOME" in str(told[0])
    assert not list(home.rglob("*.partial"))


def test_facts_are_read_without_the_arrays(home):
    store.kept("sums", (1,), numbers, settings={"m": 6}, scores=lambda found: {"mean": float(found.mean())})
    facts = store.read_facts(store.place("sums", (1,)))
    assert (facts.kind, facts.settings, facts.scores) == ("sums", {"m": 6}, {"mean": float(numbers().mean())})
    assert facts.seconds >= 0
    store.kept("sums", (2,), numbers, settings={"m": 6}, since=time.time() - 50)
    assert store.read_facts(store.place("sums", (2,))).seconds >= 50, "what was waited for before counts"
    (home / "other.safetensors").write_bytes(b"")
    with pytest.raises(DataError):
        store.read_facts(home / "other.safetensors")
