"""The registry of coverage criteria: one decorator adds a criterion; menus and command line list them."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar

from idc_core.coverage.profiles import Profiles
from idc_core.errors import SettingError
from idc_core.progress import Progress
from idc_core.registry import Registry


@dataclass(frozen=True)
class CriterionCard:
    """What a menu, the command line or the documentation says about a criterion.

    Attributes
    ----------
    name : str
        Short lower-case name, the key in `CRITERIA`.
    label : str
        Name for a person.
    help : str
        One line: what the criterion measures.
    citation : str
        Paper, and the equation or section that defines the criterion.
    defaults : Mapping[str, object]
        Parameters of the constructor that have a default, with that default.
    """

    name: str
    label: str
    help: str
    citation: str
    defaults: Mapping[str, object]


class Criterion(ABC):
    """What every coverage criterion can do; streaming, incremental use and a cluster are this one mechanism.

    Attributes
    ----------
    card : CriterionCard
        Set by the decorator `criterion`.
    """

    card: ClassVar[CriterionCard]

    @abstractmethod
    def fit(self, inputs: Any, *, on_progress: Progress | None = None) -> Self:
        """Learn from training inputs: a tensor, an array, or an iterable of batches."""

    @abstractmethod
    def update(self, inputs: Any, *, on_progress: Progress | None = None) -> Self:
        """Account for more test inputs; may be called any number of times."""

    @abstractmethod
    def profile(self, inputs: Any, *, on_progress: Progress | None = None) -> Profiles:
        """Find what each input covers, without accounting for it."""

    @abstractmethod
    def fresh(self) -> Self:
        """Return another that has learned the same and has seen no tests."""

    @abstractmethod
    def merge(self, other: Self) -> Self:
        """Take in what another worker has seen; associative and commutative."""

    @property
    @abstractmethod
    def score(self) -> float:
        """Coverage in 0..1, or the criterion's own unit, said in its docstring."""


CRITERIA: Registry[type[Criterion]] = Registry("coverage criterion")
"""Criterion classes by short lower-case name; an unknown name raises `SettingError`."""

PAIRWISE = ("lsc", "dsc", "cc")
"""Criteria that compare every test with every training input, or with many other tests."""

C = TypeVar("C", bound=type[Criterion])


def criterion(name: str, *, label: str, help: str, citation: str) -> Callable[[C], C]:
    """Register a criterion class under a short name.

    The default parameters of the card are read from the constructor, so that they are written once.

    Parameters
    ----------
    name : str
        Short lower-case name, for example ``"idc"``.
    label, help, citation : str
        See `CriterionCard`.

    Returns
    -------
    Callable
        The class decorator; it returns the class it was given, with `card` set.

    Raises
    ------
    SettingError
        If the name is not lower-case or already taken.
    """
    if name != name.lower() or not name.isidentifier():
        raise SettingError(f"Expected a short lower-case name for a criterion, got {name!r}.")

    def register(cls: C) -> C:
        if name in CRITERIA:
            taken = CRITERIA[name].__qualname__
            raise SettingError(f"The criterion name {name!r} is taken by {taken}; give {cls.__qualname__} another.")
        parameters = inspect.signature(cls).parameters.values()
        defaults = {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}
        cls.card = CriterionCard(name, label, help, citation, MappingProxyType(defaults))
        CRITERIA[name] = cls
        return cls

    return register
