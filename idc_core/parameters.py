"""Parameters of perturbations, constraints and methods: what a control, the command line and a refusal need to know."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from idc_core.errors import SettingError

Number = int | float
Value = Number | str


@dataclass(frozen=True)
class Parameter:
    """One value that something with a name can be given.

    Attributes
    ----------
    name : str
        Keyword of the function.
    label : str
        Name for a person, with its unit.
    help : str
        One sentence: what a larger value does.
    default : int, float or str
        An int takes whole numbers only.
    low, high : int or float
        The range of a number, both ends included.
    logarithmic : bool
        Whether a slider should step by factors: the range spans several powers of ten.
    offered : tuple
        Values for a menu. Of words, the only ones allowed.
    step : int or float
        By how much a control changes a number.
    """

    name: str
    label: str
    help: str
    default: Value
    low: Number = 0.0
    high: Number = math.inf
    logarithmic: bool = False
    offered: tuple[Value, ...] = ()
    step: Number = 1

    def check(self, value: Any, of: str) -> Value:
        """Return the value as this parameter's kind of number, or one of its words.

        Raises
        ------
        SettingError
            If it is none of these or outside the range; `of` names what it is a parameter of.
        """
        if isinstance(self.default, str):
            if value not in self.offered:
                words = " or ".join(repr(word) for word in self.offered)
                raise SettingError(f"{self.name} of {of} must be {words}, not {value!r}.")
            return str(value)
        whole = isinstance(self.default, int)
        fits = is_whole(value, self.low, self.high) if whole else is_number(value, self.low, self.high)
        if not fits:
            kind = "a whole number" if whole else "a number"
            limits = _limits(self.low, self.high)
            raise SettingError(f"{self.name} of {of} must be {kind} {limits}, not {value!r}.")
        return int(value) if whole else float(value)


def is_number(value: Any, low: Number = 0, high: Number = math.inf) -> bool:
    """Return whether a value is a finite number in low..high; a truth value is none."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return number and bool(low <= value <= high) and value != math.inf


def is_whole(value: Any, low: Number = 0, high: Number = math.inf) -> TypeGuard[int]:
    """Return whether a value is a whole number in low..high."""
    return isinstance(value, int | np.integer) and is_number(value, low, high)


def whole_number(name: str, value: Any, low: int = 0, high: Number = math.inf, note: str = "") -> int:
    """Return a whole number in low..high; `name` says what it is and `note` what the limits are.

    Raises
    ------
    SettingError
        If it is none.
    """
    if not is_whole(value, low, high):
        raise SettingError(f"{name} must be a whole number {_limits(low, high)}{note}, not {value!r}.")
    return int(value)


def _limits(low: Number, high: Number) -> str:
    return f"of at least {low}" if math.isinf(high) else f"from {low} to {high}"


def settle(parameters: Sequence[Parameter], given: Mapping[str, Any], of: str) -> dict[str, Any]:
    """Return a value for every parameter, in their order: the given one, checked, or the default.

    `of` says what they are parameters of, for messages.

    Raises
    ------
    SettingError
        If a name is unknown, or a value is not as its parameter says.
    """
    names = [parameter.name for parameter in parameters]
    unknown = [name for name in given if name not in names]
    if unknown:
        known = ", ".join(names) or "none"
        raise SettingError(f"{of[:1].upper()}{of[1:]} has no parameter {unknown[0]!r}; its parameters: {known}.")
    return {one.name: one.check(given.get(one.name, one.default), of) for one in parameters}
