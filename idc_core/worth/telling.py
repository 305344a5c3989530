"""What the studies of networks say, in sentences: for the documents, the page and the bench."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from idc_core.evidence.finding import Control, Finding
from idc_core.store.cache import Record
from idc_core.worth.pooling import ENOUGH, AddedRow, Mean, SelectedRow, correlated, selected, yardsticks_of
from idc_core.worth.study import SIZE

_RIVALS = {
    "lsa": "LSA",
    "dsa": "DSA",
    "mdsa": "MDSA",
    "deepgini": "DeepGini",
    "margin": "Margin",
    "mutual-information": "MC dropout",
    "diversity": "Geometric diversity",
    SIZE: "Size alone",
}


TOLD = ("1", "3", "5")
"""Severities of corruptions in tables."""

_STRONGEST = "5"
"""The one that sentences are about."""

BEHIND = "deepgini"
"""The ranking by which criteria are measured beside random."""


def label(ranking: str) -> str:
    """Name a ranking for a person."""
    name, dash, _ = ranking.partition("-value")
    return _RIVALS.get(ranking) or f"{name.upper()}{', by value' if dash else ''}"


def is_criterion(ranking: str) -> bool:
    """Whether a ranking is by a coverage criterion, one that was entered in the bench included."""
    return ranking not in _RIVALS and not ranking.endswith("-value")


def headline(records: Mapping[str, Record]) -> str:
    """Return the most telling yardstick that enough networks were held to; else the one that most were held to."""
    names = yardsticks_of(records)
    counts = {name: sum(name in record["yardsticks"] for record in records.values()) for name in names}
    return next((name for name in names if counts[name] >= ENOUGH), max(names, key=lambda name: counts[name]))


def of_networks(count: int) -> str:
    """Write a number of networks."""
    return f"{count} network{'s' if count != 1 else ''}"


def percent(share: float) -> str:
    """Write a share with one digit."""
    return f"{100 * share:.1f} %".replace("-", "\u2212")


def points(mean: Mean) -> str:
    """Write a difference of shares in points, with its interval."""
    return _with_interval([f"{100 * number:+.1f}" for number in (mean.value, mean.low, mean.high)], mean.networks)


def rho(mean: Mean | None) -> str:
    """Write a mean correlation with its interval."""
    if mean is None:
        return "\u2013"
    return _with_interval([f"{number:+.2f}" for number in (mean.value, mean.low, mean.high)], mean.networks)


def _with_interval(written: list[str], networks: int) -> str:
    """Put a mean and its interval together; one network has none."""
    value, low, high = (number.replace("-", "\u2212") for number in written)
    return f"{value} ({low} to {high})" if networks > 1 else value


def finding(records: Mapping[str, Record], yardstick: str, ranking: str = "idc") -> Finding:
    """Return what the tests find that a ranking selects at the largest budget, beside as many random ones."""
    rows = {row.ranking: row for row in selected(records, yardstick, -1)}
    row, held = (
        rows[ranking],
        [one["yardsticks"][yardstick] for one in records.values() if yardstick in one["yardsticks"]],
    )
    _, low, high = (sum(ends) / len(held) for ends in zip(*(one["random"][-1] for one in held), strict=True))
    over = of_networks(row.more.networks)
    return Finding(
        "worth",
        f"Share of the {yardstick} that tests selected by {label(ranking)} find, mean of {over}",
        row.found,
        Control("by as many random tests", row.random, low, high),
        row.more.low,
        row.more.high,
        row.more.p,
        min(1.0, 2.0 ** (1 - row.more.networks)),
        len(rows),
        "%",
    )


def answer(records: Mapping[str, Record], ranking: str = "idc", *, yardstick: str = "") -> list[str]:
    """Return the answer in three sentences: selection beside random, beside uncertainty, and the two correlations.

    It is by the most telling yardstick unless one is named.
    """
    yardstick = yardstick or headline(records)
    rows = {row.ranking: row for row in selected(records, yardstick, -1)}
    networks = max(row.more.networks for row in rows.values())
    criteria = [row for row in rows.values() if is_criterion(row.ranking) and row.more.networks == networks]
    better = [row for row in criteria if row.more.is_certain and row.more.value > 0]
    found = correlated(records, yardstick)
    few = "" if networks >= ENOUGH else f" (too few for a headline, which takes {ENOUGH})"
    over = f"over {of_networks(networks)}{few}"
    return [
        f"Tests that add most coverage find more {yardstick} than as many random ones by {len(better)} of "
        f"{len(criteria)} criteria, {over}: {_beside(criteria[0])}.",
        *([f"{_of(rows[ranking])}, and {_of(rows[BEHIND])}."] if {ranking, BEHIND} <= rows.keys() else []),
        f"Over random suites of one size, whose {label(ranking)} differs by at most "
        f"{_apart(records, ranking, 'equal')}, it goes with the share found by {rho(found['equal'].get(ranking))}; "
        f"over suites that are made to differ, by "
        f"{_apart(records, ranking, 'stretched')}, by {rho(found['stretched'].get(ranking))}.",
    ]


def times(mean: Mean) -> str:
    """Write how many times as many there are, with its interval."""
    return _with_interval([f"{math.exp(number):.2f}" for number in (mean.value, mean.low, mean.high)], mean.networks)


def corrupted(records: Mapping[str, Record], rows: Sequence[AddedRow], ranking: str = "idc") -> str:
    """Say in two sentences what corrupted tests add by one criterion and by the one that they raise most."""
    held = [record["corruptions"] for record in records.values() if "corruptions" in record]
    refused, natural = (percent(sum(one["refused"][level] for one in held) / len(held)) for level in (_STRONGEST, "0"))
    mine, most = next(row for row in rows if row.criterion == ranking), rows[0]
    return (
        f"Tests with the strongest corruptions reach {times(mine.times[_STRONGEST])} times as many new targets of "
        f"{label(ranking)} as the same tests do as they are, over {of_networks(len(held))}. Of "
        f"{label(most.criterion)}, which they raise most, it is {times(most.times[_STRONGEST])} times as many, and "
        f"{percent(most.invalid[_STRONGEST])} of these are reached only by inputs that a calibrated detector refuses. "
        f"It refuses {refused} of the corrupted tests, and {natural} of them as they are."
    )


def corruption_table(rows: Sequence[AddedRow]) -> list[str]:
    """Return what corrupted tests add by each criterion as a table in Markdown."""
    levels = [level for level in rows[0].times if level in TOLD]
    heads = (*(f"times, severity {level}" for level in levels), "refused: as they are")
    heads += tuple(f"severity {level}" for level in levels)
    lines = [f"| criterion | networks | {' | '.join(heads)} |", "|---" * (2 + len(heads)) + "|"]
    for row in rows:
        strongest, shares = row.times[_STRONGEST], (row.invalid[level] for level in ("0", *levels))
        cells = (
            f"**{label(row.criterion)}**" if strongest.is_certain else label(row.criterion),
            str(strongest.networks),
            *(times(row.times[level]) for level in levels),
            *("\u2013" if math.isnan(share) else percent(share) for share in shares),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _apart(records: Mapping[str, Record], ranking: str, design: str) -> str:
    """Say by how many points scores of suites differ at most, the mean over the networks."""
    ends = [record["ranges"][ranking][design] for record in records.values() if ranking in record["ranges"]]
    return f"{100 * sum(high - low for low, high in ends) / max(len(ends), 1):.1f} points"


def _beside(row: SelectedRow) -> str:
    certain = "" if row.more.is_certain else ", which does not stand out"
    return (
        f"{label(row.ranking)} finds most of them, {percent(row.found)} beside {percent(row.random)}, a difference in "
        f"points of {points(row.more)}{certain}"
    )


def _of(row: SelectedRow) -> str:
    return f"{label(row.ranking)} finds {percent(row.found)} where random finds {percent(row.random)}"


def selection_table(rows: list[SelectedRow]) -> list[str]:
    """Return what selections find as a table in Markdown."""
    lines = [
        "| ranking | networks | found | random | difference, points | p, Holm | A12 |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = (
            f"**{label(row.ranking)}**" if row.more.is_certain else label(row.ranking),
            str(row.more.networks),
            percent(row.found),
            percent(row.random),
            points(row.more),
            f"{row.more.corrected_p:.3f}" if row.more.networks > 1 else "\u2013",
            f"{row.above:.2f}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def correlation_table(found: Mapping[str, Mapping[str, Mean]]) -> list[str]:
    """Return correlations by design and ranking as a table in Markdown."""
    names = list(dict.fromkeys(name for rows in found.values() for name in rows))
    names.sort(key=lambda name: -found["stretched"][name].value if name in found["stretched"] else 2.0)
    lines = ["| ranking | one size | made to differ | many sizes | size held fixed |", "|---|---|---|---|---|"]
    lines += [f"| {label(name)} | {' | '.join(rho(found[design].get(name)) for design in found)} |" for name in names]
    return lines
