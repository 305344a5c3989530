"""The list of runs: made of the files' headers, and made anew where the index is gone, damaged or out of reach."""

import multiprocessing
from pathlib import Path

import pytest

from idc_core import store
from idc_core.errors import SettingError
from idc_core.runs import find_run, find_runs, index
from tests.runs.conftest import analysis, keep, remade

FORK = multiprocessing.get_context("fork")


def ids(**wanted):
    return {run.id for run in find_runs(**wanted)}


def test_runs_are_found_by_kind_network_and_words():
    first = keep((1,), layer="conv1")
    second = keep((2,), network="other", layer="fc2")
    store.kept("trace", (1,), lambda: 3)  # no run: nothing is said of it
    store.mark(second, store.Mark("Before the release", True))
    assert ids() == {first, second}
    assert ids(kind="analysis", network="other") == {second}
    assert ids(kind="searches") == set()
    assert ids(text="conv1") == {first}
    assert ids(text="RELEASE fc2") == {second}
    assert ids(text="release conv1") == set()
    found = find_run(second)
    assert (found.name, found.pinned, found.network, found.is_current) == ("Before the release", True, "Net", True)
    assert found.main[0].label == "IDC"
    assert found.main[1] == analysis().score
    with pytest.raises(SettingError, match="no such run"):
        find_run("0" * 32)


def test_the_newest_come_first_and_those_of_another_version_are_known_as_such():
    made = [keep((number,)) for number in range(3)]
    for id, day in zip(made, ("02", "03", "01"), strict=True):
        remade(
            id,
            made=f"2026-01-{day}T00:00:00+00:00",
            version="0" * 16
            if day == "01"
            else store.read_facts(store.results_folder() / f"{id}{store.ENDING}").version,
        )
    found = find_runs()
    assert [run.id for run in found] == [made[1], made[0], made[2]]
    assert [run.is_current for run in found] == [True, True, False]


def test_only_new_headers_are_read(monkeypatch):
    keep((1,))
    find_runs()
    asked = []
    read = index.read_facts
    monkeypatch.setattr(index, "read_facts", lambda path: (asked.append(path.stem), read(path))[1])
    find_runs()
    assert asked == []
    new = keep((2,))
    store.find(store.place("analysis", (1,)))  # using a result is no change
    find_runs()
    assert asked == [new]
    store.delete(new)
    assert new not in ids()
    assert asked == [new]


@pytest.mark.parametrize("harm", ["deleted", "cut", "changed", "text", "left a log", "seal lost"])
def test_an_index_that_is_gone_or_damaged_is_made_anew(home, harm):
    here = {keep((number,)) for number in range(3)}
    assert ids() == here
    file = home / "runs.duckdb"
    whole = file.read_bytes()
    if harm == "deleted":
        file.unlink()
    elif harm == "cut":
        file.write_bytes(whole[: len(whole) // 2])
    elif harm == "changed":
        file.write_bytes(whole[:9000] + b"\xff" * 5000 + whole[14000:])
    elif harm == "text":
        file.write_text("no database")
    elif harm == "left a log":
        Path(f"{file}.wal").write_bytes(b"half a log")
    else:
        (home / "runs.seal").unlink()
    assert ids() == here
    assert ids() == here
    assert file.read_bytes()[8:12] == b"DUCK"


def test_without_a_place_for_it_the_index_is_in_memory(home):
    here = {keep((1,))}
    (home / "runs.lock").mkdir()
    assert ids() == here
    assert not (home / "runs.duckdb").exists()


def test_a_damaged_result_is_left_out(home, caplog):
    here = keep((1,))
    (home / "results" / f"{'0' * 32}.safetensors").write_bytes(b"no result")
    assert ids() == {here}
    assert "not listed" in caplog.text


def test_two_processes_list_while_a_third_keeps(home):
    with FORK.Manager() as manager:
        seen = manager.list()
        readers = [FORK.Process(target=_list, args=(seen,)) for _ in range(2)]
        writer = FORK.Process(target=_keep)
        for one in (*readers, writer):
            one.start()
        for one in (*readers, writer):
            one.join(60)
        assert [one.exitcode for one in (*readers, writer)] == [0, 0, 0]
        assert max(seen) == 12, "both saw all, in the end"
    assert len(find_runs()) == 12
    assert not list(home.glob("*.wal"))


def _keep():
    for number in range(12):
        keep((number,))


def _list(seen):
    counts = []
    while not counts or counts[-1] < 12:
        counts.append(len(find_runs()))
    assert counts == sorted(counts), "no run is lost"
    seen.extend(counts)
