"""Records of RQ6 and of retraining with disagreements: additions against as many random inputs, and none."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from idc_core.cli.experiments.base import Experiment, Record, load, one_m

if TYPE_CHECKING:
    from idc_core.base.progress import Progress
    from idc_core.experiments.retraining_results import Difference, Retraining


def _run_rq6(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Return a record a test and addition; finished units are found again."""
    from idc_core.analysis.analysis import analyze
    from idc_core.experiments.random_neurons import check_seeds
    from idc_core.experiments.rq6 import prepare_rq6, usual

    seeds, m = check_seeds(arguments.seeds), one_m(arguments)
    model, train, test = load(arguments, name, on_progress)
    layer = model.card.default_layer
    settings = replace(usual(train, layer, m), m=m)
    learnt = analyze(model, train, test, layer, settings.m, on_progress=on_progress)
    plan = prepare_rq6(model, train, test, learnt, settings, on_progress=on_progress)
    result = plan.run(seeds, on_progress=on_progress)
    about: Record = {
        "model": name,
        "layer": layer,
        "m": settings.m,
        "train": len(train),
        "tests": len(test),
        "fingerprint": model.card.fingerprint,
        "kinds": " ".join(settings.kinds),
        "share": settings.share,
        "noise": settings.deviation,
        "epsilon": settings.epsilon,
        "epochs": result.epochs,
        "steps": result.steps,
    }
    return [about | record for record in _records(result)]


def _records(found: Retraining) -> list[Record]:
    """Return a record a test and addition, with the paired differences to nothing and to random inputs."""
    from idc_core.experiments.rq6 import NONE, RANDOM

    listed: list[Record] = []
    mean, deviation = found.mean(), found.deviation()
    for column, test in enumerate(found.tests):
        for place, addition in enumerate(found.additions):
            counts = found.added(addition)
            record: Record = {
                "test": test,
                "addition": addition,
                "unit": found.unit,
                "seeds": len(counts),
                "added": sum(counts) / len(counts),
                "before": float(mean[place, 0, column]),
                "mean": float(mean[place, -1, column]),
                "deviation": float(deviation[place, -1, column]),
            }
            for other in (NONE, RANDOM):
                difference = None if other == addition else found.difference(addition, other)
                record |= _compared(other, difference, column, found.task == "classification")
            record |= {
                f"seed_{seed}": float(found.networks[addition, seed].values[-1, column])
                for seed in found.finished(addition)
            }
            listed.append(record)
    return listed


def _compared(other: str, one: Difference | None, column: int, share: bool) -> Record:
    """Return a difference as text and as numbers; None where an addition would be compared with itself."""
    numbers = [f"minus_{other}{ending}" for ending in ("", "_low", "_high")]
    if one is None:
        return {f"over_{other}": None, **dict.fromkeys(numbers)}
    values = [float(part[column]) for part in (one.mean, one.low, one.high)]
    mean, low, high = (f"{100 * value:+.2f}" if share else f"{value:+.4f}" for value in values)
    star = " *" if one.exceeds[column] else ""
    return {f"over_{other}": f"{mean} ({low} to {high}){star}", **dict(zip(numbers, values, strict=True))}


def _run_disagreements(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Retrain one network: one record for each addition and test."""
    from idc_core.experiments.disagreements import prepare_disagreements
    from idc_core.models import load_model
    from idc_core.models.registry import companions

    model, train, test = load(arguments, name, on_progress)
    models = [model, *(load_model(companion) for companion in companions(name)[1:])]
    plan = prepare_disagreements(models, train, test)
    result = plan.run(arguments.seeds, on_progress=on_progress)
    votes = [plan.votes(seed)[0] for seed in result.seeds]
    about: Record = {
        "model": name,
        "against": " ".join(companions(name)[1:]),
        "train": len(train),
        "votes_right": sum(votes) / len(votes),
    }
    rows = result.rows()
    # An addition has no difference to itself; all records have the same fields.
    fields = list(dict.fromkeys(key for row in rows for key in row))
    return [about | {key: _plain(row.get(key)) for key in fields} for row in rows]


def _plain(value: str | float | None) -> str | int | float | None:
    return value if value is None or isinstance(value, str | int) else float(value)


EXPERIMENTS = (
    Experiment(
        "rq6",
        "does training with inputs that raise IDC help more than with as many random ones, or with none (--rule and "
        "--share do not apply)?",
        ("lenet1-mnist", "lenet4-mnist", "lenet5-mnist"),
        # The last two hold intervals, in points for accuracies, starred where 0 is outside.
        ("model", "test", "addition", "added", "before", "mean", "deviation", "over_none", "over_random"),
        _run_rq6,
        (12,),
        trainings=True,
    ),
    Experiment(
        "finds",
        "does training with disagreements, labelled by vote, help more than with as many random or adversarial inputs?",
        ("lenet5-mnist",),
        ("model", "train", "addition", "test", "seeds", "added", "before", "mean", "deviation", "votes_right"),
        _run_disagreements,
    ),
)
