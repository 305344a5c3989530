"""What added inputs are worth: what they cover beyond the tests, beside natural inputs, and how much of it is valid."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Floats
from idc_core.base.progress import Progress, report
from idc_core.coverage.idc import IDC
from idc_core.coverage.profiles import Profiles
from idc_core.datasets import Dataset
from idc_core.errors import SettingError
from idc_core.evidence.additions import addition
from idc_core.evidence.finding import Finding
from idc_core.evidence.validity import REJECTED
from idc_core.perturbation import CORRUPTIONS, corrupt

SEEDS = 10
"""Draws of added inputs, unless others are asked for."""


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


def corruption_findings(
    criterion: IDC,
    tests: Dataset,
    severity: int,
    *,
    names: Iterable[str] | None = None,
    inputs: int = 64,
    seeds: int = SEEDS,
    looks: int = 1,
    on_progress: Progress | None = None,
) -> dict[str, Finding]:
    """Compare the cells that corrupted tests add with those that as many natural inputs would, by corruption.

    Parameters
    ----------
    criterion : IDC
        Fitted; left as it is.
    tests : Dataset
        Pictures, all of which count as tests.
    severity : int
        1 to 5.
    names : iterable of str, optional
        Keys in `CORRUPTIONS`; default all.
    inputs, seeds : int
        Tests that are drawn and corrupted, and how often; their mean number of new cells counts.
    looks : int
        How many findings are looked at besides these ones, as in `Finding`: other severities or layers.

    Raises
    ------
    SettingError, DataError
        If a name, the severity or the pictures are none, or there are fewer tests than `inputs`.
    """
    chosen = list(CORRUPTIONS if names is None else names)
    if not 1 <= inputs <= len(tests):
        raise SettingError(f"Of {len(tests)} tests, 1 to {len(tests)} can be corrupted, not {inputs}.")
    known, total = criterion.profile(tests.inputs), criterion.total
    found = {}
    for place, name in enumerate(chosen):
        added: list[int] = []
        for seed in range(seeds):
            rows = np.random.default_rng(seed).permutation(len(tests))[:inputs]
            made = corrupt(tests.inputs[rows], name, severity, seed=seed, numbers=rows)
            added.append(valid_gain(known, criterion.profile(made), np.ones(inputs)).gained)
            report(on_progress, place * seeds + seed + 1, len(chosen) * seeds, f"corruptions: {name}")
        found[name] = addition(
            f"New cells from {inputs} tests with {CORRUPTIONS[name].label.lower()}",
            added,
            np.bincount(known.targets),
            total,
            inputs,
            looks=looks * len(chosen),
        )
    return found
