"""What all tests rely on: none leaves anything behind, their order can be drawn, and waits look for progress."""

import os
import random
import subprocess
import sys
import threading
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
import torch

from idc_core.work import EXECUTORS
from tests import process_state, waiting
from tests.process_state import REGISTRIES, ProcessState

ROOT = Path(__file__).parents[1]


def test_nothing_is_said_of_a_test_that_leaves_all_as_it_was():
    before = ProcessState()
    torch.rand(3)
    assert before.changed() == []


@pytest.mark.parametrize("module", ["random", "NumPy"])
def test_global_random_numbers_are_seen_and_put_back(module):
    before = ProcessState()
    draw = {"random": random.random, "NumPy": np.random.rand}[module]
    first = draw()
    assert before.changed() == [f"{module if module == 'NumPy' else 'random'}'s global generator was used or seeded"]
    assert draw() == first
    assert ProcessState().changed() == []


def test_every_test_begins_with_the_same_random_numbers_of_torch():
    ProcessState()
    first = torch.rand(3)
    ProcessState()
    assert torch.equal(torch.rand(3), first)


def test_an_environment_variable_is_seen(monkeypatch):
    before = ProcessState()
    monkeypatch.setenv("IDC_LEFT_BEHIND", "1")
    assert before.changed() == ["the environment's IDC_LEFT_BEHIND is '1'"]


def test_a_changed_entry_of_a_registry_is_seen(monkeypatch):
    before = ProcessState()
    monkeypatch.setitem(EXECUTORS, "local", EXECUTORS["ray"])
    monkeypatch.setitem(EXECUTORS, "toy", EXECUTORS["ray"])
    assert before.changed() == ["the registry EXECUTORS has other entries: ['local', 'toy']"]


def test_every_registry_of_the_plan_is_there():
    for name, module in REGISTRIES:
        assert hasattr(pytest.importorskip(module), name)
    assert len(REGISTRIES) > 25


def test_settings_of_torch_are_seen():
    before = ProcessState()
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(threads + 1)
        with torch.no_grad():
            (said,) = before.changed()
    finally:
        torch.set_num_threads(threads)
    assert f"{threads + 1} threads" in said
    assert "gradients False" in said


def test_a_thread_that_still_runs_is_seen(monkeypatch):
    monkeypatch.setattr(process_state, "ENDING_S", 0.0)
    before, end = ProcessState(), threading.Event()
    thread = threading.Thread(target=end.wait, name="left")
    thread.start()
    try:
        (said,) = before.changed()
    finally:
        end.set()
        thread.join()
    assert "left" in said
    assert before.changed() == []


@pytest.mark.slow
def test_an_order_is_drawn_from_a_number():
    files = ["tests/base/test_files.py", "tests/base/test_registry.py", "tests/store/test_notes.py"]
    asked = [sys.executable, "-m", "pytest", "--collect-only", *files, "--order"]
    told = [
        subprocess.run([*asked, seed], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for seed in ("1", "2")
    ]
    orders = [[line for line in one.splitlines() if "::" in line] for one in told]
    assert sorted(orders[0]) == sorted(orders[1])
    assert orders[0] != orders[1]
    for order in orders:
        assert len(list(groupby(order, lambda one: one.partition("::")[0]))) == len(files), "files stay together"


def test_a_wait_goes_on_as_long_as_something_is_computed(monkeypatch):
    clock, taken = [0.0], {(1, True): 0.0, (2, False): 0.0}
    monkeypatch.setattr(waiting.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(waiting, "_processor_times", lambda: dict(taken))
    progress = waiting.Progress()

    def ended(ours, browser):
        clock[0] += 50.0
        taken[1, True] += 50.0 * ours
        taken[2, False] += 50.0 * browser
        return progress.ended()

    assert not any(ended(0.05, 0.0) for _ in range(20)), "a worker computes"
    assert not any(ended(0.0, 0.3) for _ in range(20)), "the browser draws"
    assert [ended(0.001, 0.1), ended(0.001, 0.1)] == [False, True], "both only wait"


def test_a_wait_ends_with_what_is_waited_for():
    there = iter([False, False, True])
    assert waiting.wait_until(lambda: next(there), 0.0)


def test_processor_times_are_those_of_this_process_and_its_children():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert {one for one, _ in waiting._processor_times()} >= {os.getpid(), child.pid}
        child.kill()
