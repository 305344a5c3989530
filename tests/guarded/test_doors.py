"""Pipes, devices and files that ask for too much are refused at every door, in a sentence and within the memory."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.guarded.doors import DOORS, HEAVY, SPECIAL

ROOT = Path(__file__).resolve().parents[2]
MOST = 1_200_000_000
"""Bytes that the process may hold, the program with torch included."""

LONGEST = 1_000

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the child process measures itself as only Linux can"),
    pytest.mark.timeout(1800),
]

CASES = [f"{door}: {what}" for door in DOORS for what in SPECIAL] + list(HEAVY)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """What came of all cases, in one process."""
    work = tmp_path_factory.mktemp("doors")
    environment = {name: value for name, value in os.environ.items() if name not in ("IDC_SETUP", "IDC_FILES")}
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.guarded.doors", str(work)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-5000:]
    return json.loads((work / "report.json").read_text())


def test_all_are_tried(report):
    assert list(report) == CASES


@pytest.mark.parametrize("case", CASES)
def test_it_is_refused_in_a_sentence(report, case):
    said, _ = report[case]
    assert not said.startswith("!"), said
    assert 20 < len(said) < LONGEST
    assert said.strip().endswith(".")


def test_the_memory_stays_within_bounds(report):
    grown, before = {}, 0
    for case, (_, held) in report.items():
        grown[case], before = held - before, held
    del grown[next(iter(grown))]
    assert before < MOST, f"most of it by {max(grown, key=grown.get)}"
