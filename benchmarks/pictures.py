"""A folder of pictures that no memory holds through a ResNet-50, by the command line, stopped once and continued.

    python -m benchmarks.pictures 50000 FOLDER

writes so many JPEG pictures of 224 x 224 into class folders of FOLDER, unless they are there, a fifth of them tests;
starts `analyze` on them, stops it after a fifth of the pass, and starts it again. It says when the first progress came,
the peak memory, and how often each picture was read. This file is the setup file of that command, too.
"""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn

import idc_core
from benchmarks.measure import held
from benchmarks.networks import resnet50, settle
from idc_core.datasets.pictures import _SURVEYED
from idc_core.tracing.trace import _DOING

SIZE, CLASSES = 224, 10
FOLDER = "BENCHMARKS_PICTURES"
"""Names the folder, in the environment of the command."""

READ = "read.txt"
"""A line per picture that was opened, in the folder."""

ANALYZE = ("-m", "idc_core", "analyze", "--setup", __file__, "--model", "benchmark-resnet50")


if FOLDER in os.environ:  # the command reads this as a setup file
    _folder = Path(os.environ[FOLDER])
    _read = (_folder / READ).open("a", buffering=1, encoding="utf-8")

    def _note(event: str, arguments: tuple[object, ...]) -> None:
        """Note the pictures that this process opens."""
        if event == "open" and str(arguments[0]).endswith(".jpg"):
            _read.write(f"{arguments[0]}\n")

    sys.addaudithook(_note)

    @idc_core.dataset("benchmark-pictures")
    def read(split: str) -> Path:
        """Say where the pictures lie."""
        return _folder

    @idc_core.network("benchmark-resnet50", data="benchmark-pictures", layer="features.19.steps.6")
    def build() -> nn.Module:
        """Draw a ResNet-50."""
        torch.manual_seed(0)
        return settle(resnet50())


def write(folder: Path, count: int) -> None:
    """Write so many pictures: noise of 28 x 28, enlarged."""

    def one(number: int) -> None:
        path = folder / ("test" if number % 5 == 4 else "train") / f"class {number // 5 % CLASSES}" / f"{number:06}.jpg"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            noise = np.random.default_rng(number).integers(0, 256, (28, 28, 3), np.uint8)
            unfinished = path.with_suffix(".part")
            Image.fromarray(noise).resize((SIZE, SIZE), Image.Resampling.BICUBIC).save(unfinished, "JPEG")
            unfinished.rename(path)

    with ThreadPoolExecutor() as pool:
        list(pool.map(one, range(count)))


@dataclass
class Watched:
    """What was seen of a command: seconds, peak bytes of its memory, progress as (seconds, label, done, total)."""

    seconds: float = 0.0
    peak: int = 0
    progress: list[tuple[float, str, int, int]] = field(default_factory=list)
    text: str = ""
    status: int = 0


def watch(folder: Path, stop_at: float | None) -> Watched:
    """Run the command on a terminal of its own; interrupt it at that share of the pass over training inputs."""
    ours, theirs = pty.openpty()
    began, found = time.monotonic(), Watched()
    environment = {**os.environ, FOLDER: str(folder), "COLUMNS": "200"}
    command = subprocess.Popen(
        [sys.executable, *ANALYZE], stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    )
    os.close(theirs)
    while True:
        ready, _, _ = select.select([ours], [], [], 0.1)
        try:
            said = os.read(ours, 1 << 16).decode("utf-8", "replace") if ready else ""
        except OSError:  # the terminal has gone with the command
            break
        found.seconds = time.monotonic() - began
        found.text = (found.text + said).rpartition("\x1b[K")[2]  # what stands behind the progress line
        for label, done, total in re.findall(r"\r\x1b\[K([^\r:]+): ([\d,]+) of ([\d,]+)", said):
            found.progress.append((found.seconds, label, _whole(done), _whole(total)))
        found.peak = max(found.peak, held("VmHWM:", command.pid))
        if stop_at is not None and found.progress and found.progress[-1][1] == _DOING:
            _, _, done, total = found.progress[-1]
            if done >= stop_at * total:
                command.send_signal(signal.SIGINT)
                stop_at = None
    found.status = command.wait()
    os.close(ours)
    return found


def _whole(text: str) -> int:
    return int(text.replace(",", ""))


def tell(what: str, found: Watched) -> None:
    """Print what was seen of a command."""
    firsts: dict[str, tuple[float, str, int, int]] = {}
    for one in found.progress:
        firsts.setdefault(one[1], one)
    print(f"{what}: {found.seconds:.0f} s, status {found.status}, peak {found.peak / 2**20:,.0f} MiB", flush=True)
    for seconds, label, done, total in firsts.values():
        print(f"  {label}: first said after {seconds:.1f} s, at {done:,} of {total:,}", flush=True)


def main(count: int, folder: Path) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has what it puts behind ignore interrupts
    write(folder, count)
    (folder / READ).unlink(missing_ok=True)
    tell("stopped", watch(folder, 0.2))
    before = Counter((folder / READ).read_text(encoding="utf-8").split("\n")[:-1])
    continued = watch(folder, None)
    tell("continued", continued)
    print(continued.text.replace("\r", "").strip())
    read = Counter((folder / READ).read_text(encoding="utf-8").split("\n")[:-1])
    print(f"pictures opened before the stop: {len(before):,}; in all: {len(read):,} of {count:,}")
    print(f"how often (the headers of {_SURVEYED:,} are read once more): {dict(Counter(read.values()))}")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]).resolve())
