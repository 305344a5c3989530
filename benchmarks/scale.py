"""What 10^9 inputs would cost on many GPUs: a model, its measured constants, and a simulation that checks it.

`python -m benchmarks.scale` writes the tables of docs/SCALE.md from the constants that are kept in scale.json;
`python -m benchmarks.scale --measure` measures those of this machine anew first.
"""

import json
import math
import pickle
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from multiprocessing import Pipe
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from idc_core.clustering.sketch import CELLS, Sketch
from idc_core.clustering.sketched import SketchedPartitions
from idc_core.coverage.cells import CellCounts
from idc_core.coverage.moments import Moments
from idc_core.work.executor import MOST_BLOCKS
from idc_core.work.tree import _FAN_IN, Tree

KEPT = Path(__file__).with_name("scale.json")
PAGE = Path(__file__).parents[1] / "docs" / "SCALE.md"

INPUTS = 10**9
M = 6
GPUS = (8, 64, 512)

FLOPS = {"ResNet-50": 8.18e9, "ViT-L": 123.1e9}
"""Floating-point operations of one forward pass of a picture of 224 x 224: two per product."""

NEURONS = {"ResNet-50": 2048, "ViT-L": 1024}
"""Neurons of the layer before the scores."""

PEAK = {"A100": 19.5e12, "H100": 66.9e12}
"""float32 operations per second outside the tensor cores, from NVIDIA's data sheets: sums stay in whole float32."""

REACHED = 1261 * FLOPS["ResNet-50"] / 15.7e12
"""Share of a V100's 15.7e12 that ResNet-50 reached in float32: 1,261 pictures a second at a batch of 256."""

SHARE = {"learn": 1 / 3, "test": 0.8}
"""Speed of the passes beside the plain forward pass: the project's goals on a GPU, not measured."""

PICTURE = 3 * 224 * 224  # bytes of a picture as it is read
MERGING = 6
"""States that merging two of them takes beside: both tables of cells behind one another, sorted, and their sums."""

SKETCH = 40 * CELLS
"""Bytes of a sketch: number, count, sum and extremes of each cell."""

MERGES = Tree[object](MOST_BLOCKS).sizes[1:]
"""Merges of what blocks have found, level by level."""

NODE_GPUS, NODE_BYTES = 8, 25e9 / 8  # GPUs of a node, and bytes a second that reach it: 25 Gbit/s


@dataclass(frozen=True)
class Constants:
    """What was measured on one machine, on one core."""

    machine: str
    message: float  # seconds of the driver for a message on progress
    unpickled: float  # bytes of states read per second
    merged_cell: float  # seconds to merge two states, per covered cell of one
    merged_state: float  # seconds to merge two states without cells
    sketched_value: float  # seconds per value of a sketch of ten million values
    merged_sketch: float  # seconds to merge two sketches
    parted_sketch: float  # seconds to find the clusters of a sketch
    simulated_bytes: int  # of a worker's state in the simulation
    simulated_peak: int  # most bytes that merging 1,000 of them held
    simulated_held: int  # most states held at a time


@dataclass
class State:
    """What one worker has gathered: counted cells, relevance summed per neuron, moments of the important neurons."""

    cells: CellCounts
    importance: NDArray[np.float64]
    moments: Moments

    def merge(self, other: "State") -> "State":
        """Take in another worker's."""
        self.cells.merge(other.cells)
        self.importance += other.importance
        self.moments.merge(other.moments)
        return self

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return sum(
            part.nbytes
            for part in (self.cells.codes, self.cells.counts, self.importance, self.moments.mean, self.moments.scatter)
        )


def worker(seed: int, inputs: int = 2_000, neurons: int = 2048, m: int = M) -> State:
    """Return the state of a worker that saw random inputs, and one in every cell, so that none is smaller."""
    draw = np.random.default_rng(seed)
    active = draw.standard_normal((inputs, m))
    cells = CellCounts([4] * m).update(np.digitize(active, (-0.7, 0.0, 0.7)).astype(np.uint8))
    cells.update(_every_cell(4, m))
    _ = cells.codes  # counted now, as before it is sent
    return State(cells, draw.standard_normal(neurons), Moments().add(active))


def tree(states: Iterable[State], held: Callable[[int], None] = lambda number: None) -> State:
    """Merge states as they come, two of one size at a time, so that no more than log2 of their number are held.

    `held` is told how many there are.
    """
    waiting: list[tuple[int, State]] = []  # of 2^size workers each, the largest first
    for state in states:
        size = 0
        held(len(waiting) + 1)
        while waiting and waiting[-1][0] == size:
            state, size = waiting.pop()[1].merge(state), size + 1
        waiting.append((size, state))
    _, found = waiting.pop()
    while waiting:
        found = waiting.pop()[1].merge(found)
    return found


def most_held(workers: int) -> int:
    """Return how many states `tree` holds at most."""
    return workers.bit_length()


def tree_bytes(workers: int, size: int) -> int:
    """Return the bytes that merging states of a size holds: those that wait, and six more while two are merged."""
    return (most_held(workers) + MERGING) * size


def state_bytes(neurons: int, m: int, clusters: int = 4) -> int:
    """Return the bytes of a state in which every cell is covered."""
    return 16 * clusters**m + 8 * neurons + 8 * m * (m + 1)


def rate(network: str, gpu: str) -> float:
    """Return the forward passes per second of one GPU."""
    return REACHED * PEAK[gpu] / FLOPS[network]


def terms(measured: Constants, network: str, gpu: str, gpus: int, inputs: int = INPUTS) -> dict[str, float]:
    """Return the seconds that each part takes: so many inputs to learn from, and as many tests."""
    speed = gpus * rate(network, gpu)
    size = state_bytes(NEURONS[network], M)
    merging = measured.merged_state + 4**M * measured.merged_cell + size / measured.unpickled
    return {
        "learning": inputs / (speed * SHARE["learn"]),
        "tests": inputs / (speed * SHARE["test"]),
        "reading": 2 * inputs * PICTURE / (gpus / NODE_GPUS * NODE_BYTES),
        "clustering": M * (inputs / gpus * measured.sketched_value + _joined(measured, gpus) + measured.parted_sketch),
        "merging": math.ceil(math.log2(gpus)) * merging,
        "merging by the driver": gpus * merging,
    }


def _joined(measured: Constants, gpus: int) -> float:
    """Return the seconds in which the sketches of a neuron come together; workers share the merges of a level."""
    rounds = sum(math.ceil(merges / gpus) for merges in MERGES)
    return rounds * (_FAN_IN * SKETCH / NODE_BYTES + (_FAN_IN - 1) * measured.merged_sketch)


def whole(parts: dict[str, float]) -> float:
    """Return the seconds of all: reading goes on beside the passes; states are merged as a tree."""
    return max(parts["learning"] + parts["tests"], parts["reading"]) + parts["clustering"] + parts["merging"]


def most_workers(measured: Constants, a_second: float = 1.0) -> int:
    """Return the workers whose messages on progress, so many a second each, fill the driver's time."""
    return int(1 / (measured.message * a_second))


def measure(machine: str) -> Constants:
    """Measure the constants."""
    ends = Pipe()
    note = ("progress", 12_345, 1_000_000, "inputs through the network")

    def messages() -> None:
        for _ in range(1_000):
            ends[0].send(note)
            ends[1].recv()

    empty = [State(CellCounts([4] * M), np.zeros(2048), Moments().add(np.eye(M))) for _ in range(2)]
    full = [CellCounts([4] * 10).update(_every_cell(4, 10)) for _ in range(2)]
    content = pickle.dumps(full[0].codes, protocol=5)
    values = np.random.default_rng(0).standard_normal(10**7, np.float32)
    sketch, other = Sketch.of(values), Sketch.of(values + np.float32(0.1))
    peak, held, size = simulate(1_000)[:3]
    return Constants(
        machine,
        message=_seconds(messages) / 1_000,
        unpickled=len(content) / _seconds(lambda: pickle.loads(content)),  # noqa: S301 (our own)
        merged_cell=_seconds(lambda: full[0].merge(full[1])) / 4**10,
        merged_state=_seconds(lambda: empty[0].merge(empty[1])),
        sketched_value=_seconds(lambda: Sketch.of(values), 3) / len(values),
        merged_sketch=_seconds(lambda: sketch.merge(other)),
        parted_sketch=_seconds(lambda: SketchedPartitions.of(sketch, (2, 3, 4)).choose((2, 3, 4)), 3),
        simulated_bytes=size,
        simulated_peak=peak,
        simulated_held=held,
    )


def simulate(workers: int) -> tuple[int, int, int, State]:
    """Merge the states of synthetic workers as a tree, each read from the bytes in which it would arrive.

    Returns the most bytes held beside what was there before, the most states at a time, the bytes of the merged state,
    and that state.
    """
    arriving = [pickle.dumps(worker(seed), protocol=5) for seed in range(workers)]
    held: list[int] = []
    tracemalloc.start()
    try:
        merged = tree(map(pickle.loads, arriving), held.append)
        return tracemalloc.get_traced_memory()[1], max(held), merged.nbytes, merged
    finally:
        tracemalloc.stop()


def _every_cell(clusters: int, m: int) -> NDArray[np.uint8]:
    return np.stack(np.unravel_index(np.arange(clusters**m), [clusters] * m), 1).astype(np.uint8)


def _seconds(work: Callable[[], object], repeats: int = 7) -> float:
    taken = []
    for _ in range(repeats):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return median(taken)


def tables(measured: Constants) -> dict[str, str]:
    """Return the generated parts of the page by name."""
    return {"constants": _constants(measured), "times": _times(measured), "memory": _memory(measured)}


def _constants(measured: Constants) -> str:
    rows = [
        ("a message on progress, at the driver", f"{measured.message * 1e6:.0f} \N{MICRO SIGN}s"),
        ("reading states that arrive", f"{measured.unpickled / 1e9:.1f} GB/s"),
        ("merging two states, per covered cell", f"{measured.merged_cell * 1e9:.0f} ns"),
        ("merging two states without cells", f"{measured.merged_state * 1e6:.0f} \N{MICRO SIGN}s"),
        ("sketching the values of a neuron, per value", f"{measured.sketched_value * 1e9:.0f} ns"),
        ("merging two sketches", f"{measured.merged_sketch * 1e3:.0f} ms"),
        ("finding the clusters of a sketch", f"{measured.parted_sketch:.2g} s"),
    ]
    return _table((f"measured on {measured.machine}", "median"), rows)


def _times(measured: Constants) -> str:
    rows = []
    for network in FLOPS:
        for gpu in PEAK:
            for gpus in GPUS:
                parts = terms(measured, network, gpu, gpus)
                flat = parts["merging by the driver"]
                shown = {name: parts[name] for name in ("learning", "tests", "reading", "clustering", "merging")}
                total = whole(parts)
                rows.append(
                    (
                        network,
                        f"{gpus} {gpu}",
                        *map(_duration, shown.values()),
                        _duration(flat),
                        _duration(total),
                        f"{total * gpus / 3600:,.0f}",
                        max(shown, key=lambda name: shown[name]),
                    )
                )
    heads = ("network", "GPUs", "learning", "tests", "reading", "clustering", "tree", "flat", "all", "GPU-hours")
    return _table((*heads, "largest term"), rows)


def _memory(measured: Constants) -> str:
    rows = []
    for m in (M, 10, 12):
        size = state_bytes(NEURONS["ResNet-50"], m)
        sizes = (size, *(tree_bytes(gpus, size) for gpus in GPUS), GPUS[-1] * size)
        rows.append((str(m), *map(_bytes, sizes)))
    heads = ("m", "one state", *(f"tree of {gpus}" for gpus in GPUS), f"all {GPUS[-1]} at once")
    model = tree_bytes(1_000, measured.simulated_bytes)
    return (
        _table(heads, rows)
        + f"\n\nSimulation with 1,000 workers' states of {_bytes(measured.simulated_bytes)}: at most "
        f"{measured.simulated_held} were held at a time (model {most_held(1_000)}), with a peak of "
        f"{_bytes(measured.simulated_peak)} (model {_bytes(model)}). At one message per worker and second, messages on "
        f"progress fill the driver's time from {most_workers(measured):,} workers."
    )


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _duration(seconds: float) -> str:
    if seconds >= 3600:
        return f"{seconds / 3600:,.1f} h"
    return f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:.2g} s"


def _bytes(size: float) -> str:
    unit = next(power for power in (3, 2, 1, 0) if size >= 1000**power)
    return f"{size / 1000**unit:.3g} {('B', 'kB', 'MB', 'GB')[unit]}"


def written(page: str, parts: dict[str, str]) -> str:
    """Return the page with its generated parts, each between its marks."""
    for name, text in parts.items():
        before, begin, rest = page.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- end of {name} -->")
        if not begin or not end:
            raise ValueError(f"{PAGE} has no marks of {name}.")
        page = f"{before}{begin}{text}\n{end}{after}"
    return page


def kept() -> Constants:
    """Return the constants measured last."""
    return Constants(**json.loads(KEPT.read_text(encoding="utf-8")))


def main(arguments: list[str]) -> None:
    if arguments == ["--measure"]:
        from benchmarks.__main__ import processor

        KEPT.write_text(json.dumps(asdict(measure(processor())), indent=2) + "\n", encoding="utf-8")
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), tables(kept())), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
