"""Thousands of damaged and crafted copies of a good file of every kind: an error with a sentence, or an equal result.

Processes of their own read them (`fuzz.py`). IDC_FUZZ=10, as `make fuzz` sets it, reads 160 times as many;
IDC_FUZZ_SEED chooses others.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.guarded.fuzz import PROCESSES, READERS

ROOT = Path(__file__).resolve().parents[2]
EFFORT = int(os.environ.get("IDC_FUZZ", "1"))
SEED = os.environ.get("IDC_FUZZ_SEED", "0")
MOST_GROWN = 300 << 20

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="the child process measures itself as only POSIX can"),
    pytest.mark.timeout(1800 * EFFORT),
]


@pytest.fixture(scope="module")
def reports():
    """What came of all copies, by process; a folder with failing files stays where there are any."""
    return [tried([reader.name for reader in readers]) for readers in PROCESSES]


def tried(names):
    """Run a process that tries some readers, and return what it found."""
    work = Path(tempfile.mkdtemp(prefix="idc-fuzz-"))
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.guarded.fuzz", str(work), str(EFFORT), SEED, *names]
    # Arrow's own allocator reserves a gibibyte at once, which is all that the readings may take.
    environment = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        pytest.fail(
            f"The process ended with {done.returncode}, seed {SEED}; its files are in {work}.\n{done.stderr[-5000:]}"
        )
    found = json.loads((work / "report.json").read_text())
    if not (work / "failed").exists():
        shutil.rmtree(work)
    return found


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_only_an_error_or_an_equal_result_comes_out(reports, reader):
    (found,) = (report["readers"][reader.name] for report in reports if reader.name in report["readers"])
    assert not found["failures"], "\n".join(found["failures"])
    # Where nothing is refused, or nothing read, the copies try nothing.
    assert reader.mends or found["refused"] > 4
    # One copy in eight may hold none of the few that do no harm; that the good file is read is seen before them.
    assert EFFORT == 1 or found["equal"] + found["other"] > 0


def test_the_memory_of_the_process_stays_where_it_was(reports):
    for report in reports:
        most = max(report["readers"], key=lambda name: report["readers"][name]["grown"])
        assert report["grown"] < MOST_GROWN, f"most of it by {most}"


def test_nothing_is_written_outside_the_cache(reports):
    assert [report["left"] for report in reports] == [[]] * len(PROCESSES)
