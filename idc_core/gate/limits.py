"""Limits: what all kinds share, the registry of kinds, and the exact comparison of numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from idc_core.base.parameters import Parameter
from idc_core.base.registry import Registry
from idc_core.confusion.matrix import share_interval
from idc_core.errors import DataError, SettingError
from idc_core.gate.verdicts import Measured, Value, Verdict

if TYPE_CHECKING:
    from idc_core.gate.bench import Bench


@dataclass(frozen=True, kw_only=True)
class Limit(ABC):
    """A limit on one result; its fields are the keys of its table in the file."""

    @property
    @abstractmethod
    def label(self) -> str:
        """What is limited, in a few words with all settings that are not the default: its name in a baseline."""

    @property
    @abstractmethod
    def needs_baseline(self) -> bool:
        """Whether it compares with a baseline."""

    @abstractmethod
    def measure(self, bench: Bench) -> Measured:
        """Return what is limited."""

    @abstractmethod
    def judge(self, measured: Measured, before: Value | None) -> Iterator[Verdict]:
        """Yield a verdict per bound; `before` is the baseline's value, None where none is needed."""


LIMITS: Registry[type[Limit]] = Registry("kind of limit")
"""Kinds of limits by name, entered by `limit`."""

_Kind = TypeVar("_Kind", bound=type[Limit])


def limit(name: str) -> Callable[[_Kind], _Kind]:
    """Enter a kind of limit into `LIMITS`: a frozen dataclass whose fields are its keys in the file."""

    def enter(kind: _Kind) -> _Kind:
        LIMITS.enter(name, kind)
        return kind

    return enter


@dataclass(frozen=True, kw_only=True)
class NumberLimit(Limit):
    """A limit on a number: a minimum, how far it may fall below the baseline, or both.

    Broken where ``value < at_least``, or where ``baseline - value > may_fall_by``; what is equal is kept. Numbers are
    compared as the decimals that file and baseline write, without rounding: 0.8 is 0.1 below 0.9, not more.
    """

    at_least: float | None = None
    may_fall_by: float | None = None

    def __post_init__(self) -> None:
        """Refuse bounds that can never be kept or never be broken."""
        if self.at_least is None and self.may_fall_by is None:
            raise SettingError("it has no bound: expected at_least, may_fall_by, or both")
        for name, value in (("at_least", self.at_least), ("may_fall_by", self.may_fall_by)):
            if value is not None:
                Parameter(name, "", "", 0.0, 0, self.highest).check(value)

    @property
    def highest(self) -> float:
        """The largest value that it can be on."""
        return 1.0

    @property
    def needs_baseline(self) -> bool:
        """Whether it compares with a baseline."""
        return self.may_fall_by is not None

    def judge(self, measured: Measured, before: Value | None) -> Iterator[Verdict]:
        """Yield a verdict per bound."""
        value, details = number(measured.value, self.label), measured.lines
        if self.at_least is not None:
            bound, broken = f"at least {self.at_least:g}", exact(value) < exact(self.at_least)
            now = decimals(value, self.at_least)
            sentence = f"{self.label} is {now}, below its minimum of {self.at_least:g}."
            yield judged(self.label, bound, broken, now, "", sentence, details)
            details = () if broken else details
        if self.may_fall_by is not None:
            first = number(before, self.label)
            fall = exact(first) - exact(value)
            bound, broken = f"fallen by at most {self.may_fall_by:g}", fall > exact(self.may_fall_by)
            now, then = decimals(value, first), decimals(first, value)
            by = decimals(float(fall), self.may_fall_by)
            sentence = (
                f"{self.label} has fallen by {by}, from {then} in the baseline to {now}; at most {self.may_fall_by:g} "
                "is allowed."
            )
            yield judged(self.label, bound, broken, now, then, sentence, details)


def judged(
    label: str, wanted: str, broken: bool, now: str, before: str, sentence: str, details: tuple[str, ...]
) -> Verdict:
    """Return the verdict of a bound; sentence and details are of a broken one."""
    if not broken:
        return Verdict(label, wanted, "kept", now, before)
    return Verdict(label, wanted, "broken", now, before, sentence, details)


def number(value: Value | None, label: str) -> float:
    """Return a value that a limit on a number measured, or a baseline holds."""
    if not isinstance(value, float | int):
        raise DataError(f"The baseline holds no number for {label}: write it again with --write-baseline.")
    return value


def interval_line(right: NDArray[np.bool_]) -> str:
    """Say the 95 % interval of the share of inputs (n,) that are right."""
    low, high = share_interval(np.array([right.sum()], np.int64), np.array([len(right)], np.int64))
    return f"Its 95 % interval is {low[0]:.4f} to {high[0]:.4f}."


def exact(value: float) -> Fraction:
    """Return the decimal that a number is written as, exactly."""
    return Fraction(repr(float(value)))


def decimals(value: float, other: float) -> str:
    """Write a number with four decimals, or as many as tell it from another one."""
    for digits in range(4, 17):
        text = f"{value:.{digits}f}"
        if value == other or float(text) != other:
            return text
    return repr(value)


def labelled(name: str, given: Mapping[str, object], defaults: Mapping[str, object], more: Iterable[str] = ()) -> str:
    """Return a name with the settings that are not the default, as "kmnc k=100"."""
    changed = (f"{key}={value}" for key, value in given.items() if value != defaults.get(key))
    return " ".join((name, *changed, *more))
