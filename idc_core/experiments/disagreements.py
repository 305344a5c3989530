"""Whether training with finds of a differential search helps more than with as many random or adversarial inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.cache import UnitFolder, runs_folder
from idc_core.datasets import Dataset
from idc_core.errors import DataError, SettingError
from idc_core.experiments.retraining_results import Retraining, Unit
from idc_core.experiments.robustness import Addition, Examples, Store, Test, retrain
from idc_core.generation import differential_search, has_majority, majority
from idc_core.models.weights import fingerprint
from idc_core.perturbation import attack
from idc_core.progress import Progress
from idc_core.suites.suite import content_address

ADDITIONS = {
    "nothing": "nothing added",
    "random": "as many random tests",
    "adversarial": "as many FGSM inputs",
    "finds": "finds, labelled by vote",
}
"""What is added, by name, for a person."""

TESTS = {
    "tests": "tests that were held back",
    "finds": "finds from tests held back",
    "fgsm": "FGSM on each retrained network",
}
"""What is measured, by name, for a person."""

APART = 1_000_003
"""Added to the seed of the search that finds are measured on, so that it is none of those that are trained on."""


@dataclass(frozen=True)
class Settings:
    """What the additions are.

    Attributes
    ----------
    constraint : str
        A key of `idc_core.generation.CONSTRAINTS`.
    added : int
        Inputs of an addition at most.
    searched : int
        Tests that finds are searched from.
    iterations : int
        Steps of the search at most.
    epsilon : float
        Of FGSM.
    """

    constraint: str = "light"
    added: int = 100
    searched: int = 200
    iterations: int = 50
    epsilon: float = 0.3


@dataclass(frozen=True, eq=False)
class Prepared:
    """What retraining is given.

    Attributes
    ----------
    additions : dict of str to Addition
        Keys of `ADDITIONS`; functions of the seed, all of one size for a seed.
    tests : dict of str to Test
        Keys of `TESTS`.
    votes : callable
        From a seed to the share of its finds whose majority answers what is right for the test they were made of, and
        how many finds there are.
    """

    additions: dict[str, Addition]
    tests: dict[str, Test]
    votes: Callable[[int], tuple[float, int]]


def prepare(models: Sequence[nn.Module], test: Dataset, settings: Settings | None = None) -> Prepared:
    """Cut the tests into two halves: one that additions are made of, and one that is held back to measure.

    Parameters
    ----------
    models : sequence of Module
        Three or more, so that there can be a majority; the first one is the one to be retrained.
    test : Dataset
        Pictures with classes.
    settings : Settings, optional

    Returns
    -------
    Prepared

    Raises
    ------
    SettingError
        If there are fewer than three models.
    DataError
        If the tests are no pictures with classes, or the search finds nothing on the tests held back.
    """
    chosen = settings or Settings()
    if len(models) < 3:
        raise SettingError(f"A majority of models that disagree needs at least three; got {len(models)}.")
    if test.task != "classification" or test.inputs.ndim != 4:
        raise DataError("Finds are labelled by the votes of classifiers; expected pictures with classes.")
    order = np.random.default_rng(0).permutation(len(test))
    pool, held = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])

    def search(rows: NDArray[np.int64], seed: int) -> tuple[Examples, NDArray[Any]]:
        """Return finds with their votes, and what is right for the tests that they were made of."""
        places = np.random.default_rng(seed).permutation(rows)[: chosen.searched]
        found = differential_search(
            models, test.inputs[places], chosen.constraint, iterations=chosen.iterations, seed=seed
        )
        votes = majority(found.predictions)
        kept = np.flatnonzero(has_majority(votes))[: chosen.added]
        return (found.inputs[kept], votes[kept]), test.targets[places[found.seed_index[kept]]]

    pooled = cache(partial(search, pool))

    def drawn(seed: int) -> NDArray[np.int64]:
        return np.random.default_rng(seed + 1).permutation(pool)[: len(pooled(seed)[1])]

    def adversarial(seed: int) -> Examples:
        places = drawn(seed)
        return _attacked(models[0], test.inputs[places], test.targets[places], chosen.epsilon)

    def votes(seed: int) -> tuple[float, int]:
        (_, said), right = pooled(seed)
        return float((said == right).mean()) if len(right) else float("nan"), len(right)

    (inputs, _), right = search(held, APART)
    if not len(right):
        raise DataError(
            f"The models agree on everything that {chosen.searched:,} of the tests led to: there are no finds to "
            "measure on. Choose another constraint."
        )
    return Prepared(
        {
            "nothing": None,
            "random": lambda seed: (test.inputs[drawn(seed)], test.targets[drawn(seed)]),
            "adversarial": adversarial,
            "finds": lambda seed: pooled(seed)[0],
        },
        {
            "tests": (test.inputs[held], test.targets[held]),
            "finds": (inputs, right),
            "fgsm": lambda model: _attacked(model, test.inputs[held], test.targets[held], chosen.epsilon),
        },
        votes,
    )


def compare_finds(
    models: Sequence[nn.Module],
    train: Dataset,
    test: Dataset,
    settings: Settings | None = None,
    *,
    seeds: int = 5,
    epochs: int = 5,
    store: Store | None = None,
    on_result: Callable[[str, int, Unit], None] | None = None,
    on_progress: Progress | None = None,
) -> tuple[Retraining, Prepared]:
    """Retrain the first model with finds, and with as many random and adversarial inputs.

    Parameters
    ----------
    models, test, settings
        As in `prepare`.
    train : Dataset
        What the first model was trained on.
    seeds, epochs, on_result, on_progress
        As in `idc_core.experiments.robustness.retrain`.
    store : Store, optional
        Default: a folder of this run's own, so that what was finished is found again.

    Returns
    -------
    Retraining
        Where the work was stopped, with what was finished.
    Prepared
        What was added and measured.

    Raises
    ------
    SettingError, DataError, ModelError
        As `prepare` and `retrain`.

    Notes
    -----
    After Pei et al., DeepXplore, SOSP 2017, section 7.3 and figure 10: finds are labelled by majority vote, so that
    nobody has to look at them; 100 of each kind are added, and the network is trained for five epochs more. Departures:
    the additions are made of one half of the tests and everything is measured on the other, over several seeds; finds
    from tests held back and FGSM on the retrained networks are measured too.
    """
    chosen = settings or Settings()
    ready = prepare(models, test, chosen)
    if store is None:
        prints = tuple(fingerprint(model) for model in models)
        about = (prints, train.fingerprint, test.fingerprint, sorted(asdict(chosen).items()), epochs)
        store = UnitFolder(runs_folder() / "finds" / content_address(*about))
    found = retrain(
        models[0],
        train,
        ready.additions,
        ready.tests,
        seeds=seeds,
        epochs=epochs,
        store=store,
        on_result=on_result,
        on_progress=on_progress,
    )
    return found, ready


def _attacked(model: nn.Module, inputs: NDArray[Any], targets: NDArray[Any], epsilon: float) -> Examples:
    return np.asarray(attack(model, inputs, targets, "fgsm", epsilon=epsilon).inputs, np.float32), targets
