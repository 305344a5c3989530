"""What added inputs are worth: what they cover beyond the tests, and how much of it is valid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Floats
from idc_core.coverage.profiles import Profiles
from idc_core.errors import SettingError
from idc_core.evidence.validity import REJECTED


@dataclass(frozen=True)
class Gain:
    """What added inputs cover beyond the tests: `gained` targets, `invalid` of them by invalid inputs alone."""

    gained: int
    invalid: int

    @property
    def share(self) -> float:
        """Share of the gain, 0..1, that only invalid inputs reach; SettingError where nothing was gained."""
        if not self.gained:
            raise SettingError("These inputs cover nothing that the tests do not: no share of it can be said.")
        return self.invalid / self.gained


def valid_gain(tests: Profiles, added: Profiles, p: Floats) -> Gain:
    """Count what added inputs cover beyond the tests, and how much of it inputs that a detector refuses reach alone.

    The order of the inputs does not matter: a target that one valid input reaches counts as valid.

    Parameters
    ----------
    tests, added : Profiles
        By one criterion, of n tests and k added inputs.
    p : float (k,)
        Conformal p-values of the added inputs, as ``fit_judge(...).p`` of `idc_core.filling` gives them; up to 0.05 an
        input is invalid. Say beside the share what the detector accepts of known-bad inputs (`Judge.validity`), and
        the share of natural inputs' gain: of these it refuses one in twenty as well.

    Raises
    ------
    SettingError
        If there is not one p-value for each added input, or the profiles are not of one criterion.
    """
    if np.shape(p) != (len(added),):
        raise SettingError(f"Expected a p-value for each of {len(added)} added inputs, got {np.shape(p)}.")
    both = Profiles.joined((tests, added))
    valid = np.concatenate([np.zeros(len(tests), bool), np.asarray(p) > REJECTED])
    new = np.arange(len(both)) >= len(tests)
    beyond = _reached(both, new) & ~_reached(both, ~new)
    return Gain(int(beyond.sum()), int((beyond & ~_reached(both, valid)).sum()))


def _reached(profiles: Profiles, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which targets the chosen inputs reach together, bool (targets,)."""
    reached = np.zeros(int(profiles.targets.max(initial=-1)) + 1, bool)
    reached[profiles.targets[np.repeat(chosen, profiles.counts)]] = True
    return reached
