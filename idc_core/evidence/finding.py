"""A finding: a number, what it is compared with, and a verdict. Every headline is made from one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from idc_core.errors import SettingError

LEVEL = 0.05
"""How often a page may say that something stands out where nothing does."""


class Verdict(StrEnum):
    """What a number beside its control says."""

    STANDS_OUT = "stands out"
    AS_EXPECTED = "as expected"
    TOO_FEW = "too few to tell"


@dataclass(frozen=True)
class Control:
    """What a number is compared with: the same number where there is nothing to find.

    Attributes
    ----------
    what : str
        What gives it, as a phrase that follows a number: "in as many natural inputs", "by chance".
    value : float
        The number to expect, in the finding's unit.
    low, high : float
        Range of 95 % of it.
    """

    what: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Finding:
    """A number beside its control.

    Attributes
    ----------
    subject : str
        What it is about, a word of the code: two findings of one subject say the same thing of different parts.
    claim : str
        The number in a sentence without its full stop: "Cell 1-0-2 is reached only by misclassified tests".
    number : float
        The number itself.
    control : Control
        What it is compared with.
    low, high : float
        95 % interval of the number less its control.
    p : float
        Probability, 0..1, of a number as far from its control by chance alone, for this one look.
    least_p : float
        The smallest such probability that the counts at hand allow: of the most extreme outcome.
    looks : int
        Among how many comparisons it was looked for.
    unit : str
        How numbers are written: "" as they are, "%" as percentages of a share.
    where : tuple of (str, str)
        What selects its subject on a page, by name: ``(("cell", "1-0-2"),)``.
    """

    subject: str
    claim: str
    number: float
    control: Control
    low: float
    high: float
    p: float
    least_p: float = 0.0
    looks: int = 1
    unit: str = ""
    where: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        """Refuse a finding that carries no control."""
        whole = 0 <= self.p <= 1 and 0 <= self.least_p <= 1 and self.looks >= 1 and self.low <= self.high
        if not self.claim or not self.control.what or not whole or not self.control.low <= self.control.high:
            raise SettingError(
                f"A finding needs a claim, a control with its range, an interval, a probability from 0 to 1 and the "
                f"number of looks; got {self!r:.300}."
            )

    @property
    def corrected_p(self) -> float:
        """The probability of one as extreme among all looks, 0..1 (Bonferroni)."""
        return min(1.0, self.p * self.looks)

    @property
    def verdict(self) -> Verdict:
        """Whether it stands out among all looks; too few to tell where no outcome could have."""
        if self.corrected_p <= LEVEL:
            return Verdict.STANDS_OUT
        return Verdict.TOO_FEW if self.least_p * self.looks > LEVEL else Verdict.AS_EXPECTED

    @property
    def sentence(self) -> str:
        """The claim, its number where the claim does not say it, its control and the verdict, in one sentence."""
        control = self.control
        spread = "" if control.low == control.high else f" ({self.write(control.low)} to {self.write(control.high)})"
        beside = f"{self.write(self.number)}, and {self.write(control.value)}{spread} {control.what}"
        if self.verdict is Verdict.STANDS_OUT:
            return f"{self.claim}: {beside}."
        return f"{self.claim}: {beside}, {self.verdict}."

    def write(self, number: float) -> str:
        """Return a number in the finding's unit."""
        if self.unit == "%":
            # Two digits where one would be 0: a share of a few in a thousand.
            digits = 1 if number == 0 or abs(number) >= 0.01 else 2
            return f"{100 * number:.{digits}f} %".replace("-", "\u2212")
        if number == int(number):
            return f"{int(number):,}".replace("-", "\u2212")
        return (f"{number:,.2f}" if abs(number) < 10 else f"{number:,.1f}").replace("-", "\u2212")


def counted_together(findings: Sequence[Finding]) -> list[Finding]:
    """Return the most certain finding of each subject, with the looks that it was chosen from among all of these.

    The subjects share `LEVEL` alike, so that a page on which nothing is to be found says that something stands out in
    at most that many cases, and a subject with one look is not drowned by one with thousands.
    """
    by_subject: dict[str, Finding] = {}
    for finding in findings:
        best = by_subject.get(finding.subject)
        if best is None or finding.p < best.p:
            by_subject[finding.subject] = finding
    return [replace(finding, looks=finding.looks * len(by_subject)) for finding in by_subject.values()]


def most_telling(findings: Sequence[Finding], most: int = 4) -> list[Finding]:
    """Return the findings that stand out among all of these, the most certain first, each about another subject."""
    chosen = [finding for finding in counted_together(findings) if finding.verdict is Verdict.STANDS_OUT]
    return sorted(chosen, key=lambda finding: (finding.p, -abs(finding.number - finding.control.value)))[:most]
