"""Records of RQ1 and of the ablation: important neurons against random ones."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from idc_core.cli.experiments.base import PAPER, Experiment, Record, load, one_m

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from idc_core.base.progress import Progress
    from idc_core.datasets import Dataset
    from idc_core.experiments.rq1 import RQ1
    from idc_core.models import Network


@dataclass(frozen=True, eq=False)
class _RankedNetwork:
    """A network with its tests, and the neurons of its default layer ranked on its training inputs."""

    model: Network
    train: Dataset
    test: Dataset
    ranking: NDArray[np.int64]
    about: Record

    @property
    def layer(self) -> str:
        """The network's default layer."""
        return self.model.card.default_layer


def _ranked_networks(arguments: argparse.Namespace, name: str, on_progress: Progress) -> Iterator[_RankedNetwork]:
    """Load a network and its tests, and rank its neurons, for every part of the tests that the protocol looks at."""
    from idc_core.importance.important_neurons import PRIORITIES, check_m, most_important
    from idc_core.tracing.trace import collect

    m, protocol = one_m(arguments), arguments.protocol
    model, train, test = load(arguments, name, on_progress)
    layer = model.card.default_layer
    for learning, tests in protocol.parts(arguments.name, train, test):
        learnt = collect(model, learning, [layer], protocol.relevance, on_progress=on_progress)
        importance = PRIORITIES["sum"].total(learnt.relevance[layer])
        check_m(m, len(importance))
        ranking = most_important(importance, len(importance))
        about: Record = {
            "model": name,
            "layer": layer,
            "neurons": len(importance),
            "train": len(learning),
            "tests": len(tests),
            "rule": protocol.rule,
            "bias": protocol.bias,
            "fingerprint": model.card.fingerprint,
            "important_neurons": " ".join(str(neuron) for neuron in ranking[:m]),
        }
        yield _RankedNetwork(model, learning, tests, ranking, about)


def _run_rq1(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Answer RQ1 for one network: one record with distances as they are, one in standard deviations."""
    from idc_core.experiments.random_neurons import check_seeds
    from idc_core.experiments.rq1 import rq1
    from idc_core.experiments.suites import averaged

    parts, seeds = [], check_seeds(arguments.seeds)
    for ready in _ranked_networks(arguments, name, on_progress):
        result = rq1(
            ready.model,
            ready.test,
            ready.layer,
            ready.ranking[: arguments.m[0]],
            share=arguments.share,
            seeds=arguments.seeds,
            on_progress=on_progress,
            **arguments.protocol.pixels,
        )
        about = ready.about | {
            "m": arguments.m[0],
            "share": arguments.share,
            "changed": float(result.changed.mean()),
            "constant": result.constant,
        }
        parts.append([about | _figures(result, seeds, scaled) for scaled in (False, True)])
    return averaged(parts)


def _figures(result: RQ1, seeds: tuple[int, ...], scaled: bool) -> Record:
    summary = result.summary(scaled)
    _, others = result.distances(scaled)
    return {
        "unit": "deviations" if scaled else "activation",
        "important": summary.important.mean,
        "random": summary.random.mean,
        "ratio": summary.ratio,
        "share_more": summary.share_more,
        "effect": summary.effect,
        "seeds_won": f"{summary.seeds_won} of {len(result.seeds)}",
        **{f"important_{key}": value for key, value in asdict(summary.important).items() if key != "mean"},
        **{f"random_{key}": value for key, value in asdict(summary.random).items() if key != "mean"},
        **dict.fromkeys(f"random_seed_{seed}" for seed in seeds),  # all records have the same fields
        **{f"random_seed_{seed}": float(row.mean()) for seed, row in zip(result.seeds, others, strict=True)},
    }


def _run_ablation(arguments: argparse.Namespace, name: str, on_progress: Progress) -> list[Record]:
    """Silence neurons of one network: one record for each number of neurons, from none to m."""
    from idc_core.experiments.ablation import ablate
    from idc_core.experiments.orders import other_orders

    ready = next(_ranked_networks(arguments, name, on_progress))
    result = ablate(
        ready.model,
        ready.test,
        ready.test.targets,
        ready.layer,
        ready.ranking[: arguments.m[0]],
        range(arguments.m[0] + 1),
        arguments.seeds,
        task=ready.test.task,
        on_progress=on_progress,
    )
    others = {
        name: ablate(
            ready.model, ready.test, ready.test.targets, ready.layer, order, result.counts, 1, task=ready.test.task
        ).important
        for name, order in other_orders(ready.model, ready.train, ready.layer, arguments.protocol.relevance).items()
    }
    rows = (result.counts, result.important, result.random_mean, result.random_low, result.random_high)
    return [
        ready.about
        | {
            "unit": result.unit,
            "silenced": int(count),
            "important": float(own),
            "random": float(mean),
            "lowest": float(low),
            "highest": float(high),
            **{f"by_{name}": float(values[place]) for name, values in others.items()},
        }
        for place, (count, own, mean, low, high) in enumerate(zip(*rows, strict=True))
    ]


_ORDERS = ("by_absolute", "by_normalised", "by_sensitivity")
"""Fields of the ablation: the same with the first neurons of other orders silenced."""

EXPERIMENTS = (
    Experiment(
        "rq1",
        "do important neurons move more than random ones when an input's most relevant pixels change?",
        PAPER,
        ("model", "layer", "tests", "m", "unit", "important", "random", "ratio", "share_more", "effect", "seeds_won"),
        _run_rq1,
        protocols=True,
        trainings=True,
    ),
    Experiment(
        "ablation",
        "what does silencing the most important neurons cost, beside silencing as many random ones?",
        PAPER,
        ("model", "layer", "tests", "unit", "silenced", "important", "random", "lowest", "highest", *_ORDERS),
        _run_ablation,
    ),
)
