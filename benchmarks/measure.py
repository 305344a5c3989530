"""The harness: interleaved runs, medians, ratios, a table.

A benchmark is a module of this package named ``bench_<subject>`` with a docstring, whose first line becomes the
heading in RESULTS.md, and ``PARTS``: functions that return rows, by what they measure. Nothing needs to be registered.
Inside, `medians` times all contenders in turns, so that a busy moment of the machine hits them alike, and `few` makes
sizes smaller where a run only tries that everything works::

    from benchmarks.measure import Row, few, medians

    def late() -> list[Row]:
        inputs = torch.rand(few(8192), 1, 28, 28)
        ours, plain = medians(lambda: relevance(...), lambda: model(inputs))
        return [Row("relevance of one late layer", ours, "plain forward pass", plain, at_most=1.15)]

    PARTS = {"a late layer": late}
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch

from idc_core.tracing.memory import release

QUICK = "BENCHMARKS_QUICK"
"""Set, in the environment so that peers see it too, where everything is tried once, on little."""


def quick() -> bool:
    """Return whether everything is only tried: no time means anything then."""
    return QUICK in os.environ


def few(count: int, least: int = 64) -> int:
    """Return a number of inputs; a small one where everything is only tried."""
    return min(count, max(least, count // 100)) if quick() else count


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes
    ----------
    what : str
        What was measured.
    seconds : float
        Its median time.
    against : str
        What it is compared with; empty for an absolute time.
    against_seconds : float
        The other's median time in the same run.
    at_most : float or None
        Target: the ratio seconds / against_seconds, or the seconds themselves where there is nothing to compare
        with, must not be larger.
    times_faster : float or None
        Target: the ratio against_seconds / seconds must not be smaller.
    note : str
        Anything a reader must know, for example fewer repetitions than five.
    memory : int or None
        Bytes that it took at its peak, beside what was there before; None where that is not measured.
    memory_at_most : float or None
        Target: that many bytes, where they were measured.
    failed : str
        Why it could not be measured; empty where it was.
    """

    what: str
    seconds: float
    against: str = ""
    against_seconds: float = 0.0
    at_most: float | None = None
    times_faster: float | None = None
    note: str = ""
    memory: int | None = None
    memory_at_most: float | None = None
    failed: str = ""

    @property
    def met(self) -> bool:
        """Whether the targets were reached; never where nothing could be measured."""
        if self.failed:
            return False
        if self.memory is not None and self.memory_at_most is not None and self.memory > self.memory_at_most:
            return False
        reached = self.seconds / self.against_seconds if self.against else self.seconds
        slow_enough = self.times_faster is None or self.against_seconds / self.seconds >= self.times_faster
        return slow_enough and (self.at_most is None or reached <= self.at_most)


def medians(*contenders: Callable[[], object], repeats: int = 7) -> list[float]:
    """Time the contenders in turns, after one round to warm up, and return the median seconds of each."""
    seconds: list[list[float]] = [[] for _ in contenders]
    for turn in range(2 if quick() else repeats + 1):
        for contender, taken in zip(contenders, seconds, strict=True):
            spent = _spent(contender)
            if turn:
                taken.append(spent)
    return [median(taken) for taken in seconds]


def _spent(work: Callable[[], object]) -> float:
    """Return the seconds that some work takes; where it uses a GPU, until that is done, by events of the GPU."""
    if not torch.cuda.is_initialized():
        start = time.perf_counter()
        work()
        return time.perf_counter() - start
    begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begun.record()
    work()
    ended.record()
    ended.synchronize()
    return float(begun.elapsed_time(ended)) / 1000


def measured(label: str, part: Callable[[], list[Row]]) -> list[Row]:
    """Return the rows of one part; one that says why, where it fails: the other parts go on whatever it was."""
    try:
        return part()
    except Exception as error:
        return [Row(label, 0.0, failed=" ".join(f"{type(error).__name__}: {error}".split()))]


def peak_memory(work: Callable[[], object]) -> int | None:
    """Return the bytes that some work takes at its peak beside what was there before; None where Linux does not say."""
    reset = Path("/proc/self/clear_refs")
    if not reset.exists():
        return None
    release()
    before = held("VmRSS:")
    reset.write_text("5")
    work()
    return max(0, held("VmHWM:") - before)


def held(what: str, process: int | str = "self") -> int:
    """Return bytes of memory of a process as Linux says them: "VmRSS:" now, "VmHWM:" at most; 0 once it has ended.

    Unlike those of `getrusage`, they do not count what the process that started this one held.
    """
    status = Path(f"/proc/{process}/status").read_text().splitlines()
    return next((int(line.split()[1]) for line in status if line.startswith(what)), 0) << 10


def table(rows: list[Row]) -> str:
    """Return the rows as a markdown table; a column of memory where any was measured."""
    titles = ["measured", "median", "compared with", "median", "ratio", "target", "met"]
    remembered = any(row.memory is not None for row in rows)
    titles += ["peak memory"] if remembered else []
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for row in rows:
        what = f"{row.what} ({row.note})" if row.note else row.what
        other = _time(row.against_seconds) if row.against else ""
        cells = [what, _time(row.seconds), row.against, other, _ratio(row), _target(row), "yes" if row.met else "no"]
        if row.failed:
            cells = [f"{row.what}: {row.failed.replace('|', '/')}", "", "", "", "", "", "failed"]
        cells += [_memory(row)] if remembered else []
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _memory(row: Row) -> str:
    if row.memory is None:
        return ""
    limit = "" if row.memory_at_most is None else f", at most {row.memory_at_most / 2**20:,.0f}"
    return f"{row.memory / 2**20:,.0f} MiB{limit}"


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def _ratio(row: Row) -> str:
    if not row.against:
        return ""
    if row.times_faster is not None:
        ratio = row.against_seconds / row.seconds
        return f"{ratio:,.0f} times faster" if ratio >= 100 else f"{ratio:.3g} times faster"
    return f"{row.seconds / row.against_seconds:.2f}"


def _target(row: Row) -> str:
    if row.times_faster is not None:
        return f"at least {row.times_faster:g} times faster"
    if row.at_most is not None:
        return f"at most {row.at_most:g}" if row.against else f"at most {_time(row.at_most)}"
    return ""
