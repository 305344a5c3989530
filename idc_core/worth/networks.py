"""The study of one network by its name: pool, yardsticks and rankings, each made once and kept."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from idc_core.base.progress import Progress
from idc_core.base.registry import own_code
from idc_core.base.threads import number
from idc_core.coverage import CRITERIA
from idc_core.datasets import Dataset, load_dataset
from idc_core.errors import DataError, ModelError, SettingError
from idc_core.models import MODELS, ModelCard, ModelEntry, load_model
from idc_core.models.network import Network
from idc_core.store.cache import ArrayFolder, Record, records_folder, stored
from idc_core.tracing.trace import collect
from idc_core.worth.corruptions import corrupted_gains
from idc_core.worth.faults import distinct_faults
from idc_core.worth.measuring import kinds_of_mistakes, rank_by_rivals, rank_pool
from idc_core.worth.mutants import mutants_after_training
from idc_core.worth.operators import OPERATORS
from idc_core.worth.pooling import RETRAINED
from idc_core.worth.retrained import retrained_mutants
from idc_core.worth.study import StudySettings, study
from idc_core.worth.yardstick import Yardstick

FORMAT = 2
"""Goes up when the numbers of a record change."""


_TESTS_OF_A_FAULT, _FEWEST_FAULTS = 2, 3
"""Misclassified tests that make a distinct fault: a pool is a sample; and faults below which a network is left out."""


@dataclass(frozen=True)
class PoolSettings:
    """Which inputs a study takes, drawn at random where there are more.

    Attributes
    ----------
    tests : int
        Tests of the pool.
    train : int
        Training inputs from which criteria learn.
    """

    tests: int = 2000
    train: int = 5000


@dataclass(frozen=True, eq=False)
class Studied:
    """A network with the inputs of its study."""

    model: Network
    train: Dataset
    pool: Dataset


def _opened(name: str, pool: PoolSettings, *, on_progress: Progress | None = None) -> Studied:
    """Return a classifier with its training inputs and its pool of tests; SettingError for any other network."""
    model = load_model(name)
    if model.card.task != "classification":
        raise SettingError(f"What a score is worth is asked of classifiers, and {name} is none: leave it out.")
    train = load_dataset(model.card.dataset, "train", on_progress=on_progress).sample(pool.train)
    return Studied(model, train, load_dataset(model.card.dataset, "test", on_progress=on_progress).sample(pool.tests))


def _mistakes(studied: Studied, on_progress: Progress | None) -> Yardstick:
    predictions = collect(studied.model, studied.pool, (), on_progress=on_progress).predictions
    return kinds_of_mistakes(predictions, studied.pool.targets)


def _mutants(studied: Studied, on_progress: Progress | None) -> Yardstick:
    return mutants_after_training(studied.model, studied.pool, on_progress=on_progress).yardstick()


def _faults(studied: Studied, on_progress: Progress | None = None) -> Yardstick:
    """Return the distinct faults that a pool shows, told apart by another network; DataError where they are few."""
    other = load_model(_witness(studied.model.card))
    found = distinct_faults(
        studied.model, other, studied.pool, other.card.default_layer, least=_TESTS_OF_A_FAULT
    ).yardstick()
    if found.targets < _FEWEST_FAULTS:
        raise DataError(f"The pool shows {found.targets} distinct faults, too few to tell rankings apart.")
    return found


def _witness(card: ModelCard) -> str:
    """Return the name of the largest other shipped network for the same data, which tells faults apart."""
    others = {
        name: entry.parameters or 0
        for name, entry in MODELS.items()
        if isinstance(entry, ModelEntry) and entry.dataset == card.dataset and name != card.name
    }
    if not others:
        raise DataError(f"Faults are told apart by another network for {card.dataset}, and there is none.")
    return max(others, key=lambda name: others[name])


def _retrained(studied: Studied, on_progress: Progress | None) -> Yardstick:
    return retrained_mutants(studied.model.card.name, studied.pool, on_progress=on_progress).yardstick()


YARDSTICKS: dict[str, Callable[[Studied, Progress | None], Yardstick]] = {
    RETRAINED: _retrained,
    "mutants after training": _mutants,
    "distinct faults": _faults,
    "kinds of mistakes": _mistakes,
}
"""What makes each yardstick of a network, the most telling one first."""


def yardsticks_of_network(
    studied: Studied, names: Sequence[str], *, fresh: bool = False, on_progress: Progress | None = None
) -> tuple[list[Yardstick], dict[str, str]]:
    """Return the named yardsticks of a network, made once and kept, and why some are not there, by name."""
    held, missing = [], {}
    for name in names:
        make, kept = YARDSTICKS[name], ArrayFolder(records_folder() / "yardsticks")
        key = _digest({"name": name, **_about(studied)})
        if fresh or key not in kept:
            try:
                kept[key] = {"found": make(studied, on_progress).found}
            except (DataError, ModelError) as error:
                missing[name] = str(error)
                continue
        held.append(Yardstick(name, kept[key]["found"]))
    return held, missing


def study_network(
    name: str,
    pool: PoolSettings | None = None,
    settings: StudySettings | None = None,
    *,
    criteria: Sequence[str] | None = None,
    code: str = "",
    retrain: bool = False,
    fresh: bool = False,
    on_progress: Progress | None = None,
) -> Record:
    """Return the study of a network, as `idc_core.worth.study.study` gives it: from disk where it is finished.

    Beside it stand "network", "label", "data", "train" (training inputs), "prints" (fingerprints of network, training
    inputs and pool), "corruptions" (as `corrupted_gains` gives them), "missing" (why a ranking, a yardstick or the
    corruptions are not there, by name) and "seconds".
    `criteria` are those that rank; unless they are named, all do, and what they are compared with.
    `code` changes where the code of a criterion of your own does. With `retrain` there are mutants that are trained
    anew, too: some hundred trainings, of networks that are trained here.
    """
    pool, settings = pool or PoolSettings(), settings or StudySettings()
    studied = _opened(name, pool, on_progress=on_progress)
    names = list(CRITERIA) if criteria is None else list(criteria)
    key = {**_about(studied), "settings": asdict(settings), "criteria": names, "code": code}
    held_to = [name for name in YARDSTICKS if retrain or name != RETRAINED]
    key |= {"yardsticks": held_to, "rivals": criteria is None}

    def make() -> Record:
        began = time.monotonic()
        yardsticks, missing = yardsticks_of_network(studied, held_to, fresh=fresh, on_progress=on_progress)
        inputs = studied.model, studied.train, studied.pool
        rankings, unranked = rank_pool(*inputs, names, on_progress=on_progress)
        if criteria is None:
            rivals, absent = rank_by_rivals(*inputs, on_progress=on_progress)
            rankings, unranked = rankings + rivals, unranked | absent
        corrupted, uncorrupted = _corrupted(studied, names, on_progress)
        card = studied.model.card
        return {
            "network": name,
            "label": card.label,
            "data": card.dataset,
            "train": len(studied.train),
            "prints": [card.fingerprint, studied.train.fingerprint, studied.pool.fingerprint],
            "missing": missing | unranked | uncorrupted,
            **study(rankings, yardsticks, settings, on_progress=on_progress),
            **corrupted,
            "seconds": round(time.monotonic() - began),
        }

    return stored("worth", key, make, fresh=fresh)


def _corrupted(studied: Studied, names: Sequence[str], on_progress: Progress | None) -> tuple[Record, dict[str, str]]:
    """Return what corrupted tests cover, under "corruptions", or why nothing is known of it, under the same name."""
    try:
        found = corrupted_gains(studied.model, studied.train, studied.pool, names, on_progress=on_progress)
    except DataError as error:
        return {}, {"corruptions": str(error)}
    return {"corruptions": found}, {}


def _about(studied: Studied) -> Record:
    """Return what everything about a network's study follows from."""
    return {
        "format": FORMAT,
        "threads": number(),
        "network": studied.model.card.fingerprint,
        "train": studied.train.fingerprint,
        "pool": studied.pool.fingerprint,
        **({"operators": code} if (code := own_code(repr(list(OPERATORS)))) else {}),
    }


def _digest(key: Record) -> str:
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:32]
