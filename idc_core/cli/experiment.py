"""`experiment`: a research question answered for several networks, as a table and as CSV."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from idc_core.cli.console import ProgressLine, Subparsers, check_folder, table, write_whole
from idc_core.errors import SettingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from idc_core.datasets import Dataset
    from idc_core.experiments.rq1 import RQ1
    from idc_core.models import Network
    from idc_core.progress import Progress

Record = dict[str, str | int | float]


@dataclass(frozen=True)
class Experiment:
    """What the registry knows of an experiment.

    Attributes
    ----------
    name, help : str
    models : tuple of str
        Networks it is made for, unless others are named.
    shown : tuple of str
        Fields of a record that the printed table has; a file has them all.
    run : callable
        (arguments, model, on_progress) to the records of one network.
    """

    name: str
    help: str
    models: tuple[str, ...]
    shown: tuple[str, ...]
    run: Callable[[argparse.Namespace, str, Progress], list[Record]]


@dataclass(frozen=True, eq=False)
class Bench:
    """A network with its tests, and the neurons of its default layer ranked on its training inputs."""

    model: Network
    test: Dataset
    ranking: NDArray[np.int64]
    about: Record

    @property
    def layer(self) -> str:
        """The network's default layer."""
        return self.model.card.default_layer


def _bench(arguments: argparse.Namespace, name: str, on_progress: Progress) -> Bench:
    from idc_core.attribution.rules import RelevanceSettings
    from idc_core.datasets import load_dataset
    from idc_core.importance import check_m, find_priority, most_important
    from idc_core.models import load_model
    from idc_core.trace import collect

    model = load_model(name)
    layer = model.card.default_layer
    train = load_dataset(model.card.dataset, "train", arguments.limit_train, on_progress=on_progress)
    learnt = collect(model, train, [layer], RelevanceSettings(arguments.rule), on_progress=on_progress)
    importance = find_priority("sum").total(learnt.relevance[layer])
    check_m(arguments.m, len(importance))
    ranking = most_important(importance, len(importance))
    test = load_dataset(model.card.dataset, "test", arguments.limit, on_progress=on_progress)
    about: Record = {
        "model": name,
        "layer": layer,
        "neurons": len(importance),
        "train": len(train),
        "tests": len(test),
        "rule": arguments.rule,
        "fingerprint": model.card.fingerprint,
        "important_neurons": " ".join(str(neuron) for neuron in ranking[: arguments.m]),
    }
    return Bench(model, test, ranking, about)


def run_rq1(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Answer RQ1 for one network: one record with distances as they are, one in standard deviations."""
    from idc_core.experiments.rq1 import rq1

    bench = _bench(arguments, name, on_progress)
    result = rq1(
        bench.model, bench.test, bench.layer, bench.ranking[: arguments.m], rule=arguments.rule,
        share=arguments.share, seeds=arguments.seeds, on_progress=on_progress,
    )  # fmt: skip
    about = bench.about | {
        "m": arguments.m,
        "share": arguments.share,
        "changed": float(result.changed.mean()),
        "constant": result.constant,
    }
    return [about | _figures(result, scaled) for scaled in (False, True)]


def run_ablation(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Silence neurons of one network: one record for each number of neurons, from none to m."""
    from idc_core.experiments.ablation import ablate

    bench = _bench(arguments, name, on_progress)
    result = ablate(
        bench.model, bench.test, bench.test.targets, bench.layer, bench.ranking[: arguments.m],
        range(arguments.m + 1), arguments.seeds, task=bench.test.task, on_progress=on_progress,
    )  # fmt: skip
    rows = (result.counts, result.important, result.random_mean, result.random_low, result.random_high)
    return [
        bench.about
        | {"unit": result.unit, "silenced": int(count), "important": float(own), "random": float(mean),
           "lowest": float(low), "highest": float(high)}
        for count, own, mean, low, high in zip(*rows, strict=True)
    ]  # fmt: skip


def _figures(result: RQ1, scaled: bool) -> Record:
    found = result.summary(scaled)
    _, others = result.distances(scaled)
    return {
        "unit": "deviations" if scaled else "activation",
        "important": found.important.mean,
        "random": found.random.mean,
        "ratio": found.ratio,
        "share_more": found.share_more,
        "effect": found.effect,
        "seeds_won": f"{found.seeds_won} of {len(result.seeds)}",
        **{f"important_{key}": value for key, value in asdict(found.important).items() if key != "mean"},
        **{f"random_{key}": value for key, value in asdict(found.random).items() if key != "mean"},
        **{f"random_seed_{seed}": float(row.mean()) for seed, row in zip(result.seeds, others, strict=True)},
    }


PAPER = ("lenet1-mnist", "lenet4-mnist", "lenet5-mnist", "convnet-cifar10", "dave2-udacity")
"""The registry's counterparts of the five networks of the DeepImportance paper."""

EXPERIMENTS: dict[str, Experiment] = {
    entry.name: entry
    for entry in (
        Experiment(
            "rq1",
            "do important neurons move more than random ones when an input's most relevant pixels change?",
            PAPER,
            ("model", "layer", "tests", "m", "unit", "important", "random", "ratio", "share_more", "effect",
             "seeds_won"),
            run_rq1,
        ),
        Experiment(
            "ablation",
            "what does silencing the most important neurons cost, beside silencing as many random ones?",
            PAPER,
            ("model", "layer", "tests", "unit", "silenced", "important", "random", "lowest", "highest"),
            run_ablation,
        ),
    )
}  # fmt: skip
"""Experiments by name."""


def add_parser(subparsers: Subparsers) -> None:
    """Add the parser of `experiment`."""
    parser = subparsers.add_parser(
        "experiment",
        help="answer a research question for several networks",
        description="Answers a research question of the literature for several networks. "
        + " ".join(f"{entry.name}: {entry.help}" for entry in EXPERIMENTS.values()),
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("name", choices=tuple(EXPERIMENTS), help="the experiment")
    add("--models", nargs="+", metavar="NAME", help="the networks (those of the paper)")
    add("--m", type=int, default=6, metavar="N", help="number of important neurons (%(default)s)")
    add("--seeds", type=int, default=5, metavar="N", help="how many draws of random neurons (%(default)s)")
    add("--rule", default="epsilon", metavar="NAME", help="relevance rule (%(default)s)")
    add("--share", type=float, default=0.02, metavar="X", help="share of an input that is changed (%(default)s)")
    add("--limit-train", type=int, metavar="N", help="rank neurons by only the first N training inputs")
    add("--limit", type=int, metavar="N", help="use only the first N tests")
    add("--out", type=Path, metavar="FILE", help="also write everything to FILE as CSV")


def run(arguments: argparse.Namespace) -> int:
    """Run the experiment for every network, print the table, write it where asked, and return the exit status."""
    experiment = EXPERIMENTS[arguments.name]
    check_folder(arguments.out, "--out")
    models = tuple(dict.fromkeys(arguments.models or experiment.models))
    _check_models(models)
    records: list[Record] = []
    with ProgressLine() as progress:
        for name in models:
            records += experiment.run(arguments, name, _named(progress, name))
    heading = tuple(field.upper().replace("_", " ") for field in experiment.shown)
    rows = [tuple(_text(record[field]) for field in experiment.shown) for record in records]
    align = "".join("<" if isinstance(records[0][field], str) else ">" for field in experiment.shown)
    print(table([heading, *rows], align))
    if arguments.out is not None:
        write_whole(arguments.out, _csv(records), "--out")
        print(f"\nwritten to {arguments.out}")
    return 0


def _check_models(models: tuple[str, ...]) -> None:
    """Refuse an unknown name before the work on the known ones."""
    from idc_core.models import MODELS

    unknown = [name for name in models if name not in MODELS]
    if unknown:
        raise SettingError(f"There is no model {unknown[0]!r}; the models are {', '.join(MODELS)}.")


def _named(progress: ProgressLine, name: str) -> Progress:
    return lambda done, total, label: progress(done, total, f"{name}: {label}")


def _text(value: str | int | float) -> str:
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value


def _csv(records: list[Record]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()
