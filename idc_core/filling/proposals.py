"""Changes of tests that are tried before any search: mild transforms, noise, and blends of two tests of a class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Array, Ints
from idc_core.generation.constraints import LEVELS
from idc_core.perturbation import TRANSFORMS, random_noise, transform
from idc_core.perturbation.inputs import Pictures
from idc_core.suites.suite import ProvenanceStep

_MILD: Mapping[str, tuple[Mapping[str, float], ...]] = {
    "rotation": tuple({"degrees": angle} for angle in (-20.0, -10.0, 10.0, 20.0)),
    "scale": ({"factor": 0.85}, {"factor": 1.15}),
    "brightness": ({"amount": -0.15}, {"amount": 0.15}),
    "contrast": ({"factor": 0.6}, {"factor": 1.5}),
    "blur": ({"width": 0.7},),
    "occlusion": ({"share": 0.2, "shade": 0.0}, {"share": 0.2, "shade": 0.5}),
    "jpeg": ({"quality": 30},),
}
"""Settings under which a person still sees what a test shows; other transforms are used as they come."""

_SHIFT = 0.07
"""A mild shift, as a share of the side."""

_NOISES = ({"share": 0.02, "deviation": 0.5}, {"share": 1.0, "deviation": 0.1})
_BLENDS = (0.3, 0.5)


def ways_to_change(shape: Sequence[int], seed: int) -> tuple[ProvenanceStep, ...]:
    """Return the ways in which tests of a shape (C, H, W) are changed, in the order in which they are tried."""
    across, down = (max(1.0, float(round(_SHIFT * side))) for side in (shape[2], shape[1]))
    moves = ((across, 0.0), (-across, 0.0), (0.0, down), (0.0, -down))
    mild = {**_MILD, "shift": tuple({"right": right, "down": below} for right, below in moves)}
    steps = [
        ProvenanceStep(name, _label(entry.label, values), dict(values), seed if entry.random else None)
        for name, entry in TRANSFORMS.items()
        if name != "jpeg" or shape[0] in (1, 3)
        for values in mild.get(name, ({},))
    ]
    steps += [ProvenanceStep("noise", _label("Random noise", values), values, seed) for values in _NOISES]
    steps += [
        ProvenanceStep("blend", _label("Blend with a test of its class", {"weight": weight}), {"weight": weight}, seed)
        for weight in _BLENDS
    ]
    return tuple(steps)


def _label(name: str, values: Mapping[str, float]) -> str:
    settings = ", ".join(f"{key} {value:g}" for key, value in values.items())
    return f"changed by {name}" + f" ({settings})" * bool(settings)


def changed(step: ProvenanceStep, inputs: Pictures, targets: Array, numbers: NDArray[np.int64]) -> Pictures:
    """Return pictures (n, C, H, W) changed in a way, as 8 bits; random draws follow from `numbers`, the tests' own."""
    values: dict[str, Any] = dict(step.settings)
    seed = step.seed or 0
    if step.recipe == "blend":
        weight = values["weight"]
        made = np.asarray((1 - weight) * inputs + weight * inputs[partners(step, targets)], np.float32)
    elif step.recipe == "noise":
        made = random_noise(inputs, numbers=numbers, seed=seed, **values)
    else:
        made = transform(inputs, step.recipe, numbers=numbers, seed=seed, **values)
    return eight_bits(made)


def eight_bits(pictures: NDArray[np.floating]) -> Pictures:
    """Return the nearest pictures that 8 bits can hold, float32 values k / 255."""
    return np.asarray(np.rint(np.clip(pictures, 0, 1) * LEVELS) / LEVELS, np.float32)


def partners(step: ProvenanceStep, targets: Array) -> Ints:
    """Return which other one each of some pictures is blended with, int64 (n,); -1 where the way blends none.

    It is the next one of its class in a random order; of a regression, any.
    """
    partner = np.full(len(targets), -1, np.int64)
    if step.recipe != "blend":
        return partner
    order = np.random.default_rng(step.seed or 0).permutation(len(targets))
    groups = np.unique(targets) if targets.dtype.kind in "iu" else (None,)
    for group in groups:
        mine = order if group is None else order[targets[order] == group]
        partner[mine] = np.roll(mine, 1)
    return partner
