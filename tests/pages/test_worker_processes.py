"""Work in other processes: the same results, what a worker tells, and what happens where one dies or cannot keep."""

import os
import signal
import time
from types import SimpleNamespace

import numpy as np
import pytest

from idc_core import store
from idc_core.base.progress import report
from idc_core.errors import CancelledError, DataError
from studio.jobs import jobs, tasks
from studio.jobs.jobs import JobKind, Shelf
from studio.jobs.results import open_view
from studio.jobs.workers import WorkerError
from studio.state.setup import DEFAULT

TRACE, SEARCHES = JobKind("trace"), JobKind("searches")
DATA, RETRAINING = JobKind("data", lives="everywhere"), JobKind("retraining", lives="server")


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """A shelf with two workers, for all tests here: each takes seconds to start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IDC_HOME", str(tmp_path_factory.mktemp("home")))
        one = Shelf(2)
        yield one
        one.end()


@pytest.fixture(autouse=True)
def everything_can_be_sent(caplog):
    yield
    assert "cannot be sent" not in caplog.text


@pytest.mark.slow
def test_a_view_is_the_same_by_a_worker(shelf, monkeypatch):
    here = open_view(DEFAULT)
    monkeypatch.setattr(jobs, "shelf", lambda: shelf)
    monkeypatch.setattr("studio.jobs.results.shelf", lambda: shelf)
    there = open_view(DEFAULT)
    assert not shelf._jobs["model"], "the network was opened here"
    np.testing.assert_array_equal(there.analysis.assignments, here.analysis.assignments)
    np.testing.assert_array_equal(there.train_traces.scores, here.train_traces.scores)

    def same(on_progress):
        return os.getpid(), there.test.fingerprint, len(there.test.inputs), float(there.model.fc1.bias.sum())

    pid, *seen = shelf.job(JobKind("scores"), "same", same).result()
    assert pid != os.getpid()
    assert seen == [here.test.fingerprint, len(here.test), pytest.approx(float(here.model.fc1.bias.sum()))]


def test_what_is_known_in_both_processes_comes_back_as_itself(shelf):
    data = shelf.job(DATA, "numbers", lambda on_progress: np.arange(5.0)).result()
    kept = shelf.job(TRACE, "numbers", lambda on_progress: np.arange(7.0)).result()
    found = shelf.job(RETRAINING, "sum", lambda on_progress: (data, kept, data.sum() + kept.sum())).result()
    assert found[0] is data
    assert found[1] is kept
    assert found[2] == 31


def test_a_worker_tells_how_far_it_is_and_what_there_is(shelf):
    def work(on_progress):
        for step in range(8):
            report(on_progress, step, 8, "steps")
            tasks.tell("so far", step)
            time.sleep(0.06)
        return "done"

    job = shelf.job(SEARCHES, "telling", work)
    assert job.result() == "done"
    assert (job.state.total, job.state.label) == (8, "steps")
    assert job.state.done > 0
    assert shelf.told("so far") == 7


def test_work_that_nobody_waits_for_stops_there(shelf, monkeypatch):
    monkeypatch.setattr(jobs, "_GRACE_S", 0.2)

    def endless(on_progress):
        while True:
            report(on_progress, 0, 1, "waiting")
            time.sleep(0.01)

    with pytest.raises(CancelledError, match="Stopped on request"):
        shelf.job(SEARCHES, "endless", endless).result()


def test_mistakes_come_as_they_are(shelf):
    def fail(on_progress):
        raise DataError("It is not there.")

    def break_down(on_progress):
        return {}["nothing"]

    with pytest.raises(DataError, match=r"^It is not there\.$"):
        shelf.job(TRACE, "fails", fail).result()
    with pytest.raises(KeyError, match="nothing") as caught:
        shelf.job(TRACE, "breaks", break_down).result()
    assert "break_down" in caught.value.__notes__[0]


def test_a_worker_that_is_killed_is_told_and_replaced_while_the_other_goes_on(shelf):
    def work(name, steps):
        def told(on_progress):
            tasks.tell(name, os.getpid())
            for step in range(steps):
                report(on_progress, step, steps, "steps")
                time.sleep(0.01)
            return name

        return told

    first = shelf.job(TRACE, "killed", work("killed", 10_000))
    other = shelf.job(TRACE, "goes on", work("goes on", 100))
    while shelf.told("killed") is None or shelf.told("goes on") is None:
        assert not first.wait(0.01)
        other.want()
    os.kill(shelf.told("killed"), signal.SIGKILL)
    with pytest.raises(WorkerError, match=r"ended without a result \(signal 9\)"):
        first.result()
    assert other.result() == "goes on"
    again = shelf.job(TRACE, "killed", work("again", 1))
    assert again is not first
    assert again.result() == "again"
    assert shelf.told("again") not in (os.getpid(), shelf.told("killed"))


def test_a_home_that_cannot_be_written_to_is_told_and_the_results_come_over_the_pipe(shelf):
    folder = store.results_folder()
    folder.rename(folder.with_name("away"))
    folder.write_text("no folder")
    try:
        assert shelf.job(TRACE, "unkept", lambda on_progress: np.arange(3)).result().tolist() == [0, 1, 2]
        assert "Results cannot be kept" in shelf.problem
        array = shelf.job(TRACE, "unkept", lambda on_progress: None).result()
        assert shelf.job(TRACE, "of it", lambda on_progress: int(array.sum())).result() == 3
    finally:
        folder.unlink()
        folder.with_name("away").rename(folder)


def test_what_a_worker_opens_otherwise_is_used_here(shelf, caplog):
    made = shelf.job(DATA, "drawn", lambda on_progress: SimpleNamespace(fingerprint=os.urandom(4).hex())).result()
    found = shelf.job(TRACE, "of drawn", lambda on_progress: (os.getpid(), made.fingerprint)).result()
    assert found == (os.getpid(), made.fingerprint)
    assert "is done by the server: A worker reads other data" in caplog.text


def test_what_cannot_be_sent_is_done_here(shelf, caplog):
    import threading

    lock = threading.Lock()

    def work(on_progress):
        with lock:
            return os.getpid()

    assert shelf.job(TRACE, "lock", work).result() == os.getpid()
    assert "cannot be sent to a worker" in caplog.text
    caplog.clear()


def test_what_work_needs_is_copied_where_it_was_removed_to_make_room(shelf, monkeypatch):
    needed = shelf.job(TRACE, "needed", lambda on_progress: np.arange(3)).result()
    path, place = store.place("trace", "needed"), store.place
    path.unlink()
    # This process looked just before.
    there = SimpleNamespace(exists=lambda: True)
    monkeypatch.setattr(store, "place", lambda kind, key: there if key == "needed" else place(kind, key))
    assert shelf.job(TRACE, "twice", lambda on_progress: needed * 2).result().tolist() == [0, 2, 4]
    assert not path.exists()


def test_a_result_that_is_removed_before_it_is_read_comes_over_the_pipe(shelf, monkeypatch):
    path = store.place("trace", "read late")
    monkeypatch.setattr(store, "find", lambda path: store.MISSING)
    assert shelf.job(TRACE, "read late", lambda on_progress: np.arange(4)).result().tolist() == [0, 1, 2, 3]
    assert path.exists(), "the worker keeps it"
