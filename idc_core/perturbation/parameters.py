"""Parameters of perturbations: what a slider, the command line and a refusal need to know of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from idc_core.errors import SettingError

Value = int | float


@dataclass(frozen=True)
class Parameter:
    """One number that a perturbation can be given.

    Attributes
    ----------
    name : str
        Keyword of the function.
    label : str
        Name for a person, with its unit.
    help : str
        One sentence: what a larger value does.
    default : int or float
        An int takes whole numbers only.
    low, high : int or float
        The range, both ends included.
    logarithmic : bool
        Whether a slider should step by factors: the range spans several powers of ten.
    """

    name: str
    label: str
    help: str
    default: Value
    low: Value
    high: Value
    logarithmic: bool = False

    def check(self, value: Any, of: str) -> Value:
        """Return the value as this parameter's kind of number.

        Raises
        ------
        SettingError
            If it is no such number or outside the range; `of` names what it is a parameter of.
        """
        whole = isinstance(self.default, int)
        kinds = (int, np.integer) if whole else (int, float, np.integer, np.floating)
        if isinstance(value, bool) or not isinstance(value, kinds) or not self.low <= value <= self.high:
            kind = "a whole number" if whole else "a number"
            raise SettingError(f"{self.name} of {of} must be {kind} from {self.low} to {self.high}, not {value!r}.")
        return int(value) if whole else float(value)


def settle(parameters: Sequence[Parameter], given: Mapping[str, Any], of: str) -> dict[str, Value]:
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
    dict of str to int or float
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
