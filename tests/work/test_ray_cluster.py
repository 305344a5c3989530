"""A cluster of two machines, simulated on this one: workers and machines that go, machines that come."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from idc_core.cli import main
from idc_core.work import EXECUTORS
from idc_core.work.criteria import update_criteria
from tests.work.setups import (
    BATCH,
    HEAD,
    MACHINE,
    TEST,
    assert_equal,
    assert_others_equal,
    assert_searches_equal,
    criteria,
    in_one_process,
    on_engine,
    search_settings,
    searched,
    worker_processes,
)

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install -r requirements-cluster.txt")
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("draws_put_back")]

SOME = ("idc", "kmnc", "lsc", "nlc")
"""Criteria with large states, with small ones, with two rounds."""
CALLS = 160
"""How often a run of `SOME` tells its progress, at least."""
WORKER_SEEDS, MACHINE_SEEDS = (19, 1, 3, 0, 12, 6), (1, 0)
"""Seeds whose moments lie early to late in a run, from the 12th call to the 147th: the moments of others are rare."""
HEAD_DIES = """
import psutil
from idc_core.work import EXECUTORS, ray_cluster
from idc_core.errors import EngineError
from tests.work.setups import on_engine

ray_cluster.LOST_S, calls = 3.0, []

def kill(*now):
    calls.append(now)
    if len(calls) == 8:
        [one.kill() for one in psutil.Process().children(recursive=True) if "gcs_server" in one.name()]

try:
    with EXECUTORS["ray"].open("") as engine:
        while len(calls) < 5_000:
            on_engine(engine, ("kmnc", "nlc"), on_progress=kill)
except EngineError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def cluster():
    """A machine with the driver and one more."""
    from ray.cluster_utils import Cluster

    in_one_process(SOME)
    soon = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 500, "health_check_failure_threshold": 4}
    made = Cluster(initialize_head=True, head_node_args={**MACHINE, **HEAD, "_system_config": soon})
    try:
        made.add_node(**MACHINE)
        ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


@pytest.fixture(scope="module")
def engine(cluster):
    with EXECUTORS["ray"].open("") as opened:
        yield opened


class At:
    """A progress callback that acts once, when it is called for this time and what it needs is there."""

    def __init__(self, number, act):
        self.number, self.act, self.calls, self.done = number, act, 0, False

    def __call__(self, *now):
        self.calls += 1
        if not self.done and self.calls >= self.number:
            self.done = self.act() is not False
        return True


def kill_a_worker(draw):
    """End a worker's process; False while there is none."""
    workers = worker_processes()
    if not workers:
        return False
    draw.choice(workers).kill()


def kill_the_other_machine(cluster):
    (node,) = [one for one in cluster.list_all_nodes() if not one.is_head()]
    cluster.remove_node(node, allow_graceful=False)


def both_used(engine):
    """Measure something small; whether two workers had a part in it."""
    told = []
    update_criteria(engine, criteria(("nc",)), TEST, batch_size=BATCH, on_progress=lambda *now: told.append(now[2]))
    each = [int(count) for count in told[-1].partition(": ")[2].rstrip(")").split(", ")]
    return len(each) == 2 and min(each) > 0


def test_two_machines_give_the_results_of_one_process(engine):
    assert_equal(on_engine(engine))
    assert_others_equal(engine)
    assert len(engine.workers) == 2


@pytest.mark.rare  # test_commands looks at the commands
def test_the_command_runs_on_the_cluster(engine, tmp_path):
    engine.dismiss(list(engine.workers.values()))  # they would keep the CPUs that the command's own need
    words = ["analyze", "--layer", "conv2", "--m", "3", "--fresh", "--json"]
    files = [tmp_path / "local.json", tmp_path / "ray.json"]
    for file, name in zip(files, ("local", "ray"), strict=True):
        assert main([*words, str(file), "--engine", name]) == 0
    here, there = (json.loads(file.read_text(encoding="utf-8")) for file in files)
    assert {**here, "seconds": None} == {**there, "seconds": None}


def test_a_machine_that_dies_loses_nothing_and_one_that_joins_is_used(cluster, engine):
    dies = At(90, lambda: kill_the_other_machine(cluster))
    assert_equal(on_engine(engine, SOME, on_progress=dies), SOME)
    assert dies.done
    cluster.add_node(**MACHINE)
    assert any(both_used(engine) for _ in range(200))  # the second one needs seconds to begin


def test_a_machine_that_joins_while_a_search_is_young_has_its_share(cluster, engine):
    kill_the_other_machine(cluster)
    settings, joined = search_settings(iterations=12, step=3.0), []

    def join(taken, *_):
        """Add a machine after the first step, and wait until its worker is there."""
        if taken >= 1 and not joined:
            joined.append(cluster.add_node(**MACHINE))
            while not (starting := [one.signal for one in engine.workers.values() if one.starting]):
                time.sleep(0.2)
                engine.hire()
            ray.wait(starting, timeout=60)

    assert_searches_equal(searched(engine, settings, on_progress=join), settings)
    homes = list(engine.homes.values())[-1]
    assert len(set(homes.values())) == 2


def at_any_moment(seeds, often):
    return pytest.mark.parametrize(
        "seed", [pytest.param(seed, marks=() if seed in often else pytest.mark.rare) for seed in range(seeds)]
    )


@at_any_moment(20, WORKER_SEEDS)
def test_a_worker_killed_at_any_moment_changes_nothing(engine, seed):
    draw = random.Random(seed)
    dies = At(draw.randrange(1, CALLS), lambda: kill_a_worker(draw))
    assert_equal(on_engine(engine, SOME, on_progress=dies), SOME)
    assert dies.done


@at_any_moment(3, (0, 1))
def test_a_worker_killed_in_a_search_changes_nothing(engine, seed):
    draw, settings = random.Random(seed), search_settings()
    dies = At(draw.randrange(1, 20), lambda: kill_a_worker(draw))
    assert_searches_equal(searched(engine, settings, on_progress=dies), settings)
    assert dies.done


@at_any_moment(5, MACHINE_SEEDS)
def test_a_machine_killed_at_any_moment_changes_nothing(cluster, engine, seed):
    dies = At(random.Random(seed).randrange(1, CALLS), lambda: kill_the_other_machine(cluster))
    try:
        assert_equal(on_engine(engine, SOME, on_progress=dies), SOME)
        assert dies.done
    finally:
        cluster.add_node(**MACHINE)


@pytest.mark.rare  # test_ray looks at a head that does not answer
def test_a_head_that_is_killed_ends_the_program_with_a_sentence():
    words, root = [sys.executable, "-c", HEAD_DIES], Path(__file__).parents[2]
    ended = subprocess.run(words, cwd=root, capture_output=True, text=True, timeout=120)
    assert ended.stdout.startswith("The Ray cluster is lost")
    assert ended.returncode == 0
