"""Suites of one network of which it is known what they find: what relations of score and faults are learned from."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Ints
from idc_core.base.progress import Progress
from idc_core.coverage.prioritisation import UNCERTAINTIES
from idc_core.coverage.streamed import fit_all
from idc_core.datasets import Dataset
from idc_core.errors import DataError, SettingError
from idc_core.models.network import Network
from idc_core.store.cache import Record, stored
from idc_core.tracing.trace import collect
from idc_core.worth.measuring import usual_criterion
from idc_core.worth.mutants import mutants_after_training
from idc_core.worth.networks import PoolSettings, about, faults_of, open_network
from idc_core.worth.prediction import COUNTED, MOST_SHARE
from idc_core.worth.rankings import Ranking, rank_by_profiles, rank_by_values
from idc_core.worth.telling import BEHIND

_FEWEST_FAULTS = 5
"""Distinct faults below which the share found is told from too few."""


@dataclass(frozen=True)
class SuiteSettings:
    """Which suites of a pool are looked at.

    Attributes
    ----------
    tests, train : int
        Tests among which faults are counted, and training inputs beside which mutants are killed.
    sizes : int
        Numbers of tests, from a hundredth of the pool to a half.
    draws : int
        Random suites of each size; one more is selected by IDC, and one by uncertainty.
    seed : int
    """

    tests: int = COUNTED
    train: int = 5000
    sizes: int = 20
    draws: int = 3
    seed: int = 0


def suites_of_network(
    name: str, settings: SuiteSettings | None = None, *, fresh: bool = False, on_progress: Progress | None = None
) -> Record:
    """Return what suites of a shipped classifier find, and their scores: from disk where it is finished.

    Returns
    -------
    dict
        "network", "label", "data"; "tests", "faults", "mutants": how many there are; "suites": lists of equal length,
        "kind" ("random", "idc" or "deepgini": what selected them), "size", "idc", "mutants" (scores, 0..1, as in
        `prediction.Score`) and "found", the share of distinct faults that they find; "seconds".

    Raises
    ------
    DataError
        If the tests show fewer than five distinct faults.
    SettingError
        If the network is no classifier.
    """
    settings = settings or SuiteSettings()
    studied = open_network(name, PoolSettings(settings.tests, settings.train), on_progress=on_progress)
    pool, card = studied.pool, studied.model.card

    def make() -> Record:
        began = time.monotonic()
        faults = faults_of(studied)
        if faults.targets < _FEWEST_FAULTS:
            raise DataError(f"{len(pool):,} tests show {faults.targets} distinct faults, too few to tell shares.")
        kills = _Kills(studied.model, studied.train, pool, on_progress)
        criterion = usual_criterion(studied.model, "idc")
        fit_all([criterion], studied.train, on_progress=on_progress)
        covered = rank_by_profiles("idc", criterion.profile(pool, on_progress=on_progress))
        unsure = rank_by_values(BEHIND, UNCERTAINTIES[BEHIND](collect(studied.model, pool, ()).scores))
        suites = _suites(len(pool), (covered, unsure), settings)
        columns: dict[str, list[object]] = {
            "kind": [kind for kind, _ in suites],
            "size": [round(len(suite) / len(pool), 4) for _, suite in suites],
            "idc": [round(covered.score(suite), 4) for _, suite in suites],
            "mutants": [round(kills.score(suite), 4) for _, suite in suites],
            "found": [round(faults.share(suite), 4) for _, suite in suites],
        }
        return {
            "network": name,
            "label": card.label,
            "data": card.dataset,
            "tests": len(pool),
            "faults": faults.targets,
            "mutants": kills.targets,
            "suites": columns,
            "seconds": round(time.monotonic() - began),
        }

    return stored("fault_suites", {**about(studied), "settings": asdict(settings)}, make, fresh=fresh)


def _suites(tests: int, rankings: tuple[Ranking, ...], settings: SuiteSettings) -> list[tuple[str, Ints]]:
    """Return suites of a pool with what selected them."""
    random = np.random.default_rng(settings.seed)
    sizes = np.geomspace(max(2, tests // 100), MOST_SHARE * tests, settings.sizes).round().astype(np.int64)
    suites = []
    for number, size in enumerate(sizes.tolist()):
        suites += [("random", random.permutation(tests)[:size].astype(np.int64)) for _ in range(settings.draws)]
        suites += [(ranking.name, ranking.first(size, settings.seed + number)) for ranking in rankings]
    return suites


class _Kills:
    """Mutants, and which of them suites of a pool kill of those that they or training inputs kill."""

    def __init__(self, model: Network, train: Dataset, pool: Dataset, on_progress: Progress | None) -> None:
        found = mutants_after_training(model, joined_inputs(pool, train), on_progress=on_progress).yardstick().found
        self._of_tests = found[: len(pool)]
        self._of_train: NDArray[np.bool_] = np.asarray(found[len(pool) :].any(0))

    @property
    def targets(self) -> int:
        """Pairs of a mutant and a class that some input kills."""
        return int(self._of_tests.shape[1])

    def score(self, suite: Ints) -> float:
        """Return the share, 0..1, of what a suite or the training inputs kill that the suite kills."""
        mine = self._of_tests[suite].any(0)
        return float(mine.sum() / max(int((mine | self._of_train).sum()), 1))


def joined_inputs(one: Dataset, other: Dataset) -> Dataset:
    """Return the inputs of one data set with those of another behind them, and the targets of both."""
    inputs, targets = (np.concatenate([getattr(one, what), getattr(other, what)]) for what in ("inputs", "targets"))
    return replace(one, inputs=inputs, targets=targets, fingerprint=f"{one.fingerprint}, {other.fingerprint}")


def mutation_score(model: Network, train: Dataset, tests: Dataset, *, on_progress: Progress | None = None) -> float:
    """Return the share of mutants, by class, that tests kill of those that they or training inputs kill, 0..1.

    A `Relation` by "mutants" says which share of the distinct faults such tests find; it needs no other network, and
    nothing looks at what the network itself gets wrong.

    Parameters
    ----------
    model : Network
        A classifier.
    train, tests : Dataset
        Its training inputs, of which at most 5,000 are drawn, and the tests, with their true classes.

    Raises
    ------
    SettingError
        If there are more tests than half of those among which the faults of a relation are counted.
    DataError, ModelError
        If the tests have no classes, or no mutant is left.
    """
    usual = SuiteSettings()
    most = int(MOST_SHARE * usual.tests)
    if len(tests) > most:
        raise SettingError(
            f"What suites find is known of at most {most:,} tests, and these are {len(tests):,}: choose fewer of them."
        )
    kills = _Kills(model, train.sample(usual.train), tests, on_progress)
    return kills.score(np.arange(len(tests)))
