"""The laws that all criteria keep, asked of one criterion on a small network: what the tests hold the twelve to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from idc_core.base.arrays import Ints
from idc_core.base.own_code import said
from idc_core.coverage import CRITERIA
from idc_core.coverage.registry import Criterion
from idc_core.datasets import Dataset, load_dataset
from idc_core.errors import IdcError
from idc_core.models import load_model

_NETWORK = "lenet1-digits"
_TRAIN, _TESTS = 300, 60


@dataclass(frozen=True)
class Law:
    """One law, and whether a criterion keeps it.

    Attributes
    ----------
    says : str
    kept : bool or None
        None where the criterion's card says that the law is not for it.
    why : str
        What was seen where it is not kept.
    """

    says: str
    kept: bool | None
    why: str = ""


class _Seen:
    """Scores of one fitted criterion after some tests."""

    def __init__(self, fitted: Criterion, tests: Dataset) -> None:
        self.fitted, self.tests = fitted, tests

    def after(self, *parts: Ints) -> Criterion:
        """Return a fresh criterion that has seen the tests at these places, part by part."""
        criterion = self.fitted.fresh()
        for part in parts:
            criterion.update(self.tests.inputs[part])
        return criterion

    def profiles_count(self, chosen: Ints) -> tuple[float, float]:
        """Return the score that the profiles of tests give, and that of the criterion itself."""
        profiles = self.fitted.fresh().profile(self.tests.inputs[chosen])
        own = self.after(chosen).score
        return (own if profiles.total == 0 else profiles.coverage()), own


def check_laws(name: str) -> list[Law]:
    """Ask every law of a criterion of the registry, with its default settings; one that fails is told, not raised."""
    model, card = load_model(_NETWORK), CRITERIA[name].card
    train, tests = load_dataset(model.card.dataset, "train", _TRAIN), load_dataset(model.card.dataset, "test", _TESTS)
    make: Callable[..., Criterion] = CRITERIA[name]
    layers = model.card.default_layer if name == "idc" or card.one_layer else tuple(model.card.layers)
    try:
        seen = _Seen(make(model, layers).fit(train), tests)
    except IdcError as error:
        return [Law("It learns from training inputs.", False, str(error))]
    half, other, both = np.arange(30), np.arange(30, 60), np.arange(60)
    shuffled = np.random.default_rng(0).permutation(60)
    grown = _ask("Its score does not fall when tests are added.", lambda: _grows(seen, half, other))
    ordered = _ask("Its score does not depend on the order.", lambda: _equal(seen.after(both), seen.after(shuffled)))
    return [
        Law("It learns from training inputs.", True),
        _ask("Its score is finite, and a share where it has no unit.", lambda: _in_range(seen.after(both), card.unit)),
        Law(grown.says, None) if card.can_fall else grown,
        Law(ordered.says, None) if card.order_matters else ordered,
        _ask("Its score does not depend on batches.", lambda: _equal(seen.after(both), seen.after(half, other))),
        _ask(
            "Two halves merged score as the whole.",
            lambda: card.order_matters or _equal(seen.after(half).merge(seen.after(other)), seen.after(both)),
        ),
        _ask("Merging does not depend on who merges.", lambda: _commutes(seen, half, other)),
        _ask("Its profiles count what it counts.", lambda: np.isclose(*seen.profiles_count(both), rtol=1e-9)),
        _ask("A profile counts nothing.", lambda: _profiles_without_counting(seen, half)),
        _ask("A fresh one has seen no tests.", lambda: seen.after(both).fresh().score == seen.fitted.fresh().score),
    ]


def _ask(says: str, holds: Callable[[], object]) -> Law:
    try:
        return Law(says, bool(holds()))
    except Exception as error:  # a person's code may fail in any way, which is what is asked
        return Law(says, False, said(error))


def _equal(one: Criterion, other: Criterion) -> bool:
    return bool(np.isclose(one.score, other.score, rtol=1e-6))


def _grows(seen: _Seen, half: Ints, other: Ints) -> bool:
    return seen.after(half).score <= seen.after(half, other).score


def _in_range(criterion: Criterion, unit: str) -> bool:
    score = criterion.score
    return bool(np.isfinite(score)) and score >= 0 and (bool(unit) or score <= 1)


def _commutes(seen: _Seen, half: Ints, other: Ints) -> bool:
    return _equal(seen.after(half).merge(seen.after(other)), seen.after(other).merge(seen.after(half)))


def _profiles_without_counting(seen: _Seen, half: Ints) -> bool:
    criterion = seen.after(half)
    before = criterion.score
    criterion.profile(seen.tests.inputs)
    return before == criterion.score
