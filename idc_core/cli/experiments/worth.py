"""Records of what a higher score is worth: what tests find that each criterion selects, over networks."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from idc_core.cli.executors import executor_of, source_of
from idc_core.cli.experiments.base import Experiment, Record

if TYPE_CHECKING:
    from idc_core.base.progress import Progress
    from idc_core.store.cache import Record as Kept
    from idc_core.worth.networks import PoolSettings

NETWORKS = (
    *(f"lenet{number}-{data}" for data in ("digits", "mnist") for number in (1, 4, 5)),
    *(f"deepxplore-model{number}" for number in (1, 2, 3)),
    *(f"deepimportance-lenet{number}" for number in (1, 4, 5)),
    "convnet-cifar10",
    "vit-cifar10",
)
"""The shipped classifiers of pictures."""


def _run(arguments: argparse.Namespace, models: Sequence[str], on_progress: Progress) -> list[Record]:
    """Study networks, each once, and return a record a yardstick, budget and ranking."""
    from idc_core.worth.documents import write_documents
    from idc_core.worth.published import publish

    found = _study(arguments, models, on_progress)
    if arguments.publish:
        publish(found)
        write_documents()
    return records_of(found)


def _study(arguments: argparse.Namespace, models: Sequence[str], on_progress: Progress) -> dict[str, Kept]:
    """Return the study of each network, on the engine that was asked for."""
    from idc_core.worth.networks import study_network

    pool, how = pool_of(arguments), {"fresh": arguments.fresh, "retrain": arguments.retrain}
    if arguments.engine is None and arguments.address is None:
        return {name: study_network(name, pool, **how, on_progress=_named(on_progress, name)) for name in models}
    from idc_core.datasets import load_dataset
    from idc_core.models import load_model
    from idc_core.work.worth import study_networks

    first = load_model(models[0])
    source = source_of(arguments, first, load_dataset(first.card.dataset, "test", 1), 1)
    with executor_of(arguments)() as executor:
        return study_networks(executor, source, models, pool, **how, on_progress=on_progress)


def pool_of(arguments: argparse.Namespace) -> PoolSettings:
    """Return how many tests and training inputs the command line asks for."""
    from idc_core.worth.networks import PoolSettings

    usual = PoolSettings()
    return PoolSettings(arguments.limit or usual.tests, arguments.limit_train or usual.train)


def records_of(found: Mapping[str, Kept]) -> list[Record]:
    """Return a record a yardstick, budget and ranking, pooled over networks."""
    from idc_core.worth.pooling import correlated, selected, yardsticks_of
    from idc_core.worth.study import StudySettings

    records: list[Record] = []
    for yardstick in yardsticks_of(found):
        rho = correlated(found, yardstick)
        sizes = next(record["budgets"] for record in found.values() if yardstick in record["yardsticks"])
        for budget in range(len(sizes)):
            for row in selected(found, yardstick, budget):
                equal, apart = (rho[design].get(row.ranking) for design in ("equal", "stretched"))
                records.append(
                    {
                        "yardstick": yardstick,
                        "budget": f"{100 * StudySettings().budgets[budget]:g} %",
                        "ranking": row.ranking,
                        "networks": row.more.networks,
                        "found": row.found,
                        "random": row.random,
                        "more": row.more.value,
                        "low": row.more.low,
                        "high": row.more.high,
                        "p": row.more.p,
                        "p_holm": row.more.corrected_p,
                        "a12": row.above,
                        "rho": equal.value if equal else None,
                        "rho_stretched": apart.value if apart else None,
                    }
                )
    return records


def _named(progress: Progress, name: str) -> Progress:
    return lambda done, total, label: progress(done, total, f"{name}: {label}")


EXPERIMENTS = (
    Experiment(
        "worth",
        "do tests that a criterion selects find more mutants and faults than random ones, and does its score say so?",
        NETWORKS,
        (
            "yardstick",
            "budget",
            "ranking",
            "networks",
            "found",
            "random",
            "more",
            "low",
            "high",
            "p_holm",
            "a12",
            "rho",
        ),
        lambda arguments, name, on_progress: _run(arguments, (name,), on_progress),
        together=_run,
    ),
)
