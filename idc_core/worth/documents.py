"""The two documents that are written from the kept records: the result, and the leaderboard of the bench."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import fill

from idc_core.base.files import SHIPPED, write_whole
from idc_core.store.cache import Record
from idc_core.worth import telling
from idc_core.worth.pooling import RETRAINED, added, correlated, selected, yardsticks_of
from idc_core.worth.published import published

_RESULT = """\
# Worth: what is a higher score good for?

Whether tests that a coverage criterion selects find more than as many random ones, and whether a suite with a
higher score finds more: mutants of a network, distinct faults, and kinds of
mistakes.

**In short.** {answer}

<!-- not run: it takes minutes to hours, and needs the data sets -->
```console
$ {command}
```

How it is done: a pool of {tests} tests and {train} training inputs at most, drawn at random from the splits;
criteria with their default settings. A **selection** takes from the pool, one after the other, the test that adds
most coverage (NLC, which has no targets: the largest gain first; surprise and uncertainty: the largest value
first); chance decides between equals (mean of 10 orders); random selections are 200 draws. **Correlations**
(Spearman's) are over 60 suites: random ones of one size (5 % of the pool); suites of that size from such whose
tests add as little as possible to one another, over random ones, to the selection itself; random ones of many
sizes; and these with their size held fixed. The network is the unit: differences to random are paired by network;
intervals (95 %) are by bootstrap over the networks, p-values of Wilcoxon's signed-rank test with Holm's correction
over all rankings of a table (bold: below 0.05). A12 is the probability that a selection finds more than a random
one. Networks on the same data share their tests, so that {networks} networks tell less than as many data sets
would.

{retrained}

{sections}

What differs from the literature: a mutant is killed class by class (DeepMutation); a kind of mistake is a pair of a
true and a predicted class that is confused by some test of the pool; a distinct fault is a group of two or more
such tests that look alike to another network (networks with fewer than three are left out). Geometric diversity
(Aghababaeyan et al., TSE
2023) is of the first 64 principal components of the inputs, not of features of a network trained on ImageNet. The
cluster-based coverage of a suite counts the clusters that the whole pool makes.
"""

_RETRAINED = (
    "**What to keep in mind**: mutants after training are small changes of weights, killed by tests near the borders "
    "of classes, which is what uncertainty looks for; and where a network is mistaken it is mostly unsure. Mutants "
    "that are trained anew with a fault (DeepCrime) are closer to real faults: `--retrain` makes them, in an hour or "
    "more a network, and they are there for {of} of these networks."
)

_CORRUPTED = """\
## Corrupted tests, and what of it is valid

{answer}

One half of each pool counts as tests; {inputs} of the other half, fewer where there are fewer, are added as they are,
and with each of the 15 corruptions of D. Hendrycks and T. Dietterich (ICLR 2019) at severities 1 to 5. **Times**:
how many times as many new targets the corrupted ones reach as the same tests do as they are, mean over the
corruptions; over the networks a geometric mean, half a target being added to both; intervals and p-values as
above, bold where it stands out at severity 5. **Refused**: the share of these targets that only inputs reach which a
detector refuses (p up to 0.05). It is calibrated on the tests, and accepts {bad} of known-bad inputs. NLC has no
targets to count.

{table}"""

_BENCH = """\
# A bench for criteria

`{run}` holds a criterion from a file of your own to the yardsticks of [what a higher score is good
for](results/worth.md) and to the laws that all criteria keep, and prints its row beside those below. `--card`
writes the row as JSON and as Markdown.

The file holds a class decorated by `idc_core.coverage.registry.criterion`: [CONTRIBUTING.md](../CONTRIBUTING.md)
says what it must do, and [examples/criteria](examples/criteria) has two. It needs the same pool as the kept rows,
which is what it takes unless `--limit` says otherwise. Code from a file runs with all that you may do: only your
own.

{sections}
"""


def result_document(records: Mapping[str, Record]) -> str:
    """Return docs/results/worth.md, from studies of networks."""
    names = yardsticks_of(records)
    sections = [section for name in names for section in _result_section(records, name)]
    sections += _corrupted(records)
    text = _RESULT.format(
        answer=" ".join(telling.answer(records)),
        command="idc-studio experiment worth --publish",
        tests=f"{max(record['tests'] for record in records.values()):,}",
        train=f"{max(record['train'] for record in records.values()):,}",
        networks=len(records),
        retrained=_RETRAINED.format(of=sum(RETRAINED in record["yardsticks"] for record in records.values())),
        sections="\n".join([*sections, *_networks(records)]).strip(),
    )
    return _wrapped(text.rstrip()) + "\n"


def _wrapped(text: str) -> str:
    """Return a document whose paragraphs are wrapped; headings, tables and blocks of code stay."""
    parts = text.split("\n\n")
    kept = ("#", "|", "<", "`")
    return "\n\n".join(
        part if part.lstrip().startswith(kept) else fill(part, 125, break_long_words=False, break_on_hyphens=False)
        for part in parts
    )


def _result_section(records: Mapping[str, Record], yardstick: str) -> list[str]:
    held = {name: record for name, record in records.items() if yardstick in record["yardsticks"]}
    lines = [f"## {yardstick[0].upper()}{yardstick[1:]}", ""]
    for budget, share in enumerate(("1 %", "3 %", "5 %")):
        lines += [f"**{share} of the pool selected**, {telling.of_networks(len(held))}:", ""]
        lines += [*telling.selection_table(selected(records, yardstick, budget)), ""]
    lines += [
        "**Difference to random by data**, in points, 5 % of the pool selected:",
        "",
        *_by_data(held, yardstick),
        "",
    ]
    lines += ["**Correlation of the score with the share found**, mean over the networks and its interval:", ""]
    return [*lines, *telling.correlation_table(correlated(records, yardstick)), ""]


def _corrupted(records: Mapping[str, Record]) -> list[str]:
    """Return the section on corrupted tests; none where nothing is known of them."""
    held = [record["corruptions"] for record in records.values() if "corruptions" in record]
    if not held:
        return []
    rows = added(records)
    text = _CORRUPTED.format(
        answer=telling.corrupted(records, rows),
        inputs=max(one["inputs"] for one in held),
        bad=telling.percent(sum(one["bad"] for one in held) / len(held)),
        table="\n".join(telling.corruption_table(rows)),
    )
    return [text, ""]


def _by_data(records: Mapping[str, Record], yardstick: str) -> list[str]:
    """Return the mean difference to random on each data set as a table: networks on one share their tests."""
    found = {}
    for data in sorted({record["data"] for record in records.values()}):
        some = {name: record for name, record in records.items() if record["data"] == data}
        rows = selected(some, yardstick, -1)
        found[f"{data} ({len(some)})"] = {row.ranking: f"{100 * row.more.value:+.1f}" for row in rows}
    lines = [f"| ranking | {' | '.join(found)} |", "|---" * (1 + len(found)) + "|"]
    for row in selected(records, yardstick, -1):
        cells = [rows.get(row.ranking, "\u2013").replace("-", "\u2212") for rows in found.values()]
        lines.append(f"| {telling.label(row.ranking)} | {' | '.join(cells)} |")
    return lines


def _networks(records: Mapping[str, Record]) -> list[str]:
    """Return the networks as a table."""
    lines = [
        "## Networks",
        "",
        "| network | data | tests | training inputs | targets | seconds |",
        "|---|---|---|---|---|---|",
    ]
    for name, record in records.items():
        targets = "; ".join(f"{held['targets']:,} {of}" for of, held in record["yardsticks"].items())
        counts = " | ".join(f"{record[key]:,}" for key in ("tests", "train"))
        lines.append(f"| {name} | {record['data']} | {counts} | {targets} | {record['seconds']:,} |")
    return lines


def bench_document(records: Mapping[str, Record]) -> str:
    """Return docs/BENCHMARK.md."""
    sections = []
    for name in yardsticks_of(records):
        budget = len(next(iter(records.values()))["budgets"]) - 1
        sections += [f"## {name[0].upper()}{name[1:]}, 5 % of the pool selected", ""]
        sections += [*telling.selection_table(selected(records, name, budget)), ""]
    return _BENCH.format(run="idc-studio benchmark docs/examples/criteria/npc.py", sections="\n".join(sections).strip())


def write_documents(folder: Path = SHIPPED / "docs") -> None:
    """Write both documents from the kept records."""
    records = published()
    write_whole(folder / "results" / "worth.md", result_document(records).encode())
    write_whole(folder / "BENCHMARK.md", bench_document(records).encode())
