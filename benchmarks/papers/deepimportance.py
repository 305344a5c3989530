"""DeepImportance's tables by the paper's protocol, beside what it prints, as rows of figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt

Row = dict[str, str]

TEXT = """\
## DeepImportance, figure by figure

By `--protocol paper`: biases redistributed, neurons ranked on training inputs that are answered correctly, 10 % of the
pixels in Table 2, one class at a time and the classes averaged in the others. The networks are the project's own
trainings. The interval (95 %, Student's t) is over five seeds of the noise; original tests have none. U_O+train has
as many natural inputs in place of the noise, which the paper does not ask for."""

_STUDENT = 2.776
"""Of five seeds, 95 %."""

_NETWORKS = {
    "lenet1-mnist": "LeNet-1",
    "lenet4-mnist": "LeNet-4",
    "lenet5-mnist": "LeNet-5",
    "convnet-cifar10": "ConvNet",
    "dave2-udacity": "Dave-2",
}
_WHOLE = "10000"
"""Tests of MNIST; slow attacks change fewer of them."""

_SUITES = ("U_O", "U_O+S", "U_O+DI", "U_O+train")

RATIOS = {"LeNet-1": 0.28 / 0.07, "LeNet-4": 4.79 / 1.09, "LeNet-5": 4.18 / 0.93, "ConvNet": 112.03 / 47.22}
"""Table 2: important by random."""

COVERED = {
    "LeNet-1": ((34.6, 38.0, 38.8), (14.1, 16.5, 17.5), (5.5, 6.6, 7.0), (2.1, 2.6, 2.9)),
    "LeNet-4": ((58.8, 64.2, 65.8), (26.9, 31.8, 32.9), (13.5, 16.9, 18.1), (4.5, 6.3, 6.9)),
    "LeNet-5": ((47.0, 51.1, 52.1), (28.0, 33.7, 34.5), (9.5, 12.2, 13.1), (4.4, 6.2, 6.8)),
    "ConvNet": ((29.4, 37.9, 39.0), (11.1, 15.5, 16.6), (5.1, 7.4, 8.1), (2.0, 3.2, 3.7)),
    "Dave-2": ((19.1, 26.0, 28.5), (7.8, 10.0, 11.6), (3.3, 4.2, 4.9), (1.4, 2.0, 2.3)),
}
"""Table 3: by network, for m = 6, 8, 10 and 12, IDC of U_O, U_O+S and U_O+DI in per cent."""

ATTACKED = {
    "LeNet-1": {"U_O+S": (36.3, 16.1), "U_O+FGSM": (42.3, 20.9), "U_O+BIM": (43.2, 20.8)},
    "LeNet-4": {"U_O+S": (62.0, 29.1), "U_O+FGSM": (65.6, 33.4), "U_O+BIM": (66.5, 33.4)},
    "LeNet-5": {"U_O+S": (48.1, 29.1), "U_O+FGSM": (51.6, 32.3), "U_O+BIM": (51.6, 32.3)},
}
"""Table 4: by network and suite, IDC in per cent for m = 6 and 8; of whole test splits."""

LAYERS = {
    ("LeNet-1", "conv1"): (35.3, 38.3),
    ("LeNet-1", "conv2"): (76.2, 80.8),
    ("LeNet-4", "conv1"): (33.9, 35.9),
    ("LeNet-4", "conv2"): (81.6, 84.0),
    ("LeNet-4", "fc1"): (86.0, 90.0),
    ("LeNet-5", "conv1"): (12.5, 15.6),
    ("LeNet-5", "conv2"): (31.0, 36.6),
    ("LeNet-5", "fc1"): (37.0, 44.2),
    ("LeNet-5", "fc2"): (35.8, 43.4),
}
"""Table 5: by network and layer, IDC of U_O and U_O+DI in per cent; m = 4, for LeNet-5 6."""


def rows(read: Mapping[str, Sequence[Row]]) -> Iterator[Row]:
    """Yield a row of figures for each that was measured, from the files of rq1, rq2, rq3 and rq5."""
    for row in read["rq1-paper"]:
        name, what = _NETWORKS[row["model"]], f"ratio of the distances, {row['unit']}"
        paper = RATIOS.get(name) if row["unit"] == "activation" else None
        yield _row(
            "Table 2",
            f"{name}, m = {row['m']}",
            what,
            "times",
            paper,
            float(row["ratio"]),
            "",
            int(row["seeds_won"].split()[-1]),
        )
    for row in read["rq2-paper"]:
        if row["suite"] in _SUITES:
            name, m = _NETWORKS[row["model"]], int(row["m"])
            printed = dict(zip(_SUITES, COVERED[name][(m - 6) // 2], strict=False)).get(row["suite"])
            yield _covered("Table 3", f"{name}, m = {m}, {row['suite']}", printed, row)
    for row in read["rq3-paper"]:
        name, number = _NETWORKS[row["model"]], row["criterion"].removeprefix("idc")
        attacked = ATTACKED[name].get(row["suite"])
        if number in ("6", "8") and attacked is not None and row["tests"] == _WHOLE:
            place, here = ("6", "8").index(number), 100 * float(row["together"])
            case = f"{name}, m = {number}, {row['suite']}"
            deviation, seeds = row["together_deviation"], int(row["seeds"])
            yield _row("Table 4", case, "IDC", "%", attacked[place], here, deviation, seeds)
    for row in read["rq5-paper"]:
        if row["suite"] in ("U_O", "U_O+DI"):
            name = _NETWORKS[row["model"]]
            printed = LAYERS.get((name, row["layer"]), (None, None))[row["suite"] != "U_O"]
            if row["m"] != ("6" if name == "LeNet-5" else "4"):
                printed = None
            yield _covered("Table 5", f"{name}, {row['layer']}, m = {row['m']}, {row['suite']}", printed, row)


def _covered(table: str, case: str, printed: float | None, row: Row) -> Row:
    return _row(table, case, "IDC", "%", printed, 100 * float(row["idc"]), row["idc_deviation"], int(row["seeds"]))


def _row(
    table: str, case: str, measure: str, unit: str, paper: float | None, here: float, deviation: str, seeds: int
) -> Row:
    """Return a figure beside the published one; its interval where five seeds deviate from their mean."""
    low = high = ""
    if deviation:
        wide = 100 * _STUDENT * float(deviation) / sqrt(seeds)
        low, high = str(here - wide), str(here + wide)
    told = {"table": table, "case": case, "measure": measure, "unit": unit, "here": str(here)}
    return told | {"paper": "" if paper is None else str(paper), "low": low, "high": high, "of": str(seeds)}
