"""Memory of comparing a suite of 100,000 inputs, measured in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LIMIT = 2 * 2**30
PROGRAM = """
import numpy as np
import torch
import idc_core as idc
from idc_core.datasets.dataset import Dataset
from idc_core.suites import compare_suites, make_suite, original

torch.set_num_threads(1)
digits = idc.load_dataset("digits")
rows = np.arange(50000) % len(digits)
many = Dataset(**{
    **vars(digits), "inputs": digits.inputs[rows], "targets": digits.targets[rows], "ids": np.arange(50000),
})
model = idc.load_model("lenet1-digits")
criterion = idc.IDC(model, "conv2", m=12).fit(idc.load_dataset("digits", split="train"))
suite = make_suite("noise", many)
assert len(suite) == 100000
result = compare_suites(model, [original(many), suite], criterion)
assert result.suites[1].inputs == 100000
with open("/proc/self/status") as status:
    print(next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM")))
"""


@pytest.mark.rare
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc, which Linux has")
def test_a_hundred_thousand_inputs_stay_within_two_gigabytes():
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=root, env=environment, capture_output=True, text=True, timeout=290
    )
    assert done.returncode == 0, done.stderr
    peak = int(done.stdout)
    assert peak < LIMIT, f"{peak / 2**20:.0f} MB"
    # The original half alone is 150 MB: anything less would mean that nothing was measured.
    assert peak > 50000 * 784 * 4
    sys.stdout.write(f"{peak / 2**20:.0f} MB\n")
