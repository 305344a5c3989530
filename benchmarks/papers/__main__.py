"""Write docs/results/papers.md from the accounts and from what the experiments wrote into results/."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.papers import deepimportance
from benchmarks.papers.accounts import ACCOUNTS, VERDICTS, WAITS, Account

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "results" / "papers.md"
RESULTS = Path(__file__).with_name("results")

_PAPERS = {"README": "All", "deepimportance": "DeepImportance", "deepxplore": "DeepXplore"}
_PAPERS |= {"deepinspect": "DeepInspect", "deepbase": "DeepBase"}

INTRODUCTION = """\
# Every published figure accounted for

S. Gerasimou et al., DeepImportance, ICSE 2020; K. Pei et al., DeepXplore, SOSP 2017; Y. Tian et al., DeepInspect,
ICSE 2020; T. Sellam et al., DeepBase, SIGMOD 2019: their printed figures fill 28 files, and each row of each file
belongs to a row below. `python -m benchmarks.papers` writes this page from `benchmarks/papers/accounts.py` and from
what the commands below wrote."""

COMMANDS = """\
<!-- not run: it takes minutes to hours, and needs the data sets -->
```console
$ idc-studio experiment rq1 --protocol paper --out rq1-paper.csv
$ idc-studio experiment rq2 --protocol paper --m 6 8 10 12 --out rq2-paper.csv
$ idc-studio experiment rq3 --protocol paper --m 6 8 12 --attacked 128 --cw 0 --out rq3-paper.csv \\
    --models lenet1-mnist lenet4-mnist lenet5-mnist
$ idc-studio experiment rq5 --protocol paper --m 4 6 --models lenet1-mnist lenet4-mnist lenet5-mnist --out rq5-paper.csv
$ idc-studio experiment deepxplore --seeds 3 --out deepxplore.csv
$ idc-studio experiment near --out near.csv
$ idc-studio experiment pollution --seeds 2 --out pollution.csv
$ idc-studio experiment class-errors --out class-errors.csv
```"""

DEEPXPLORE = """\
## DeepXplore, figure by figure

The three MNIST networks published with the paper. Searches start from tests on which all three agree, as many of
every class; light, with the paper's objective, unless the row says otherwise. The interval (95 %) is of
{repetitions} repetitions with other tests and other random choices (Student's t), or of a share of seeds (Wilson)."""

NEAR = """\
## Nearly identical networks

LeNet-1 on MNIST, light, steps of one grey level, at most 600; intervals are over the seeds that led to a difference."""

POLLUTION = """\
## Polluted training data

LeNet-5 on MNIST, 30 % of the nines labelled one. Training inputs labelled one are ranked by what suspects them;
*found* is the share of the wrong labels among as many of the most suspected, *AUC* the chance that a wrong label is
suspected more than a right one. The paper found 95.6 %."""

SETTINGS = """\
## DeepInspect's eight settings

| setting | network | at hand | measured |
| --- | --- | --- | --- |
| COCO | ResNet-50 | labels, predictions, distances, confusion, last layer | all of Tables III and IV, MODE too |
| CIFAR-100 | CNN | the same, on 9,000 tests | the same, but MODE's bias |
| robust CIFAR-10 small | small CNN | the same, and the network itself | the same, and from pictures on 932 tests |
| robust CIFAR-10 large, ResNet | CNN, ResNet | nothing | |
| COCO gender | ResNet-50 | nothing | |
| imSitu | ResNet-34 | nothing | |
| ImageNet | ResNet-50 | nothing | |

The other networks below are the project's own."""

CLASS_ERRORS = """\
## Class errors beside their rivals

DeepInspect's distances, distances of the last layer's weights (its stand-in for MODE), and as many random pairs:
true pairs among those reported, on the networks here; in brackets what 95 % of the random draws give."""

APART = """\
Does each input's neuron coverage (threshold 0.5) tell the predicted classes apart? By the test of Kruskal and
Wallis, and in the pairs of classes by the size of Cohen's d, in percent, with the paper's beside them:"""


def accounts() -> str:
    """Return the tables of all accounts, one a paper."""
    parts = []
    for prefix, paper in _PAPERS.items():
        rows = [
            (
                one.file if one.file.endswith(".md") else f"`{one.file}`",
                one.about,
                verdict(one),
                f"{one.says} [Page]({one.page})." if one.page else one.says,
            )
            for one in ACCOUNTS
            if one.file.startswith(prefix)
        ]
        parts.append(f"## {paper}\n\n{table(('file', 'rows', 'verdict', 'why, where'), rows)}")
    return "\n\n".join(parts)


def verdict(one: Account) -> str:
    """Return an account's verdict; where it rests on a kept result, that of its table has to be there."""
    rows = read(one.kept) if one.kept else []
    printed = re.search(r"(table|figure)s?(\d+)", one.file)
    if rows and "table" in rows[0] and printed:
        rows = [row for row in rows if row["table"] == f"{printed[1].title()} {printed[2]}"]
    return WAITS if one.kept and not rows else one.verdict


def summary() -> str:
    """Return how many accounts have each verdict, and what each means."""
    counts = Counter(map(verdict, ACCOUNTS))
    rows = [(name, str(counts[name]), meaning) for name, meaning in VERDICTS.items() if counts[name]]
    return table(("verdict", "kinds of rows", "means"), rows)


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def read(name: str) -> list[dict[str, str]]:
    """Return the rows that an experiment wrote; none where it was not run."""
    file = RESULTS / f"{name}.csv"
    if not file.exists():
        return []
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def figure(text: str) -> str:
    """Return a number for reading: three digits, no exponent."""
    if not text:
        return ""
    value = float(text)
    if abs(value) < 1e-9:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:#.3g}".rstrip(".")


def beside(rows: Sequence[Mapping[str, str]]) -> str:
    """Return figures beside the published ones."""
    lines = []
    for row in rows:
        interval = f" ({figure(row['low'])} to {figure(row['high'])})" if row["low"] else ""
        here = f"{figure(row['here'])}{interval}" if row["here"] else "none"
        lines.append(
            (row["table"], row["case"], f"{row['measure']}, {row['unit']}", figure(row["paper"]), here, row["of"])
        )
    return table(("table", "case", "measure", "paper", "here", "of"), lines)


def polluted(rows: Sequence[Mapping[str, str]]) -> str:
    """Return what was found of polluted inputs."""
    lines = [
        (
            row["seed"],
            row["way"],
            f"{row['polluted']} of {row['candidates']}",
            row["differences"],
            f"{100 * float(row['found']):.1f} %",
            f"{float(row['auc']):.3f}",
        )
        for row in rows
    ]
    return table(("seed", "suspected is what is", "wrong labels", "differences", "found", "AUC"), lines)


def rivals(rows: Sequence[Mapping[str, str]]) -> str:
    """Return pairs found by method."""
    lines = []
    for row in rows:
        chance = row["method"] == "random pairs"
        found = f"{float(row['found']):.1f} ({row['low']} to {row['high']})" if chance else f"{float(row['found']):.0f}"
        told = [f"{float(row[name]):.3f}" if row[name] else "" for name in ("spearman", "gain")]
        lines.append((row["model"], row["errors"], row["method"], row["reported"], row["true_pairs"], found, *told))
    heading = ("network", "errors", "method", "reported", "true pairs", "found", "rank correlation", "gain")
    return table(heading, lines)


def apart(rows: Sequence[Mapping[str, str]]) -> str:
    """Return effect sizes by network, the paper's first."""
    sizes = ("negligible", "small", "medium", "large")
    first = {row["model"]: row for row in rows}
    lines: list[tuple[str, ...]] = [
        ("COCO (paper)", "", "40.5", "38.2", "17.0", "4.3"),
        ("CIFAR-100 (paper)", "", "31.9", "25.7", "23.9", "18.5"),
    ]
    lines += [
        (name, f"{float(row['kruskal']):,.0f}", *(f"{float(row[size]):.1f}" for size in sizes))
        for name, row in first.items()
    ]
    return table(("network", "Kruskal-Wallis H", *sizes), lines)


def document() -> str:
    """Return the whole page."""
    parts = [INTRODUCTION, summary(), COMMANDS, accounts()]
    if rows := list(
        deepimportance.rows({name: read(name) for name in ("rq1-paper", "rq2-paper", "rq3-paper", "rq5-paper")})
    ):
        parts += [deepimportance.TEXT, beside(rows)]
    if rows := read("deepxplore"):
        most = max(int(row["of"]) for row in rows if row["table"] == "Table 6")
        parts += [DEEPXPLORE.format(repetitions=most), beside(rows)]
    if rows := read("near"):
        parts += [NEAR, beside(rows)]
    if rows := read("pollution"):
        parts += [POLLUTION, polluted(rows)]
    parts.append(SETTINGS)
    if rows := read("class-errors"):
        parts += [CLASS_ERRORS, rivals(rows), APART, apart(rows)]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
