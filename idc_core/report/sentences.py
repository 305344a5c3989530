"""What an overview says in sentences, on its page and in the report: numbers beside their controls."""

from __future__ import annotations

from idc_core.analysis.overview import Overview
from idc_core.evidence.discovery import Discovery
from idc_core.evidence.finding import Finding, Verdict, counted_together, most_telling
from idc_core.evidence.of_tests import UNTESTED
from idc_core.figures.wording import count, estimated, percent, plural

__all__ = [
    "CHANCE",
    "UNTESTED",
    "about",
    "chance_of_new",
    "every",
    "found",
    "headline",
    "more_tests",
    "nothing",
    "reach",
    "summary",
    "told",
]


CHANCE = "Chance that the next test like these reaches a new cell"
"""What `Discovery.chance` is."""


def found(result: Overview, subject: str) -> Finding | None:
    """Return the finding about a subject, whether it stands out or not; None where there is none."""
    return next((one for one in counted_together(result.findings) if one.subject == subject), None)


def about(result: Overview, subject: str) -> str:
    """Return the finding about a subject in words; empty where there is none."""
    one = found(result, subject)
    return "" if one is None else one.sentence


def headline(result: Overview) -> str:
    """Say how many combinations are within reach and untested, beside chance; else how much is covered."""
    return about(result, UNTESTED) or reach(result)


def reach(result: Overview) -> str:
    """Say IDC, and beside it IDC of the cells that tests or training inputs reach."""
    covered, total, reachable = result.table.covered, result.table.total, result.reachable
    of = f"{count(covered)} of {plural(total, 'combination')} of the important neurons' clusters"
    whole = f"The tests cover {of}: IDC is {percent(covered / total)}"
    if reachable is None:
        return f"{whole}."
    return f"{whole}, and {percent(covered / reachable)} of the {count(reachable)} within reach."


def told(result: Overview) -> list[Finding]:
    """Return the findings that stand out, the most certain first, but for that of the headline."""
    return [one for one in most_telling(result.findings) if one.subject != UNTESTED]


def nothing(result: Overview) -> str:
    """Say that nothing stands out, among how many comparisons; empty where something does."""
    if told(result):
        return ""
    looked = [one for one in counted_together(result.findings) if one.subject != UNTESTED]
    if not looked:
        return "There is nothing to compare these tests with."
    looks = sum(one.looks for one in result.findings if one.subject != UNTESTED)
    few = sum(one.verdict is Verdict.TOO_FEW for one in looked)
    said = f"Nothing stands out among {plural(looks, 'comparison')} with training inputs, other classes and chance."
    return said + f" For {few} of {plural(len(looked), 'kind')} of them, the tests are too few." * (few > 0)


def chance_of_new(left: Discovery) -> str:
    """Say how likely the next test is to reach a new cell."""
    return f"{estimated(CHANCE, percent(left.chance), percent(left.low), percent(left.high))}."


def more_tests(left: Discovery) -> str:
    """Say how many new cells as many more tests would reach, and how many cells there are at least."""
    expected, low, high = left.new(left.inputs)
    return (
        f"{count(left.inputs)} more would reach about {plural(round(expected), 'new cell')} ({count(low)} to "
        f"{count(high)}). At least {plural(left.at_least, 'cell')} can be reached."
    )


def every(result: Overview) -> list[Finding]:
    """Return all findings, that of the headline first, then the most certain ones."""
    return sorted(counted_together(result.findings), key=lambda one: (one.subject != UNTESTED, one.p))


def summary(result: Overview) -> tuple[str, ...]:
    """Return the sentences that a reviewer reads first."""
    first = headline(result)
    second = [said for said in (reach(result),) if said != first]
    return first, *second, *([one.sentence for one in told(result)] or [nothing(result)])
