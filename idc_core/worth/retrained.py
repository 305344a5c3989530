"""Mutants that are trained anew with a fault in their training, and the tests that kill them by statistics."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray

from idc_core.base.arrays import Ints
from idc_core.base.files import cache_folder
from idc_core.base.parameters import whole_number
from idc_core.base.progress import Progress, report
from idc_core.base.scipy_parts import stats
from idc_core.datasets import Dataset, load_dataset
from idc_core.errors import DataError, ModelError, SettingError
from idc_core.models.entry import ModelEntry
from idc_core.models.registry import find_entry
from idc_core.models.training import fit, reproducible
from idc_core.store.cache import ArrayFolder
from idc_core.worth.mutants import MUTANTS, Mutant, Mutants, Sieve, predicted_classes
from idc_core.worth.training_changes import TRAINING_CHANGES, Training, TrainingChange, Value

TRAININGS = 5
"""Trainings of the network and of each mutant, unless others are asked for."""

SIGNIFICANT = 0.05
"""The p-value below which a test kills a mutant."""

_DRAWS = 4
"""Mutants of one change and value at most, where something is drawn."""


def kills(original: NDArray[np.bool_], mutant: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which tests kill a mutant, bool (n,), given which trainings classify them rightly.

    A test kills a mutant if fewer of the mutant's trainings than of the network's get it right, and Fisher's exact test
    of these numbers, two-sided, gives p < 0.05. A set of tests kills what any of its tests kills: so a set never kills
    less when tests are added, and the tests' own kills say all about sets.

    Parameters
    ----------
    original, mutant : bool (trainings, n)
        Whether each training's network classifies each test rightly; of the two, numbers of trainings may differ.

    Raises
    ------
    SettingError
        If there are so few trainings that no test could kill.

    Notes
    -----
    J. Kim, N. Humbatova, G. Jahangirova, S. Yoo, P. Tonella, "New Formulation of DNN Statistical Mutation Killing for
    Ensuring Monotonicity", arXiv:2507.11199, 2025: DeepCrime's rule compares accuracies on whole sets, so that a larger
    set may no longer kill what a part of it does; Fisher's exact test is put in its place.
    """
    table = np.ones((len(original) + 1, len(mutant) + 1))
    for had in range(len(original) + 1):
        for has in range(len(mutant) + 1):
            counts = [[had, len(original) - had], [has, len(mutant) - has]]
            table[had, has] = stats.fisher_exact(counts)[1] if had * len(mutant) > has * len(original) else 1.0
    if table[-1, 0] >= SIGNIFICANT:
        raise SettingError(
            f"Of {len(original)} trainings against {len(mutant)}, no test can tell: p is {table[-1, 0]:.2f} at best. "
            "Take at least 4 of each."
        )
    return np.asarray(table[original.sum(0), mutant.sum(0)] < SIGNIFICANT)


def retrained_mutants(
    name: str, pool: Dataset, *, count: int = MUTANTS, trainings: int = TRAININGS, on_progress: Progress | None = None
) -> Mutants:
    """Train a network of the registry and its mutants several times, and find which tests of the pool kill each mutant.

    Mutants whose mean accuracy on the pool is below 90 % of the network's, and those that no test kills, are left out.
    What each training predicts is kept on disk, so that stopped work goes on where it was.

    Parameters
    ----------
    name : str
        A classifier that is trained here by its recipe.
    pool : Dataset
        Tests with their true classes.
    count : int
        Mutants to keep; fewer where there are no more.
    trainings : int
        Trainings of the network, with the seeds 0, 1, ..., and of each mutant, with the seeds after these.

    Raises
    ------
    ModelError
        If the network is not trained here, or no mutant is left.
    DataError
        If the tests have no classes.
    SettingError
        If there are fewer than 4 trainings.

    Notes
    -----
    N. Humbatova, G. Jahangirova, P. Tonella, "DeepCrime: Mutation Testing of Deep Learning Systems Based on Real
    Faults", ISSTA 2021, Table 1. Of its 24 operators, `TRAINING_CHANGES` has 16: the shipped networks have no dropout,
    regularisation, early stopping, validation set or clipping to change, and no layer that lacks a bias or an
    activation function. DeepCrime trains 20 times, and searches the least value of each operator that is killed.
    """
    entry = find_entry(name)
    if entry.recipe is None:
        raise ModelError(f"{name!r} is not trained here, so that it has no mutants that are trained anew.")
    if pool.task != "classification":
        raise DataError(f"Mutants are killed by tests with classes; the task of {pool.name!r} is {pool.task}.")
    whole_number("count", count, 1)
    whole_number("trainings", trainings, 4)
    training = Training(load_dataset(entry.dataset, "train"), entry.recipe)
    seeds = range(trainings)
    label = f"trainings of {entry.label}"
    original = np.stack([_predicted(entry, training, (), seed, pool) for seed in seeds]) == pool.targets
    sieve, kept = Sieve(float(original.mean())), 0
    for change, value, number in _candidates():
        random = np.random.default_rng((crc32(change.name.encode()), number))
        changed = change.apply(training, value, random)
        key = (change.name, value, number)
        rows: list[NDArray[np.bool_]] = []
        for seed in seeds:
            rows.append(_predicted(entry, changed, key, trainings + seed, pool) == pool.targets)
            report(on_progress, kept, count, f"{label}: {change.label}")
            if sieve.lost((np.mean(rows, axis=1).sum() + trainings - len(rows)) / trainings):
                break  # whatever the others reach, it is not accurate enough
        right = np.stack(rows)
        killed = kills(original, right) if len(right) == trainings else np.zeros(len(pool), bool)
        kept += sieve.take(Mutant(change.name, "", value, float(right.mean())), killed)
        if kept == count:
            break
    return sieve.mutants("retrained mutants", pool.targets)


def _candidates() -> Iterator[tuple[TrainingChange, Value, int]]:
    """Yield every change with each of its values, and again with other draws."""
    for number in range(_DRAWS):
        for change in TRAINING_CHANGES.values():
            for value in change.values:
                if change.drawn or not number:
                    yield change, value, number


def _predicted(entry: ModelEntry, training: Training, key: tuple[object, ...], seed: int, pool: Dataset) -> Ints:
    """Train a network, or read what it was kept to predict, int64 (n,); -1 everywhere where its training diverged."""
    about = (_FORMAT, entry.name, entry.recipe, training.recipe, key, seed, training.data.fingerprint)
    digest = hashlib.sha256(repr((*about, pool.fingerprint, torch.__version__)).encode()).hexdigest()[:32]
    folder = ArrayFolder(cache_folder() / "retrained", "What retrained mutants predict")
    found = folder.get(digest, {}).get("predicted")
    if found is None or found.shape != (len(pool),):
        found = _trained(entry, training, seed, pool)
        folder[digest] = {"predicted": found}
    return np.asarray(found, np.int64)


_FORMAT = 1
"""Goes up when a change of a training does something else."""


def _trained(entry: ModelEntry, training: Training, seed: int, pool: Dataset) -> Ints:
    with reproducible(seed):
        network = training.prepare(entry.build())
        try:
            fit(network, training.data, training.recipe, seed=seed, label=entry.label, loss_of=training.loss)
        except ModelError:  # it diverged: such a mutant knows nothing
            return np.full(len(pool), -1, np.int64)
        return predicted_classes(network.eval(), pool)
