"""Parameters of perturbations, constraints and methods: what a control, the command line and a refusal need to know."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
        kinds = (int, np.integer) if whole else (int, float, np.integer, np.floating)
        number = isinstance(value, kinds) and not isinstance(value, bool)
        if not number or not self.low <= value <= self.high or value == math.inf:
            kind = "a whole number" if whole else "a number"
            limits = f"of at least {self.low}" if math.isinf(self.high) else f"from {self.low} to {self.high}"
            raise SettingError(f"{self.name} of {of} must be {kind} {limits}, not {value!r}.")
        return int(value) if whole else float(value)


def settle(parameters: Sequence[Parameter], given: Mapping[str, Any], of: str) -> dict[str, Any]:
    """Return a value for every parameter: the given one, checked, or the default.

    Parameters
    ----------
    parameters : sequence of Parameter
    given : mapping of str to object
        Values by name.
    of : str
        What they are parameters of, for messages.

    Returns
    -------
    dict of str to int, float or str
        In the order of the parameters.

    Raises
    ------
    SettingError
        If a name is unknown, or a value is not as its parameter says.
    """
    names = [parameter.name for parameter in parameters]
    unknown = [name for name in given if name not in names]
    if unknown:
        known = ", ".join(names) or "none"
        raise SettingError(f"{of} has no parameter {unknown[0]!r}; its parameters: {known}.")
    return {one.name: one.check(given.get(one.name, one.default), of) for one in parameters}
