"""Two Ray workers on this machine, of which one is killed; one on a GPU; a mistake; Stop; no cluster any more."""

import os

import pytest

from idc_core.base import devices
from idc_core.errors import CancelledError, DataError, EngineError, SettingError
from idc_core.work import EXECUTORS, ray_cluster
from idc_core.work.criteria import update_criteria
from tests.work.setups import (
    HEAD,
    MACHINE,
    TEST,
    ThreadsOfEachBlock,
    assert_equal,
    criteria,
    in_one_process,
    on_engine,
    worker_processes,
)

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install -r requirements-cluster.txt")

SOME = ("idc", "kmnc", "nlc")
"""Criteria with two rounds, with comparisons, with sums."""


@pytest.fixture(scope="module")
def engine():
    """One start of Ray for all tests of this file."""
    from ray.cluster_utils import Cluster

    in_one_process(SOME)
    made = Cluster(initialize_head=True, head_node_args={**MACHINE, **HEAD, "num_cpus": 2, "num_gpus": 1})
    try:
        ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
        with EXECUTORS["ray"].open("") as opened:
            yield opened
    finally:
        ray.shutdown()
        made.shutdown()


@pytest.mark.slow
def test_a_second_cluster_is_refused(engine):
    with pytest.raises(SettingError, match="leave the address out"):
        EXECUTORS["ray"].open("127.0.0.1:9")


@pytest.mark.slow
def test_every_worker_computes_with_one_thread(engine):
    assert engine.run(TEST, ThreadsOfEachBlock(), [(0, 9), (9, 18), (18, 27)]).joined().tolist() == [1, 1, 1]


def test_two_workers_of_which_one_is_killed_find_what_one_process_finds(engine):
    told, killed = [], []

    def kill(*now):
        told.append(now)
        if not killed and len(told) >= 10:
            for victim in worker_processes()[:1]:
                victim.kill()
                killed.append(victim.pid)

    assert_equal(on_engine(engine, SOME, on_progress=kill), SOME)
    assert killed
    assert killed[0] not in [one.pid for one in worker_processes()]
    assert told[-1][0] == told[-1][1] == 540
    assert "per worker" in told[-1][2]


def test_a_mistake_in_a_worker_is_told_as_it_is(engine):
    with pytest.raises(DataError, match="no dataset 'absent'"):
        update_criteria(engine, criteria(("nc",)), TEST.of("test", data="absent"))


def test_stop_ends_the_workers(engine):
    with pytest.raises(CancelledError):
        on_engine(engine, ("nc",), on_progress=lambda *_: False)
    assert [one for one in engine.workers.values() if one.job is not None] == []


def test_a_cluster_that_does_not_answer_ends_the_run(engine, monkeypatch):
    monkeypatch.setattr(ray_cluster, "_LOST_S", 0.5)
    monkeypatch.setattr(engine, "_head", ("127.0.0.1", 9))  # nothing listens there

    def short_runs():
        """Runs that are shorter than that, as those of a search."""
        for _ in range(1_000):
            update_criteria(engine, criteria(("nc",)), TEST)

    with pytest.raises(EngineError, match=r"cluster is lost: its head at 127\.0\.0\.1:9"):
        short_runs()


def test_gpus_that_come_later_change_nothing(engine, monkeypatch):
    monkeypatch.setenv(devices.VARIABLE, "auto")
    with monkeypatch.context() as before:
        before.setattr(engine.ray, "cluster_resources", lambda: {"CPU": 2.0})
        late = EXECUTORS["ray"].open("")
    late.hire()
    assert len(late.workers) == 2  # one per CPU, of the cluster whose one GPU is known by now
    late.close()


def test_a_worker_has_a_gpu_of_its_own_where_one_is_asked_for(engine, monkeypatch):
    engine.dismiss(list(engine.workers.values()))  # they would keep the CPUs
    monkeypatch.setenv(devices.VARIABLE, "auto")
    with EXECUTORS["ray"].open("") as on_gpus:
        assert_equal(on_engine(on_gpus, ("nc",)), ("nc",))
        (worker,) = on_gpus.workers.values()  # of two CPUs, and a GPU that is there for Ray alone
        names = (devices.VARIABLE, "CUDA_VISIBLE_DEVICES")
        seen = ray.get(worker.actor.__ray_call__.remote(lambda _: [os.environ.get(name) for name in names]))
    assert seen == ["auto", "0"]
