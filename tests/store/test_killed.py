"""Whoever is killed at any moment leaves whole results, and nothing that a clean-up would not remove."""

import contextlib
import io
import multiprocessing
import os
import random
import signal
import time

import numpy as np
import psutil
import pytest
import torch

from idc_core import library, runs, store
from idc_core.base.files import sweep_folder
from idc_core.cli import main
from idc_core.library import store as entries
from idc_core.library.contents import contents_folder

FORK = multiprocessing.get_context("fork")
SIZE = 300_000
KILLS = [pytest.param(5, marks=pytest.mark.slow), pytest.param(50, marks=pytest.mark.rare)]
"""The issue asks for fifty; five are enough to see a new mistake."""

MODEL = ("--model", "lenet5-digits")


def numbers(key):
    return np.full(SIZE, key, dtype=np.float64)


def _keep():
    for key in range(1000):
        store.kept("sums", (key % 40, os.getpid()), lambda key=key: numbers(key % 40))


def _upload():
    for number in range(1000):
        entry = library.add_upload(io.BytesIO(bytes([number % 7]) * 3_000_000), "digits.csv", "data")
        if number % 2:
            library.delete(entry.id)


def _command(*words):
    """Run a command as its own process would; the threads of this one are not there after a fork."""
    torch.set_num_threads(1)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert main(words) == 0


def _analyze():
    for m in range(1, 1000):
        _command("analyze", *MODEL, "--m", str(m % 12 + 1))
        _command("runs")


def _report(folder):
    for _ in range(1000):
        _command("report", *MODEL, "--out", str(folder / "report.html"), "--json", str(folder / "report.json"))


def kill(work, *arguments, after):
    """Have a process of its own work, and kill it after some seconds of its processor time."""
    child = FORK.Process(target=work, args=arguments)
    child.start()
    seen = psutil.Process(child.pid)
    while child.is_alive() and sum(seen.cpu_times()[:2]) < after:
        time.sleep(0.002)
    assert child.is_alive(), "the work failed before it was killed"
    os.kill(child.pid, signal.SIGKILL)
    child.join()


def left_in(folder):
    return {path.name: path for path in folder.rglob("*") if path.is_file()}


def analyses():
    """Return figures and cells of the kept analyses, by m."""
    folder = store.results_folder()
    files = {run.said("m"): (run.facts.scores, folder / f"{run.id}{store.ENDING}") for run in runs.find_runs()}
    return {m: (scores, store.read(path).assignments) for m, (scores, path) in files.items()}


@pytest.mark.parametrize("kills", KILLS)
@pytest.mark.parametrize("work", [_keep, _upload])
def test_killed_at_random_moments(tmp_path, monkeypatch, work, kills):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    moments = random.Random(0)
    whole: set[str] = set()
    for _ in range(kills):
        kill(work, after=moments.uniform(0.01, 0.12))
        store.clean()
        left = {name for name in left_in(tmp_path) if name != ".lock"}
        assert not [name for name in left if name.endswith((".partial", ".lock"))]
        assert whole <= left or work is _upload, "a finished result has gone"
        whole = {name for name in left if name.endswith(".safetensors")}
    for path in store.results_folder().glob("*.safetensors"):
        found = store.read(path)
        assert np.array_equal(found, numbers(found[0]))
    assert not library.ENTRIES.damaged()
    added = library.ENTRIES.listed().values()
    for entry in added:
        assert entry.path.exists() or "upload was interrupted" in library.remedy(entry)
    entries._clear()
    assert {path.name for path in contents_folder().glob("*")} <= {entry.content for entry in added}
    assert whole or list(contents_folder().glob("*")), "nothing was ever finished"


@pytest.mark.parametrize("kills", KILLS)
def test_killed_while_it_analyses(tmp_path, monkeypatch, kills):
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "home"))
    moments = random.Random(0)
    whole: dict[str, bytes] = {}
    for _ in range(kills):
        kill(_analyze, after=moments.uniform(0.1, 1.5))
        store.clean()
        left = left_in(tmp_path)
        assert not [name for name in left if name.endswith(".partial")]
        now = {name: path.read_bytes() for name, path in left.items() if name.endswith(".safetensors")}
        assert whole.items() <= now.items(), "a finished run has gone, or is another one"
        whole = now
        assert {run.id for run in runs.find_runs()} == {name.removesuffix(store.ENDING) for name in whole}
    assert whole, "nothing was ever finished"
    found = analyses()
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "undisturbed"))
    for m in found:
        _command("analyze", *MODEL, "--m", m)
    for m, (scores, cells) in analyses().items():
        assert found[m][0] == scores
        assert np.array_equal(found[m][1], cells)


@pytest.mark.rare
@pytest.mark.parametrize("kills", [5, 50])
def test_killed_while_it_writes_a_report(tmp_path, monkeypatch, kills):
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "home"))
    out = tmp_path / "reports"
    out.mkdir()
    begun = time.process_time()
    _command("report", *MODEL, "--out", str(out / "report.html"), "--json", str(out / "report.json"))
    usual = time.process_time() - begun
    whole = {name: path.read_bytes() for name, path in left_in(out).items()}
    moments = random.Random(0)
    for number in range(kills):
        if number % 2:  # half of them find a report, the others an empty folder
            for path in left_in(out).values():
                path.unlink()
        kill(_report, out, after=moments.uniform(0.1, 1.5 * usual))
        store.clean()
        sweep_folder(out)
        left = left_in(tmp_path)
        assert not [name for name in left if name.endswith((".partial", ".lock")) and name != "runs.lock"]
        assert {name: path.read_bytes() for name, path in left_in(out).items()}.items() <= whole.items()
    _command("report", *MODEL, "--out", str(out / "report.html"), "--json", str(out / "report.json"))
    assert {name: path.read_bytes() for name, path in left_in(out).items()} == whole
