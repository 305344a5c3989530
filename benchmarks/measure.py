"""The harness: interleaved runs, medians, ratios, a table.

A benchmark is a module of this package named ``bench_<subject>`` with a docstring, whose first line becomes the
heading in RESULTS.md, and a function ``run() -> list[Row]``. Nothing needs to be registered. Inside,
`medians` times all contenders in turns, so that a busy moment of the machine hits them alike::

    from benchmarks.measure import Row, medians

    def run() -> list[Row]:
        ours, plain = medians(lambda: relevance(...), lambda: model(inputs))
        return [Row("relevance of one late layer", ours, "plain forward pass", plain, at_most=1.15)]
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median


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
    """

    what: str
    seconds: float
    against: str = ""
    against_seconds: float = 0.0
    at_most: float | None = None
    times_faster: float | None = None
    note: str = ""

    @property
    def met(self) -> bool:
        """Whether the targets were reached."""
        reached = self.seconds / self.against_seconds if self.against else self.seconds
        slow_enough = self.times_faster is None or self.against_seconds / self.seconds >= self.times_faster
        return slow_enough and (self.at_most is None or reached <= self.at_most)


def medians(*contenders: Callable[[], object], repeats: int = 7) -> list[float]:
    """Time the contenders in turns, after one round to warm up, and return the median seconds of each."""
    seconds: list[list[float]] = [[] for _ in contenders]
    for turn in range(repeats + 1):
        for contender, taken in zip(contenders, seconds, strict=True):
            start = time.perf_counter()
            contender()
            if turn:
                taken.append(time.perf_counter() - start)
    return [median(taken) for taken in seconds]


def table(rows: list[Row]) -> str:
    """Return the rows as a markdown table."""
    lines = ["| measured | median | compared with | median | ratio | target | met |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        what = f"{row.what} ({row.note})" if row.note else row.what
        other = _time(row.against_seconds) if row.against else ""
        cells = (what, _time(row.seconds), row.against, other, _ratio(row), _target(row), "yes" if row.met else "no")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


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
