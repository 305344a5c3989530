"""Memory and time of fit on very many inputs.

MNIST repeated with noise made on the fly through LeNet-5: nothing is stored, each input follows from its number. Each
size runs in a process of its own. With `make bench` that is 100,000 and 1,000,000 inputs; others by

    python -m benchmarks.bench_memory 100000 1000000 10000000

which prints a line per size: seconds, processor time (which others on the machine lengthen little), peak memory of the
process, all in relation to the first size, time per input.
"""

import json
import subprocess
import sys
import time

import numpy as np
import torch

from benchmarks.measure import Row, few, held
from idc_core.coverage import IDC
from idc_core.datasets import load_dataset
from idc_core.models import load_model

SIZES = (100_000, 1_000_000)

WITHIN = 1.1
"""Memory and time per input of a larger size may be so many times those of the smallest."""

_TOGETHER = 640


class Noisy:
    """So many MNIST inputs, repeated, with noise that follows from an input's number: batches, in their order."""

    def __init__(self, count: int) -> None:
        self.count, self.pictures = count, torch.from_numpy(load_dataset("mnist", "train").inputs.copy())

    def __iter__(self):
        for start in range(0, self.count, _TOGETHER):
            numbers = torch.arange(start, min(start + _TOGETHER, self.count))
            noise = torch.randn(len(numbers), *self.pictures.shape[1:], generator=torch.Generator().manual_seed(start))
            yield (self.pictures[numbers % len(self.pictures)] + 0.1 * noise).clamp(0, 1)


def fitted(count: int) -> dict[str, float | str]:
    """Fit on so many inputs in this process."""
    torch.set_num_threads(1)
    model = load_model("lenet5-mnist")
    inputs = Noisy(count)
    IDC(model, "fc2").fit(iter(inputs.pictures[:2_000].split(500)))  # what is made once
    began, worked = time.perf_counter(), time.process_time()
    found = IDC(model, "fc2").fit(iter(inputs))
    return {
        "seconds": time.perf_counter() - began,
        "processor": time.process_time() - worked,
        "peak": float(held("VmHWM:")),
        "clusters": str([one.k for one in found.clusters]),
        "bounds": str(max((float(np.max(one.sketch.centroids)) for one in found.clusters if one.sketch), default=0)),
    }


def alone(count: int) -> dict[str, float]:
    """Fit on so many inputs in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.bench_memory", "--one", str(count)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def grown() -> list[Row]:
    """Compare time and memory of all sizes with those of the smallest."""
    sizes = [few(count) for count in SIZES]
    found = [alone(count) for count in sizes]
    first = found[0]
    return [
        Row(
            f"fit on {count:,} inputs",
            one["seconds"],
            f"as many times {sizes[0]:,}",
            first["seconds"] * count / sizes[0],
            at_most=WITHIN,
            note=f"one run; memory of the process {one['peak'] / first['peak']:.2f} times",
            memory=int(one["peak"]),
            memory_at_most=WITHIN * first["peak"],
        )
        for count, one in zip(sizes, found, strict=True)
    ]


def main(counts: list[int]) -> None:
    first = None
    for count in counts:
        found = alone(count)
        first = first or (count, found)
        slower, busier = (found[one] / count / (first[1][one] / first[0]) for one in ("seconds", "processor"))
        print(
            f"{count:,} inputs: {found['seconds']:.1f} s, per input {slower:.2f} times the first; processor "
            f"{found['processor']:.1f} s, {busier:.2f} times; peak {found['peak'] / 2**20:.0f} MiB, "
            f"{found['peak'] / first[1]['peak']:.2f} times; clusters "
            f"{found['clusters']}, centroids within {found['bounds']} of exact ones",
            flush=True,
        )


PARTS = {"fit on very many inputs": grown}

if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(fitted(int(sys.argv[2]))))
    else:
        main([int(count) for count in sys.argv[1:]])
