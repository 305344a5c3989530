"""`confusion`: which classes a network seems to confuse, and between which it seems biased, without labels."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict

from idc_core.base.parameters import Parameter, shown
from idc_core.base.ranges import INPUTS, ROWS
from idc_core.cli.arguments import Assignment, FileToRead, FileToWrite, Name, Number, Text, Texts, Word
from idc_core.cli.console import ProgressLine, Subparsers, check_fit, check_layers, comma_separated, table, write_whole
from idc_core.cli.executors import add_engine, executor_of, source_of
from idc_core.cli.options import add_fields, options_of
from idc_core.errors import SettingError
from idc_core.runs import CLASS_ERRORS, ErrorSettings, class_evidence, digest, planned_class_errors, settings_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from idc_core.base.progress import Progress
    from idc_core.confusion import ClassErrors, Evaluation, Evidence
    from idc_core.datasets import Dataset
    from idc_core.models import ModelCard, Network
    from idc_core.runs import Planned

_OVER_THE_LIMIT = 1
"""Exit status where a named pair is over its limit."""

_JSON_FORMAT = 1
"""Raised whenever a field of the JSON document is renamed, removed or changes its meaning."""

_GROUPS = r"[^:;]+:[^:;]+(;[^:;]+:[^:;]+)*;?"
"""Groups of classes, roughly: what is wrong inside is told with the classes there are."""

_LIMIT = Parameter("limit", "Limit", "Largest value of a pair.", 1.0, -1e6, 1e6)


class _Limited(TypedDict):
    """A pair with a limit, and what was found."""

    pair: list[str]
    measure: str
    value: float
    at_most: float
    over: bool


_MEASURES: dict[str, Callable[[ClassErrors], NDArray[np.float64] | None]] = {
    "suspicion": lambda errors: errors.suspicion,
    "bias": lambda errors: errors.bias,
    "confusion": lambda errors: errors.confusion,
    "disparity": lambda errors: errors.disparity,
}
"""Quantities that a limit can be on; the last two need labels."""


def add_parser(subparsers: Subparsers) -> None:
    """Add the parser of `confusion`."""
    parser = subparsers.add_parser(
        "confusion",
        help="rank pairs of classes by suspected confusion and bias, without labels",
        description="Compares how often the inputs predicted as each class activate the neurons. Classes that activate "
        "them similarly are suspected of confusion (DeepInspect). With labels, the true confusion is printed too. Exit "
        f"status {_OVER_THE_LIMIT} if a pair of --at-most is over its limit.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--model", type=Name("models"), default="lenet5-digits", metavar="NAME", help="the network (%(default)s)")
    add("--data", type=Name("data"), metavar="NAME", help="the data set whose test split is run (the network's own)")
    add("--own", type=FileToRead(), metavar="FILE", help="a file of custom predictions instead: npz, or a table")
    add("--scaled", action="store_true", help="activations of --own are already scaled to 0..1")
    layers = "layers whose neurons count (all convolutions and linear layers)"
    add("--layers", type=Texts(), metavar="NAME,NAME,...", help=layers)
    add_fields(add, CLASS_ERRORS)
    add(
        "--kind",
        type=Word(("type1", "type2")),
        metavar="{type1,type2}",
        help="true errors: instead of the true class (type1), or in addition to it (type2)",
    )
    groups = "join classes, such as 'pets: cat, dog; vehicles: car, truck'"
    add(
        "--groups",
        type=Text(_GROUPS, "groups such as 'pets: cat, dog; vehicles: car, truck'"),
        metavar="TEXT",
        help=groups,
    )
    add("--top", type=Number(ROWS), default=20, metavar="N", help="how many pairs to print (%(default)s)")
    limit = "a pair and its maximum, such as cat:dog=1.5; can be given several times"
    pair = Assignment("--at-most as class:class=number", _LIMIT)
    add("--at-most", type=pair, action="append", default=[], metavar="PAIR=X", help=limit)
    measure = "the quantity limited: " + ", ".join(_MEASURES) + " (%(default)s: standard deviations below the mean)"
    words = "{" + ",".join(_MEASURES) + "}"
    add("--measure", type=Word(tuple(_MEASURES)), default="suspicion", metavar=words, help=measure)
    add("--limit-test", type=Number(INPUTS), metavar="N", help="use only the first N tests")
    add("--json", type=FileToWrite(), metavar="FILE", help="also write everything to FILE")
    add("--csv", type=FileToWrite(), metavar="FILE", help="also write all pairs to FILE")
    add_engine(parser)


def run(arguments: argparse.Namespace) -> int:
    """Find class-level errors, print the ranked pairs, and return the exit status."""
    from idc_core.datasets import DATASETS

    with ProgressLine() as progress:
        if arguments.own is not None:
            evidence = _own(arguments)
            title = "; ".join((str(arguments.own), *evidence.notes))
            groups, limits = _asked(arguments, evidence.class_names)
            plan = planned_class_errors(lambda _: evidence.grouped(groups), _settings(arguments, ()), ())
            result = plan.make(progress)
        else:
            open_executor = executor_of(arguments)
            model, data, layers = _opened(arguments, progress)
            names = DATASETS[model.card.dataset].class_names
            groups, limits = _asked(arguments, names)

            source = source_of(arguments, model, data, arguments.limit_test)

            def gather(on_progress: Progress | None) -> Evidence:
                result = class_evidence(source, layers, arguments.threshold, names, open_executor, on_progress)
                return result.grouped(groups)

            result = _planned(arguments, model.card, data, gather, _settings(arguments, layers)).kept(progress)
            title = _title(model, data, layers, result)
    over = _check(result, arguments.measure, limits)
    print(_render(result, title, arguments.top, over))
    if arguments.json is not None:
        document = _make_document(result, title, arguments, over)
        write_whole(arguments.json, json.dumps(document, indent=2, allow_nan=False) + "\n", "--json")
    if arguments.csv is not None:
        write_whole(arguments.csv, comma_separated(_records(result, len(result.suspected))), "--csv")
    return _OVER_THE_LIMIT if any(line["over"] for line in over) else 0


def _own(arguments: argparse.Namespace) -> Evidence:
    from idc_core.confusion import own_evidence

    for option, value in (
        ("--data", arguments.data),
        ("--layers", arguments.layers),
        ("--engine", arguments.engine),
        ("--address", arguments.address),
    ):
        if value is not None:
            raise SettingError(f"{option} is for networks: leave it out with --own.")
    return own_evidence(arguments.own, scaled=arguments.scaled)


def _opened(arguments: argparse.Namespace, progress: ProgressLine) -> tuple[Network, Dataset, tuple[str, ...]]:
    """Return the network, the tests, and the layers whose neurons count."""
    from idc_core.confusion import countable_layers
    from idc_core.datasets import DATASETS, load_dataset
    from idc_core.models import load_model

    model = load_model(arguments.model)
    name = model.card.dataset if arguments.data is None else arguments.data
    check_fit(model.card, name)
    layers = countable_layers(model) if arguments.layers is None else arguments.layers
    check_layers(model, layers)
    _asked(arguments, DATASETS[model.card.dataset].class_names)
    return model, load_dataset(name, "test", arguments.limit_test, on_progress=progress), layers


def _title(model: Network, data: Dataset, layers: tuple[str, ...], found: ClassErrors) -> str:
    neurons = len(found.probability)
    return f"{model.card.label}, {len(data):,} tests of {data.name}, {neurons:,} neurons of {', '.join(layers)}"


def _settings(arguments: argparse.Namespace, layers: tuple[str, ...]) -> ErrorSettings:
    options = options_of(arguments, CLASS_ERRORS)
    return ErrorSettings(layers, kind=arguments.kind, groups=arguments.groups or "", **options)


def _planned(
    arguments: argparse.Namespace,
    card: ModelCard,
    data: Dataset,
    gather: Callable[[Progress | None], Evidence],
    settings: ErrorSettings,
) -> Planned[ClassErrors]:
    """Plan the comparison as a run."""
    import numpy as np

    of_part = arguments.limit_test is not None
    run = settings_of(card, None, data, card.default_layer, None, of_part=of_part, **settings.told)
    key = (card.fingerprint, data.fingerprint, digest(np.arange(len(data), dtype=np.int64)))
    return planned_class_errors(gather, settings, key, run)


def _asked(
    arguments: argparse.Namespace, class_names: tuple[str, ...]
) -> tuple[dict[str, list[int]], list[tuple[int, int, float]]]:
    """Return the groups of classes, and the limits on pairs of what is left."""
    from idc_core.confusion import grouped_names, parse_groups

    groups = parse_groups(arguments.groups or "", class_names)
    names = grouped_names(class_names, groups)
    return groups, [_limit(pair, number, names) for pair, number in arguments.at_most]


def _limit(pair: str, number: str, class_names: tuple[str, ...]) -> tuple[int, int, float]:
    """Read a limit such as ``cat:dog=1.5``."""
    # A class's own name may hold the colon.
    cuts = [(pair[:i], pair[i + 1 :]) for i, letter in enumerate(pair) if letter == ":"]
    known = [cut for cut in cuts if cut[0] in class_names and cut[1] in class_names and cut[0] != cut[1]]
    if not known:
        some = ", ".join(class_names[:12]) + (" ..." if len(class_names) > 12 else "")
        raise SettingError(
            f"Expected --at-most as class:class=number, not {shown(pair)}={number}; the classes are {some}."
        )
    return class_names.index(known[0][0]), class_names.index(known[0][1]), float(number)


def _check(found: ClassErrors, measure: str, limits: list[tuple[int, int, float]]) -> list[_Limited]:
    """Return, for each limit, the pair's value and whether it is over."""
    values = _MEASURES[measure](found)
    if values is None:
        if limits:
            raise SettingError(f"There is no {measure} here to limit: choose another --measure.")
        return []
    lines: list[_Limited] = []
    for first, second, most in limits:
        value = float(values[first, second])
        pair = [found.class_names[first], found.class_names[second]]
        if math.isnan(value):
            raise SettingError(
                f"The {measure} of {pair[0]} and {pair[1]} is undefined: no input is predicted as one of them, or too "
                "few have the class."
            )
        lines.append({"pair": pair, "measure": measure, "value": value, "at_most": most, "over": value > most})
    return lines


def _records(found: ClassErrors, most: int) -> list[dict[str, Any]]:
    """Return the most suspected pairs, one record each; what is undefined is None."""
    pairs = found.suspected[:most]
    hits, certain = found.truly_confused(pairs), found.certainly_confused(pairs)
    columns = {
        "distance": found.distance,
        "suspicion": found.suspicion,
        "bias": found.bias,
        "confusion": found.confusion,
        "disparity": found.disparity,
    }
    return [
        {
            "rank": rank + 1,
            "first": found.class_names[a],
            "second": found.class_names[b],
            **{name: None if values is None else _finite(values[a, b]) for name, values in columns.items()},
            "reported": bool(found.distance[a, b] < found.confusion_cutoff),
            "truly_confused": None if hits is None else bool(hits[rank]),
            "certain": None if certain is None else bool(certain[rank]),
        }
        for rank, (a, b) in enumerate(pairs.tolist())
    ]


def _make_document(
    found: ClassErrors, title: str, arguments: argparse.Namespace, over: list[_Limited]
) -> dict[str, object]:
    """Return everything as plain values that JSON can hold."""
    return {
        "format": _JSON_FORMAT,
        "what": title,
        "settings": options_of(arguments, CLASS_ERRORS),
        "classes": list(found.class_names),
        "never_predicted": found.unseen,
        "confusion": _evaluation(found.confusion_found),
        "bias": _evaluation(found.bias_found),
        "findings": _findings(found),
        "limits": over,
        "pairs": _records(found, len(found.suspected)),
    }


def _evaluation(found: Evaluation | None) -> dict[str, object] | None:
    if found is None:
        return None
    flat = vars(found) | {name: vars(getattr(found, name)) for name in ("at_deviations", "at_share")}
    return {
        name: {k: _finite(v) for k, v in value.items()} if isinstance(value, dict) else _finite(value)
        for name, value in flat.items()
    }


def _finite(value: float) -> float | int | None:
    if isinstance(value, int):
        return value
    return float(value) if math.isfinite(value) else None


def _render(found: ClassErrors, title: str, top: int, over: list[_Limited]) -> str:
    """Return the text that the command prints."""
    parts = [title]
    if found.unseen:
        parts.append(f"no input is predicted as {', '.join(found.unseen)}: these classes are not analysed")
    rows: list[tuple[str, ...]] = [("RANK", "PAIR", "DISTANCE", "SUSPICION", "BIAS", "CONFUSION", "LABELS")]
    for record in _records(found, top):
        labels = {None: "", True: "confirmed", False: "" if not record["reported"] else "not confirmed"}[
            record["truly_confused"]
        ]
        labels += ", certain" if record["certain"] else ""
        rows.append(
            (
                f"{record['rank']:,}",
                f"{record['first']} - {record['second']}",
                f"{record['distance']:.4f}",
                f"{record['suspicion']:+.2f}",
                *(_short(record[name]) for name in ("bias", "confusion")),
                labels,
            )
        )
    if top:
        parts.append(table(rows, "><>>>><"))
    reported = int((found.distance[tuple(found.suspected.T)] < found.confusion_cutoff).sum())
    parts.append(
        f"{reported:,} of {len(found.suspected):,} pairs are closer than mean minus 1 SD ({found.confusion_cutoff:.4f})"
    )
    for name, beside in (("confusion", found.confusion_found), ("bias", found.bias_found)):
        if beside is not None:
            parts.append(_summary(name, beside))
    parts += _findings(found)
    for line in over:
        verdict = "over" if line["over"] else "within"
        parts.append(
            f"{' - '.join(line['pair'])}: {line['measure']} {line['value']:.4g} is {verdict} the limit "
            f"{line['at_most']:g}"
        )
    return "\n\n".join(parts)


def _findings(found: ClassErrors) -> list[str]:
    """Say what labels tell for certain, beside what chance gives; nothing without labels."""
    told = [found.most_confused("input"), found.report_finding]
    if len(found.biased):
        first, second = found.biased[0].tolist()
        told.append(found.disparity_finding((first, second)))
    return [finding.sentence for finding in told if finding is not None]


def _summary(name: str, found: Evaluation) -> str:
    at = found.at_deviations
    return (
        f"{name} compared with labels: {at.true_positives} of {found.true_pairs} true pairs are among {at.reported} "
        f"reported (precision {_short(at.precision)}, recall {_short(at.recall)}), rank correlation "
        f"{_short(found.spearman)}, gain over a random order {_short(found.gain)}"
    )


def _short(value: float | None) -> str:
    return "" if value is None else "-" if math.isnan(value) else f"{value:.3f}"
