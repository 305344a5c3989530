"""Memory of the whole method on full-size data, measured in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LIMIT = 600 * 2**20
PROGRAM = """
import sys
import torch
import idc_core as idc
from idc_core.models import MODELS
import idc_core.analysis.analysis, idc_core.datasets, idc_core.coverage

def memory(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field))

torch.set_num_threads(1)
torch.nn.Conv2d(1, 1, 3)(torch.zeros(1, 1, 8, 8)).sum().backward()
baseline = memory("VmRSS")
try:
    model = idc.load_model("lenet5-mnist")
except idc.IdcError:
    model = MODELS["lenet5-mnist"].build().eval()
train = idc.load_dataset("mnist", split="train")
criterion = idc.IDC(model, sys.argv[1], m=6).fit(train)
assert len(train) == 60000 and criterion.total >= 2**6
print(memory("VmHWM") - baseline)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc, which Linux has")
# The layer with most activations; all of the others take less.
@pytest.mark.parametrize(
    "layer", [pytest.param("conv1", marks=pytest.mark.slow), pytest.param("fc1", marks=pytest.mark.rare)]
)
def test_sixty_thousand_images_stay_within_the_limit(data_folder, layer):
    root = Path(__file__).parents[2]
    environment = {**os.environ, "IDC_DATA": str(data_folder), "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, layer], cwd=root, env=environment, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr
    peak = int(done.stdout)
    assert peak < LIMIT, f"{peak / 2**20:.0f} MB above the imports"
    # The images alone are 188 MB: anything less would mean that nothing was measured.
    assert peak > 60000 * 784 * 4
