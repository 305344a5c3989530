"""Parameters of perturbations, constraints and methods: what a control, the command line and a refusal need to know."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from idc_core.errors import IdcError, SettingError

if TYPE_CHECKING:
    from idc_core.base.arrays import Array

Number = int | float
Value = Number | str

_Default = TypeVar("_Default")

MOST_WHOLE = 2**63 - 1
"""Whole numbers above do not fit into the arrays that they are counted in."""

LONGEST = 32
"""Characters of a number at most: reading one takes time by the square of its digits."""

_SHOWN = 60
"""Characters of a value at most that a message repeats."""

_WHOLE = re.compile(r"-?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


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

    def check(self, value: object, of: str = "") -> Value:
        """Return the value as this parameter's kind of number, or one of its words.

        Raises
        ------
        SettingError
            If it is none of these or outside the range; `of` names what it is a parameter of.
        """
        if self.is_word:
            if value in self.offered:
                return str(value)
        elif self.is_whole:
            if is_whole(value, self.low, self.high):
                return int(value)
        elif is_number(value, self.low, self.high):
            return float(value)
        raise SettingError(f"{self.name}{f' of {of}' if of else ''} {self.fault(value)}.")

    def read(self, text: str, of: str = "") -> Value:
        """Return what a text says, for a command line or an address: as `check`, of digits 0 to 9 alone."""
        form = _WHOLE if self.is_whole else _NUMBER
        if not self.is_word and len(text) <= LONGEST and form.fullmatch(text):
            return self.check(int(text) if self.is_whole else float(text), of)
        return self.check(text, of)

    def said(self, text: str) -> Number | None:
        """Return the number that a text says, or None where it says none in the range; for addresses."""
        try:
            value = self.read(text)
        except SettingError:
            return None
        return None if isinstance(value, str) else value

    def fault(self, value: object) -> str:
        """Say what was expected instead of a value, and how the value reads, as the end of a sentence."""
        if self.is_word:
            return f"must be {' or '.join(repr(word) for word in self.offered)}, not {shown(value)}"
        kind = "a whole number" if self.is_whole else "a number"
        return f"must be {kind} {_limits(self.low, self.high)}, not {shown(value)}"

    @property
    def is_word(self) -> bool:
        """Whether it takes one of some words."""
        return isinstance(self.default, str)

    @property
    def is_whole(self) -> bool:
        """Whether it takes whole numbers only."""
        return isinstance(self.default, int)


def option(
    default: _Default, help: str, among: Parameter | tuple[Value, ...] | str = "", name: str = "", **more: object
) -> _Default:
    """Declare a field of settings from which an option of the command line is derived; none where there is no help.

    `among` is a range of numbers, some words, or the registry that has its names, "" for any text; `name` that of the
    option, where it is not the field's: of what is usually true, that of what makes it false. `more` is what the
    dashboard asks for it by: an `Option`'s key and slider, or a control.
    """
    return field(default=default, metadata={"help": help, "among": among, "name": name, **more})


@dataclass(frozen=True)
class Option:
    """A field of a method's settings that `option` has declared; `flag` is its name on the command line.

    `key` is its name in the address, empty where the dashboard asks for it by no slider, with its ends and step, or
    switch, whose label and help are those of the parameter.
    """

    name: str
    default: object
    help: str
    among: Parameter | tuple[Value, ...] | str
    flag: str
    key: str
    slider: tuple[Number, Number, Number]

    @property
    def parameter(self) -> Parameter | None:
        """Range, label and help; None where it is no number and has no label."""
        return self.among if isinstance(self.among, Parameter) else None


def options_among(settings: type) -> tuple[Option, ...]:
    """Return the options among the fields of a dataclass, in their order."""
    options = []
    for item in fields(settings):
        if known := item.metadata:
            flag = f"--{(known['name'] or item.name).replace('_', '-')}"
            shown = known.get("key", ""), known.get("slider", (0, 1, 1))
            options.append(Option(item.name, item.default, known["help"], known["among"], flag, *shown))
    return tuple(options)


def shown(value: object) -> str:
    """Return a value as a message repeats it: cut where it is long, and in any case without failing.

    >>> shown("x" * 100)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx..."
    """
    try:
        text = repr(value[:_SHOWN] + "." if isinstance(value, str) and len(value) > _SHOWN else value)
    except ValueError:  # a whole number of more digits than Python writes out
        return "a number of more than 4,300 digits"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def is_number(value: Any, low: Number = 0, high: Number = math.inf) -> TypeGuard[float]:
    """Return whether a value is a finite number in low..high; a truth value is none."""
    number = isinstance(value, Real) and not isinstance(value, bool)  # NumPy's numbers are of these kinds, too
    return number and bool(low <= value <= high) and bool(abs(value) <= sys.float_info.max)


def is_whole(value: object, low: Number = 0, high: Number = math.inf) -> TypeGuard[int]:
    """Return whether a value is a whole number in low..high, and at most `MOST_WHOLE`."""
    return isinstance(value, Integral) and is_number(value, low, min(high, MOST_WHOLE))


def whole_number(name: str, value: object, low: int = 0, high: Number = math.inf, note: str = "") -> int:
    """Return a whole number in low..high; `name` says what it is and `note` what the limits are.

    Raises
    ------
    SettingError
        If it is none.
    """
    if not is_whole(value, low, high):
        raise SettingError(f"{name} must be a whole number {_limits(low, high)}{note}, not {shown(value)}.")
    return int(value)


def finite(name: str, value: object, low: float = -math.inf) -> float:
    """Return a finite number of at least `low`; SettingError where it is none, `name` saying of what kind."""
    if not is_number(value, low):
        raise SettingError(f"{name}{'' if math.isinf(low) else f' of at least {low:g}'}, not {shown(value)}.")
    return float(value)


def truth(name: str, value: object) -> bool:
    """Return True or False, of Python or NumPy, or 1 or 0; SettingError for what is none of these."""
    if type(value).__name__ not in ("bool", "bool_") and not is_whole(value, 0, 1):
        raise SettingError(f"{name} must be True or False, not {shown(value)}.")
    return bool(value)


def _limits(low: Number, high: Number) -> str:
    return f"of at least {low}" if math.isinf(high) else f"from {low} to {high}"


def class_numbers(what: str, value: object, kind: type[IdcError] = SettingError) -> Array:
    """Return classes as an array of numbers of any type and shape; `kind` of error where they are names or None."""
    import numpy as np

    given: Any = value
    try:
        given = value if hasattr(value, "shape") or isinstance(value, str | Number) else list(given)
        numbers = np.asarray(given.detach().cpu() if hasattr(given, "detach") else given)
    except (TypeError, ValueError, RuntimeError):
        numbers = np.asarray(None)
    if numbers.dtype.kind in "fiub":
        return numbers
    every = given if isinstance(given, list) else numbers.flat
    first = next((item for item in every if isinstance(item, str)), None)
    instead = f"the name {shown(str(first))}" if first is not None else shown(value)
    raise kind(
        f"{what} must be numbers of classes, counted from 0 in the order of the network's outputs, not {instead}. Give "
        "each class's place in that order, for example class_names.index('cat')."
    )


def counted_from(low: int, high: int, classes: int) -> str:
    """Say, behind a message, that classes were probably counted from 1."""
    return f": these are {low}..{high}, counted from 1. Subtract 1 from each" if low > 0 and high == classes else ""


def settle(parameters: Sequence[Parameter], given: Mapping[str, object], of: str) -> dict[str, Value]:
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
        raise SettingError(f"{of[:1].upper()}{of[1:]} has no parameter {shown(unknown[0])}; its parameters: {known}.")
    return {item.name: item.check(given.get(item.name, item.default), of) for item in parameters}
