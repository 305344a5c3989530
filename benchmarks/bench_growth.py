"""How time grows: with inputs, units, important neurons and classes.

Each row compares the largest size with the smallest; its note gives the slope of a straight line through the logarithms
of all sizes and times: 1 is linear. All are drawn in growth.svg.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import nn

from benchmarks.measure import Row, few, medians, quick
from idc_core.confusion import class_distance
from idc_core.coverage import IDC
from idc_core.lrp.rules import RelevanceSettings
from idc_core.tracing.trace import trace

PICTURE = Path(__file__).with_name("growth.svg")

NOTE = "![Time over size, both logarithmic](growth.svg)"


@dataclass(frozen=True)
class Growing:
    """Some work at several sizes, and the largest slope that it may have."""

    what: str
    sizes: tuple[int, ...]
    work: Callable[[int], Callable[[], object]]
    at_most: float


def dense(units: int) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, units), nn.ReLU(), nn.Linear(units, 10)).eval()


def analysed(inputs: int = 8_000, units: int = 128, m: int = 6) -> Callable[[], object]:
    """Return the whole of fit and update on random inputs."""
    model, train = dense(units), torch.rand(inputs, 64)
    return lambda: IDC(model, "0", m=m).fit(train).update(train).score


def explained(units: int) -> Callable[[], object]:
    """Return the relevance of a layer of so many units."""
    model, inputs = dense(units), torch.rand(2_000, 64)

    def work() -> None:
        for _ in trace(model, inputs, ["0"], RelevanceSettings()):
            pass

    return work


def compared(classes: int) -> Callable[[], object]:
    """Return the distances of all pairs of so many classes."""
    return partial(class_distance, np.random.default_rng(0).random((2_000, classes)))


SUBJECTS = (
    Growing("fit and update over inputs", (8_000, 16_000, 32_000, 64_000, 128_000), analysed, 1.1),
    Growing("relevance over units", (256, 512, 1_024, 2_048, 4_096), explained, 1.1),
    Growing("fit and update over important neurons m", (3, 6, 12, 24), lambda m: analysed(m=m), 1.1),
    Growing("distances over classes", (100, 200, 400, 800), compared, 2.1),
)


LINES: list[tuple[str, Sequence[int], Sequence[float]]] = []
"""What was measured: label, sizes and seconds."""


def grown(one: Growing) -> list[Row]:
    """Measure some work at its sizes, and draw it with what was measured before."""
    sizes = tuple(few(size, 2 + place) for place, size in enumerate(one.sizes))
    seconds = medians(*map(one.work, sizes), repeats=5)
    steep = slope(sizes, seconds)
    LINES.append((f"{one.what}: slope {steep:.2f}", sizes, seconds))
    if not quick():
        draw(LINES)
    first, last = sizes[0], sizes[-1]
    note = f"slope {steep:.2f}, at most {one.at_most:g}"
    at_most = (last / first) ** one.at_most
    return [Row(f"{one.what}, {last:,}", seconds[-1], f"{first:,}", seconds[0], at_most=at_most, note=note)]


def slope(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """Return the slope of the straight line through logarithms of sizes and times."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def draw(lines: Sequence[tuple[str, Sequence[int], Sequence[float]]], path: Path = PICTURE) -> None:
    """Draw time over size, both logarithmic."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for label, sizes, seconds in lines:
        axes.loglog(sizes, seconds, marker="o", label=label)
    axes.set_xlabel("size")
    axes.set_ylabel("seconds (median)")
    axes.legend()
    figure.savefig(path, metadata={"Date": None})


PARTS = {one.what: partial(grown, one) for one in SUBJECTS}
