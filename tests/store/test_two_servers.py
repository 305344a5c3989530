"""Two servers under load and a command line share one folder: nothing is lost, nothing is computed twice."""

import asyncio
import logging
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from idc_core import runs, store
from tests.store.sessions import ROOT, Session, free_ports, server

log = logging.getLogger("idc_core")

MODEL = "lenet5-digits"
CHOICES = [(layer, m) for m in range(1, 13) for layer in ("conv2", "fc1", "fc2")]
"""Layer and m that are asked for; everybody asks for the same at one time, for the next a little later."""

TURN_S = 3.0

ELSEWHERE = [("conv1", m) for m in (3, 4)]
"""Layer and m of the runs that are imported."""

SHOWING = ("coverage", "clusters", "neurons")
"""Pages that show the analysis of their address."""

PAGES = ("", "layers", "runs", *SHOWING)
SESSIONS = 4


class Watch(threading.Thread):
    """Looks at the folder of results all the time: how often each was written, and which have gone."""

    def __init__(self):
        super().__init__(daemon=True)
        self.written, self.gone, self._ended = Counter(), set(), threading.Event()

    def run(self):
        known = {}
        while not self._ended.wait(0.01):
            now = {}
            with suppress(FileNotFoundError), os.scandir(store.results_folder()) as entries:
                now = {one.name: one.inode() for one in entries if one.name.endswith(store.ENDING)}
            self.written.update(name for name, inode in now.items() if known.get(name) != inode)
            self.gone |= known.keys() - now.keys()
            known = now

    def end(self):
        self._ended.set()
        self.join()


class Asked:
    """What was asked for and has been answered, by whom, and what went wrong."""

    def __init__(self, seconds):
        self.begun, self.end = time.monotonic(), time.monotonic() + seconds
        self.analyses, self.by, self.errors = set(), Counter(), []

    def goes_on(self):
        return time.monotonic() < self.end

    def choice(self):
        return CHOICES[int((time.monotonic() - self.begun) / TURN_S) % len(CHOICES)]


async def visitor(number, port, asked):
    chance = random.Random(number)
    async with Session(port) as session:
        while asked.goes_on():
            page, (layer, m) = chance.choice(PAGES), asked.choice()
            await session.visit(page, f"model={MODEL}&layer={layer}&m={m}")
            asked.by[f"pages of server {number % 2 + 1}"] += 1
            if page in SHOWING:
                asked.analyses.add((layer, m))
            await asyncio.sleep(chance.uniform(0.2, 1.0))
        asked.errors += session.errors


def command(*words):
    done = subprocess.run(
        [sys.executable, "-m", "idc_core", *words], cwd=ROOT, capture_output=True, text=True, timeout=200
    )
    return "" if done.returncode == 0 else f"{words}: {done.returncode} {done.stderr}"


def analyze(layer, m):
    return command("analyze", "--model", MODEL, "--layer", layer, "--m", str(m))


def command_line(elsewhere, asked):
    while asked.goes_on():
        chosen = asked.choice()
        found = [analyze(*chosen), command("import-run", str(elsewhere)), command("runs", "--json")]
        asked.errors += [one for one in found if one]
        asked.analyses.add(chosen)
        asked.by["commands"] += len(found)


async def all_at_once(ports, elsewhere, asked):
    visitors = [visitor(number, ports[number % 2], asked) for number in range(SESSIONS)]
    await asyncio.gather(asyncio.to_thread(command_line, elsewhere, asked), *visitors)


@pytest.mark.parametrize(
    "seconds", [pytest.param(12, marks=pytest.mark.slow), pytest.param(120, marks=pytest.mark.rare)]
)
def test_two_servers_and_a_command_line(tmp_path, monkeypatch, seconds):
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "elsewhere"))
    assert not any(analyze(*one) for one in ELSEWHERE)
    elsewhere = shutil.copytree(store.results_folder(), tmp_path / "copied")
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "home"))
    ports, logs, watch = free_ports(2), [tmp_path / "first.txt", tmp_path / "second.txt"], Watch()
    watch.start()
    with server(ports[0], logs[0]), server(ports[1], logs[1]):
        asked = Asked(seconds)
        with ThreadPoolExecutor(1) as apart:  # a driven browser leaves its loop in the tests' own thread
            apart.submit(asyncio.run, all_at_once(ports, elsewhere, asked)).result()
    watch.end()
    assert not asked.errors
    assert not [one.read_text() for one in logs if "Traceback" in one.read_text()]
    found = [(run.said("layer"), int(run.said("m"))) for run in runs.find_runs("analysis")]
    log.info("%s; %s analyses asked for, %s results written", dict(asked.by), len(asked.analyses), len(watch.written))
    assert Counter(watch.written.values()).keys() <= {1}, "a result was computed twice"
    assert len(found) == len(set(found)), "a result was computed twice, under two names"
    assert not watch.gone
    assert asked.analyses | set(ELSEWHERE) <= set(found), "a result was lost"
    for path in store.results_folder().iterdir():
        if path.suffix == store.ENDING:
            store.read(path)  # refuses another checksum
    store.clean()
    assert {path.suffix for path in store.results_folder().iterdir()} == {store.ENDING}
