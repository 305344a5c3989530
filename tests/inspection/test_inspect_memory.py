"""Ten times the records take the same memory: blocks go by, and what is read again lies on disk."""

import subprocess
import sys

import pytest

MEASURED = """
import os, sys
import numpy as np, torch
torch.set_num_threads(1)
from idc_core.inspection import Speed, inspect
from tests.inspection.planted import Table, is_letter, noisy_table, texts

# What getrusage says counts the peak of the parent process, too.
peak = lambda: next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024
model = Table(noisy_table(9, 48))
arguments = [is_letter(4), is_letter(1, 2)], ["pearson", "iou", "logistic"], ["units"]
inspect(model, texts(200, 24), *arguments)
data = texts(int(sys.argv[1]), 24)
before = peak()
found = inspect(model, data, *arguments, passes=3, speed=Speed(memory=4 << 20))
assert len(found) == 2 * (2 * 48 + 1 + 48)
print(before, peak())
"""


def growth(records, home):
    """Megabytes that a run adds to the peak, beyond the data themselves."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(records)],
        capture_output=True,
        text=True,
        check=True,
        env={"IDC_HOME": str(home), "PYTHONPATH": ":".join(sys.path)},
    )
    before, after = map(float, done.stdout.split())
    return after - before, after


@pytest.mark.parametrize(
    "records", [pytest.param(2_200, marks=pytest.mark.slow), pytest.param(11_000, marks=pytest.mark.rare)]
)
def test_ten_times_the_records_take_the_same_memory(tmp_path, records):
    few, whole_few = growth(records, tmp_path)
    many, whole_many = growth(10 * records, tmp_path)
    assert whole_many <= 1.2 * whole_few
    assert many <= 1.2 * few + 16  # megabytes by which an allocator may differ
    assert not list(tmp_path.rglob("*.npy"))
