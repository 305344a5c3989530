"""The registry of coverage criteria: one decorated class adds a criterion; menus, command line and tests list them."""

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Arrays
from idc_core.base.parameters import Parameter
from idc_core.base.progress import Progress
from idc_core.base.registry import Registry
from idc_core.coverage.profiles import Profiles
from idc_core.errors import SettingError

if TYPE_CHECKING:
    from idc_core.coverage.saved import Saved

Aim = Callable[[Any, NDArray[np.int64]], tuple[NDArray[np.int64], NDArray[np.float64]]]
"""From a criterion and targets (n,): the neuron behind each target, and the activation that covers it (inf: a large
one, -inf: a small one)."""


@dataclass(frozen=True)
class CriterionCard:
    """Facts on a criterion that menus, the command line, searches and experiments need."""

    name: str  # short lower-case name, the key in `CRITERIA`
    label: str  # name for a person
    help: str  # one line: what the criterion measures
    citation: str  # paper, and the equation or section that defines the criterion
    defaults: Mapping[str, object]  # parameters of the constructor that have a default, with that default
    parameters: tuple[Parameter, ...] = ()
    """Those that a menu offers, with their usual ranges; the constructor may take more. Equal parameters of several
    criteria share one control."""
    unit: str = ""  # unit of the score; empty where it is the share of targets covered
    pairwise: bool = False  # whether it compares every test with many other inputs, which takes long on large data sets
    needs_classes: bool = False  # whether it compares classes, so that it is not defined for regression
    one_layer: bool = False  # whether it usually looks at one layer, the network's default one; else at all layers
    order_matters: bool = False  # whether the score depends on the order of the tests
    can_fall: bool = False  # whether the score can fall when tests are added
    by_value: str = "largest value"  # how its order by the values of `Profiles` is called, where it has values
    aim: Aim | None = None  # how a search reaches targets; None where targets are not activations of single neurons


class Criterion(ABC):
    """A coverage criterion: one interface for streaming, incremental use and a cluster; `criterion` sets the card."""

    card: ClassVar[CriterionCard]
    unmerged: ClassVar[tuple[str, ...]] = ("model",)
    """Attributes that `merge` does not look at, so that they need not be sent to whom merges."""
    counted: ClassVar[tuple[str, ...]] = ()
    """Attributes that tests change: every copy has its own."""

    def __copy__(self) -> Self:
        other = alike(self)
        for name in self.counted:
            value = getattr(self, name)
            setattr(other, name, tuple(map(copy.copy, value)) if isinstance(value, tuple) else copy.copy(value))
        return other

    @abstractmethod
    def fit(self, inputs: object, *, on_progress: Progress | None = None) -> Self:
        """Learn from training inputs: a tensor, an array, or an iterable of batches."""

    @abstractmethod
    def update(self, inputs: object, *, on_progress: Progress | None = None) -> Self:
        """Account for more test inputs; may be called any number of times. If it fails, none of them counts."""

    @abstractmethod
    def profile(self, inputs: object, *, on_progress: Progress | None = None) -> Profiles:
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
        """Coverage in 0..1, or in the unit on the card."""

    def save(self, path: str | Path) -> None:
        """Write settings and what was learned and counted into a file that `idc_core.load_criterion` reads.

        The network is not in it; it is known again by its fingerprint.

        Raises
        ------
        SettingError
            If the file cannot be written, or the criterion's class does not say what it has learned.
        """
        from idc_core.coverage.saved import save

        save(self, path)

    def _settings(self) -> dict[str, object]:
        """Return the constructor's arguments besides the network, as plain values."""
        raise self._unsaved()

    def _state(self) -> Arrays:
        """Return what was learned and counted, as arrays by name."""
        raise self._unsaved()

    def _restore(self, saved: "Saved") -> None:
        """Take over what `_state` has given."""
        raise self._unsaved()

    def _unsaved(self) -> SettingError:
        return SettingError(
            f"{self.card.label} cannot be saved: its class does not say what it has learned and counted. Give it "
            "_settings, _state and _restore."
        )


_One = TypeVar("_One", bound=Criterion)


def alike(criterion: _One) -> _One:
    """Return another with the same attributes, what tests change included."""
    other = object.__new__(type(criterion))
    vars(other).update(vars(criterion))
    return other


@contextmanager
def all_or_nothing(*criteria: Criterion) -> Iterator[None]:
    """Put criteria back as they were where the work with them fails or is stopped."""
    before = [vars(copy.copy(instance)) for instance in criteria]
    try:
        yield
    except BaseException:
        for instance, attributes in zip(criteria, before, strict=True):
            vars(instance).clear()
            vars(instance).update(attributes)
        raise


CRITERIA: Registry[type[Criterion]] = Registry("coverage criterion")
"""Criterion classes by short lower-case name; an unknown name raises `SettingError`."""

_ORDER = ("idc", "nc", "tknc", "tknp", "kmnc", "nbc", "snac", "lsc", "dsc", "mdsc", "nlc", "cc")
"""The criteria as menus list them, whichever module was imported first; all others follow."""

_C = TypeVar("_C", bound=type[Criterion])


def criterion(name: str, **facts: Any) -> Callable[[_C], _C]:
    """Register a criterion class under a short lower-case name, and set its `card`.

    `facts` are fields of `CriterionCard`: label, help and citation are needed; defaults are read from the constructor.

    Raises
    ------
    SettingError
        If the name is not lower-case or already taken, or a parameter is not one of the constructor's.
    """
    if name != name.lower() or not name.isidentifier():
        raise SettingError(f"Expected a short lower-case name for a criterion, got {name!r}.")

    def register(cls: _C) -> _C:
        if name in CRITERIA:
            taken = CRITERIA[name].__qualname__
            raise SettingError(f"The criterion name {name!r} is taken by {taken}; give {cls.__qualname__} another.")
        signature = inspect.signature(cls).parameters.values()
        defaults = {
            keyword.name: keyword.default for keyword in signature if keyword.default is not inspect.Parameter.empty
        }
        card = CriterionCard(name, defaults=MappingProxyType(defaults), **facts)
        for keyword in card.parameters:
            if defaults.get(keyword.name) != keyword.default:
                raise SettingError(
                    f"The card of {name!r} gives {keyword.name} the default {keyword.default!r}; expected that of the "
                    f"constructor, {defaults.get(keyword.name)!r}."
                )
        cls.card = card
        CRITERIA[name] = cls
        for other in [other for other in CRITERIA if _place(other) > _place(name)]:
            CRITERIA[other] = CRITERIA.pop(other)
        return cls

    return register


def _place(name: str) -> int:
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)
