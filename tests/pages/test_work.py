"""Jobs: computed once, shared, tried again after a failure, and stopped when nobody waits for them."""

import threading
import time
from concurrent.futures import Future
from dataclasses import replace

import pytest

from idc_core.base import progress
from idc_core.base.progress import report
from idc_core.base.threads import _NUMPY
from idc_core.errors import CancelledError, DataError
from studio.jobs import jobs
from studio.jobs.jobs import JobKind, Shelf
from studio.jobs.results import _load_model, prepare_process
from tests.waiting import wait_until

TRACE = JobKind("trace")
DATA, MODEL = (JobKind(name, lives="everywhere", is_light=True) for name in ("data", "model"))


def until(condition) -> None:
    """Wait for something that another thread does."""
    assert wait_until(condition, 0.01), "nothing is done any more"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    return tmp_path


def test_a_result_is_computed_once_and_shared():
    shelf, calls = Shelf(), []

    def compute(on_progress):
        calls.append(1)
        return [len(calls)]

    first, second = (shelf.job(TRACE, "key", compute) for _ in range(2))
    assert first.result() is second.result()
    assert len(calls) == 1
    assert shelf.job(TRACE, "other key", compute).result() == [2]


def test_a_result_is_found_by_another_server_and_waits_for_no_work():
    first = Shelf()
    assert first.finished(TRACE, "key") is None
    first.job(TRACE, "key", lambda on_progress: ["kept"]).result()
    after, busy = Shelf(), threading.Event()
    after.job(JobKind("analysis"), "long", lambda on_progress: busy.wait(20))
    try:
        assert after.job(TRACE, "key", lambda on_progress: pytest.fail("it is kept")).result() == ["kept"]
        assert Shelf().finished(TRACE, "key").result() == ["kept"]
    finally:
        busy.set()


def test_what_lives_in_one_process_is_not_kept(home):
    first = Shelf()
    first.job(MODEL, "key", lambda on_progress: object()).result()
    assert Shelf().finished(MODEL, "key") is None
    assert not (home / "results").exists()


def test_a_damaged_result_is_made_again_by_the_engine(home):
    Shelf().job(TRACE, "key", lambda on_progress: 1).result()
    (path,) = (home / "results").glob("*.safetensors")
    path.write_bytes(path.read_bytes()[:-1] + b"#")

    def compute(on_progress):
        return threading.current_thread().name

    assert Shelf().job(TRACE, "key", compute).result().startswith("engine")


def test_a_home_that_cannot_be_written_to_is_told_and_the_results_come(home):
    (home / "results").write_text("no folder")
    shelf = Shelf()
    assert shelf.job(TRACE, "key", lambda on_progress: 1).result() == 1
    assert "Results cannot be kept" in shelf.problem


def test_a_failure_is_told_and_then_tried_again():
    shelf = Shelf()

    def fail(on_progress):
        raise DataError("It is not there.")

    with pytest.raises(DataError, match="not there"):
        shelf.job(DATA, "key", fail).result()
    assert shelf.job(DATA, "key", lambda on_progress: 7).result() == 7


def test_only_the_results_used_last_are_kept():
    shelf, calls = Shelf(), []

    def compute(number):
        return lambda on_progress: calls.append(number) or number

    def result(number):
        return shelf.job(replace(MODEL, kept=4), number, compute(number)).result()

    assert [result(number) for number in (0, 1, 2, 3, 0, 4, 0)] == [0, 1, 2, 3, 0, 4, 0]
    assert calls == [0, 1, 2, 3, 4]
    result(1)
    assert calls == [0, 1, 2, 3, 4, 1]


def test_work_that_nobody_waits_for_stops(monkeypatch):
    monkeypatch.setattr(jobs, "_GRACE_S", 0.1)
    shelf, steps = Shelf(), []

    def endless(on_progress):
        for step in range(10_000):
            report(on_progress, step, 10_000, "steps")
            steps.append(step)
            time.sleep(0.005)

    job = shelf.job(TRACE, "key", endless)
    for _ in range(10):
        assert not job.wait(0.05), "work that is waited for goes on"
    until(lambda: job.dead)
    with pytest.raises(CancelledError):
        job.result()
    assert 0 < len(steps) < 10_000
    assert job.state.label == "steps"
    assert job.state.total == 10_000


def test_two_pieces_of_work_never_run_at_once():
    shelf, running, most = Shelf(), [0], [0]
    lock = threading.Lock()

    def compute(on_progress):
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        time.sleep(0.02)
        with lock:
            running[0] -= 1

    for job in [shelf.job(JobKind("analysis"), number, compute) for number in range(5)]:
        job.result()
    assert most == [1]


def test_files_are_read_while_the_engine_works():
    shelf, read = Shelf(), threading.Event()
    waiting = shelf.job(MODEL, "key", lambda on_progress: read.wait(20))
    shelf.job(DATA, "key", lambda on_progress: read.set())
    assert waiting.result(), "reading waited for the network"


def test_what_was_begun_is_not_tried_again_where_it_failed(monkeypatch):
    shelf, calls = Shelf(), []
    monkeypatch.setattr(jobs, "shelf", lambda: shelf)

    def fail(on_progress):
        calls.append(1)
        raise DataError("It is not there.")

    waiting = jobs.Waiting(1)
    waiting.begin(DATA, "key", fail)
    with pytest.raises(DataError, match="not there"):
        waiting.get(DATA, "key", "reading", fail)
    assert calls == [1]
    with pytest.raises(DataError, match="not there"):
        waiting.get(DATA, "key", "reading", fail)
    assert calls == [1, 1], "a later request tries again"


def test_what_was_begun_is_kept_alive_by_waiting_for_something_else(monkeypatch):
    shelf = Shelf()
    monkeypatch.setattr(jobs, "shelf", lambda: shelf)
    monkeypatch.setattr(jobs, "_GRACE_S", 0.6)
    monkeypatch.setattr(jobs, "_POLL_S", 0.05)
    engine, steps = threading.Event(), []

    def read(on_progress):
        for step in range(30):
            report(on_progress, step, 30, "files")
            steps.append(step)
            time.sleep(0.05)
        engine.set()

    waiting = jobs.Waiting(2)
    waiting.begin(DATA, "key", read)
    waiting.get(MODEL, "key", "loading", lambda on_progress: engine.wait(20))
    assert len(steps) == 30


def test_a_network_is_loaded_with_few_threads_for_numpy():
    """Threads that wait for each other by spinning take seconds where other work uses the cores too."""
    import os

    import numpy as np
    from threadpoolctl import threadpool_info, threadpool_limits

    assert np.ones((2, 2)).dot(np.ones((2, 2))).sum() == 8
    cores = os.cpu_count() or 1
    prepare_process.cache_clear()  # once a server is enough; here other tests may have been first
    with threadpool_limits(cores, user_api="blas"):
        _load_model("lenet5-digits", "cpu")
        held = [one["num_threads"] for one in threadpool_info() if "numpy" in one["filepath"]]
    assert held
    assert max(held) == int(os.environ[_NUMPY]) <= max(1, cores // 4)


def test_the_time_left_follows_from_the_pace_of_the_present_part(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    seen = []

    class AtOnce:
        def begin(self, report):
            for at, done, total, label in (
                (1.0, 0, 100, "inputs"),
                (3.0, 10, 100, "inputs"),
                (11.0, 50, 100, "inputs"),
                (12.0, 0, 10, "neurons"),
                (132.0, 4, 10, "neurons"),
            ):
                clock[0] = at
                report(done, total, label)
                seen.append(self.job.left_s)
            return Future()

    pool = AtOnce()
    pool.job = jobs.Job.__new__(jobs.Job)
    pool.job.__init__(pool.begin)
    assert seen == [None, None, 10.0, None, 180.0]
    assert [progress.said(3, 9, one) for one in (None, 4.0, 44.0, 180.0, 7200.0)] == [
        ": 3 of 9",
        ": 3 of 9, a few seconds left",
        ": 3 of 9, about 40 s left",
        ": 3 of 9, about 3 min left",
        ": 3 of 9, about 2 h left",
    ]
