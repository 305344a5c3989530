"""Whether training with disagreements helps more than with as many random or adversarial inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.datasets import Dataset
from idc_core.errors import DataError, SettingError
from idc_core.experiments.retraining import APART, Examples, RetrainingPlan, Store, attacked
from idc_core.generation import differential_search, has_majority, majority
from idc_core.models.weights import fingerprint
from idc_core.store.cache import ArrayFolder, records_folder
from idc_core.suites.suite import content_address

_FORMAT = 2
"""Goes up when what is added changes."""

# The keys are those of tables and files that were written before.
ADDITIONS = {
    "nothing": "nothing added",
    "random": "as many random tests",
    "adversarial": "as many FGSM inputs",
    "finds": "disagreements, labelled by majority vote",
}
"""Additions by name, for a person."""

TESTS = {
    "tests": "held-out tests",
    "finds": "disagreements from held-out tests",
    "fgsm": "FGSM on each retrained network",
}
"""Tests by name, for a person."""


@dataclass(frozen=True)
class DisagreementSettings:
    """What the additions are made of."""

    constraint: str = "light"
    added: int = 100
    """Inputs of an addition at most."""
    searched: int = 200
    """Tests that disagreements are searched from."""
    iterations: int = 50
    """Steps of the search at most."""
    epsilon: float = 0.3
    """Of FGSM."""


@dataclass(frozen=True, eq=False, kw_only=True)
class DisagreementPlan(RetrainingPlan):
    """Retraining with disagreements.

    `votes` returns, for a seed, the share of its disagreements whose majority vote is the true class of the seed's
    test, and their number.
    """

    votes: Callable[[int], tuple[float, int]]


def disagreement_store(
    models: Sequence[nn.Module], train: Dataset, test: Dataset, settings: DisagreementSettings, epochs: int
) -> ArrayFolder:
    """Return the folder of a run's finished networks; its name is a digest of networks, data and settings."""
    prints = tuple(fingerprint(model) for model in models)
    about = (_FORMAT, prints, train.fingerprint, test.fingerprint, sorted(asdict(settings).items()), epochs)
    return ArrayFolder(records_folder() / "finds" / content_address(*about))


def prepare_disagreements(
    models: Sequence[nn.Module],
    train: Dataset,
    test: Dataset,
    settings: DisagreementSettings | None = None,
    *,
    epochs: int = 5,
    store: Store | None = None,
) -> DisagreementPlan:
    """Cut the tests into two halves: one that additions are made of, and one that is held out to measure.

    The first of three or more models is the one to be retrained; the others make a majority possible. Additions are
    functions of the seed, all of one size for a seed. Raises SettingError with fewer models; DataError if the tests are
    no pictures with classes, or the search finds no disagreement on the held-out tests.

    Notes
    -----
    After Pei et al., DeepXplore, SOSP 2017, section 7.3 and figure 10: disagreements are labelled by majority vote, so
    that nobody has to look at them; 100 of each kind are added, and the network is trained for five epochs more.
    Departures: the additions are made of one half of the tests and everything is measured on the other, over several
    seeds; disagreements from held-out tests and FGSM on the retrained networks are measured too.
    """
    chosen = settings or DisagreementSettings()
    if len(models) < 3:
        raise SettingError(f"A majority of models that disagree needs at least three; got {len(models)}.")
    if test.task != "classification" or test.inputs.ndim != 4:
        raise DataError("Disagreements are labelled by the votes of classifiers; expected pictures with classes.")
    order = np.random.default_rng(0).permutation(len(test))
    pool, held = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])

    def search(rows: NDArray[np.int64], seed: int) -> tuple[Examples, NDArray[np.generic]]:
        """Return disagreements with their votes, and the true classes of the tests that they were made of."""
        places = np.random.default_rng(seed).permutation(rows)[: chosen.searched]
        result = differential_search(
            models, test.inputs[places], chosen.constraint, iterations=chosen.iterations, seed=seed
        )
        votes = majority(result.predictions)
        kept = np.flatnonzero(has_majority(votes) & result.made)[: chosen.added]
        return (result.inputs[kept], votes[kept]), test.targets[places[result.seed_index[kept]]]

    pooled = cache(partial(search, pool))

    def sampled(seed: int) -> Examples:
        places = np.random.default_rng(seed + 1).permutation(pool)[: len(pooled(seed)[1])]
        return test.inputs[places], test.targets[places]

    def votes(seed: int) -> tuple[float, int]:
        (_, labels), true = pooled(seed)
        return float((labels == true).mean()) if len(true) else float("nan"), len(true)

    (inputs, _), true = search(held, APART)
    if not len(true):
        raise DataError(
            f"The models agree on everything that {chosen.searched:,} of the tests led to: there are no disagreements "
            "to measure on. Choose another constraint."
        )
    return DisagreementPlan(
        models[0],
        train,
        {
            "nothing": None,
            "random": sampled,
            "adversarial": lambda seed: attacked(models[0], *sampled(seed), chosen.epsilon),
            "finds": lambda seed: pooled(seed)[0],
        },
        {
            "tests": (test.inputs[held], test.targets[held]),
            "finds": (inputs, true),
            "fgsm": lambda model: attacked(model, test.inputs[held], test.targets[held], chosen.epsilon),
        },
        disagreement_store(models, train, test, chosen, epochs) if store is None else store,
        epochs,
        votes=votes,
    )
