"""What a gate finds: one verdict per limit, the checks that they belong to, and the exit status.

What a number is compared with, its control, is the limit that a person set, and the baseline's value where the limit is
on a fall. Findings say where the number lies beside what else is to be expected; they decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from idc_core.errors import SettingError
from idc_core.evidence.finding import Finding

PASSED, BROKEN, COULD_NOT_RUN = 0, 1, 2
"""Exit statuses."""

Result = Literal["kept", "broken", "could not run"]

Value = float | list[tuple[str, str]]
"""What a limit is on: a number, or pairs of classes."""


@dataclass(frozen=True)
class Measured:
    """What a limit is on, as a baseline keeps it, and what a report adds where the limit is broken: lines, findings."""

    value: Value
    details: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """All of it in lines."""
        return (*self.details, *(finding.sentence for finding in self.findings))


@dataclass(frozen=True)
class Verdict:
    """Whether one limit is kept; everything in the words of a report."""

    limit: str
    """What is limited, as "idc" or "accuracy"."""
    wanted: str
    """The limit itself, as "at least 0.4"."""
    result: Result
    value: str = ""
    before: str = ""
    """The baseline's value; empty where the limit is on none."""
    sentence: str = ""
    """What is wrong; empty where the limit is kept."""
    details: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a verdict that does not say what it compares with."""
        if self.result != "could not run" and not self.wanted:
            raise SettingError(f"A verdict needs the limit that a value is compared with; got {self!r:.300}.")


@dataclass(frozen=True)
class CheckReport:
    """The verdicts of one check.

    Attributes
    ----------
    name : str
    facts : dict
        What was checked, by name: network, tests, layer and so on, with their fingerprints.
    verdicts : tuple of Verdict
    values : dict of str to Value
        What was measured, by the limit's label.
    settings : dict
        What the values follow from besides network and data; a baseline holds for equal ones.
    seconds : float
    """

    name: str
    facts: Mapping[str, str] = field(default_factory=dict)
    verdicts: tuple[Verdict, ...] = ()
    values: Mapping[str, Value] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    seconds: float = 0.0

    def count(self, result: Result) -> int:
        """Return how many verdicts have a result."""
        return sum(verdict.result == result for verdict in self.verdicts)


@dataclass(frozen=True)
class GateReport:
    """The checks of one file."""

    file: str
    checks: tuple[CheckReport, ...]

    @property
    def status(self) -> int:
        """The exit status: what could not run weighs more than a broken limit, since the result is not whole then."""
        return COULD_NOT_RUN if self.count("could not run") else BROKEN if self.count("broken") else PASSED

    @property
    def seconds(self) -> float:
        """How long all checks took."""
        return sum(check.seconds for check in self.checks)

    @property
    def headline(self) -> str:
        """The finding in one line."""
        counts: dict[Result, int] = {result: self.count(result) for result in _ARE}
        total = sum(len(check.verdicts) for check in self.checks)
        if not any(counts.values()):
            return f"{total} of {total} limits kept"
        return ", ".join(f"{count} of {total} limits {_ARE[result]}" for result, count in counts.items() if count)

    def count(self, result: Result) -> int:
        """Return how many verdicts have a result."""
        return sum(check.count(result) for check in self.checks)

    def failed(self) -> Iterator[tuple[CheckReport, Verdict]]:
        """Yield every verdict that is not kept, with its check."""
        return ((check, verdict) for check in self.checks for verdict in check.verdicts if verdict.result != "kept")


_ARE: Mapping[Result, str] = {"broken": "broken", "could not run": "could not be judged"}
