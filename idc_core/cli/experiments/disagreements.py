"""Records of retraining with finds: beside as many random and adversarial inputs, and nothing, over several seeds."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from idc_core.cli.experiments.base import Experiment, Record

if TYPE_CHECKING:
    from idc_core.progress import Progress


def run(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Retrain one network: one record for each addition and test."""
    from idc_core.datasets import load_dataset
    from idc_core.experiments.disagreements import compare_finds
    from idc_core.generation.similar_models import companions
    from idc_core.models import load_model

    models = [load_model(one) for one in companions(name)]
    data = models[0].card.dataset
    train = load_dataset(data, "train", arguments.limit_train, on_progress=on_progress)
    test = load_dataset(data, "test", arguments.limit, on_progress=on_progress)
    found, ready = compare_finds(models, train, test, seeds=arguments.seeds, on_progress=on_progress)
    votes = [ready.votes(seed)[0] for seed in found.seeds]
    about: Record = {
        "model": name,
        "against": " ".join(companions(name)[1:]),
        "train": len(train),
        "votes_right": sum(votes) / len(votes),
    }
    rows = found.rows()
    # An addition has no difference to itself; all records have the same fields.
    fields = list(dict.fromkeys(key for row in rows for key in row))
    return [about | {key: _plain(row.get(key)) for key in fields} for row in rows]


def _plain(value: Any) -> str | int | float | None:
    return value if value is None or isinstance(value, str | int) else float(value)


EXPERIMENT = Experiment(
    "finds",
    "does training with finds, labelled by vote, help more than with as many random or adversarial inputs?",
    ("lenet5-mnist",),
    ("model", "train", "addition", "test", "seeds", "added", "before", "mean", "deviation", "votes_right"),
    run,
)
