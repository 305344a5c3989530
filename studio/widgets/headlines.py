"""Headlines: titles of charts and first sentences, in which no number comes without what it is compared with.

`claim` says a finding, with its control and verdict; `counted` how many of all are of a kind; `estimated` a number with
its interval; `topic` names what is shown, without a number but in names. `chart` takes no other text as its title.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from idc_core.evidence.finding import Finding
from idc_core.figures import wording
from idc_core.report import sentences
from studio.text import literal

if TYPE_CHECKING:
    from idc_core.analysis.overview import Overview


class Headline(str):
    """A text above what it is about, without a full stop; made by the functions of this module alone."""


def claim(finding: Finding) -> Headline:
    """Say a finding: its number, its control and its verdict."""
    return Headline(finding.sentence.removesuffix("."))


def counted(what: str, part: int, whole: int, noun: str) -> Headline:
    """Say how many of all things are of a kind."""
    return Headline(wording.counted(what, part, whole, noun))


def estimated(what: str, value: str, low: str, high: str, level: str = "95 %") -> Headline:
    """Say a number with its interval, and how often that holds."""
    return Headline(wording.estimated(what, value, low, high, level))


def topic(template: str, *names: object) -> Headline:
    """Name what is shown: `template` is a text without digits, and each ``{}`` in it the name of a thing."""
    return Headline(template.format(*names))


def lead(headline: Headline, *more: str) -> str:
    """Return a headline, in bold, and sentences behind it, as Markdown; empty ones are left out."""
    return " ".join((f"**{literal(headline)}.**", *filter(None, more)))


def reached(result: Overview) -> str:
    """Say as Markdown which cells the tests reach, beside chance, and whether misclassified ones are alone in some."""
    untested, errors = sentences.found(result, sentences.UNTESTED), sentences.about(result, "errors-only")
    first = counted("Covered", result.table.covered, result.table.total, "cell")
    return lead(first if untested is None else claim(untested), literal(sentences.reach(result)), literal(errors))


def label(name: str) -> str:
    """Return the name of a thing, in bold, as Markdown."""
    return f"**{literal(name)}**"
