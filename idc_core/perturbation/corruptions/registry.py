"""What a corruption is, the registry of all, and how pictures are corrupted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.base.parameters import Parameter
from idc_core.base.progress import Progress, report
from idc_core.base.registry import Registry
from idc_core.errors import SettingError
from idc_core.perturbation.inputs import Pictures, as_numbers, as_pictures, check_seed, stream

CITATION = "Hendrycks, Dietterich, ICLR 2019"

SEVERITY = Parameter("severity", "Severity", "From 1, weak, to 5, strong.", 3, 1, 5)

_REPORTED = 64
"""Pictures between two reports."""

Bytes = NDArray[np.uint8]
Levels = NDArray[np.floating]
_Apply = Callable[[Bytes, int, np.random.Generator], Levels | Bytes]
"""Called with a picture (H, W, C) of 8 bits, C 1 or 3, a severity in 1..5 and random numbers; returns one of the same
shape, in 0..255."""


@dataclass(frozen=True)
class Corruption:
    """What a menu, the command line or the documentation says about a corruption, and the function itself."""

    name: str
    label: str
    help: str
    apply: _Apply
    random: bool  # whether it draws; else the seed changes nothing


CORRUPTIONS: Registry[Corruption] = Registry("corruption")
"""Corruptions by name, entered by `corruption`."""


def corruption(name: str, label: str, help: str, *, random: bool = False) -> Callable[[_Apply], _Apply]:
    """Enter the decorated function into `CORRUPTIONS`; its suite follows from the entry."""

    def enter(apply: _Apply) -> _Apply:
        CORRUPTIONS.enter(name, Corruption(name, label, help, apply, random))
        return apply

    return enter


def corrupt(
    inputs: object,
    name: str,
    severity: int = 3,
    *,
    seed: int = 0,
    numbers: object = None,
    on_progress: Progress | None = None,
) -> Pictures:
    """Corrupt every picture, float (n, C, H, W) in 0..1, grey or RGB; both it and the result have 256 levels.

    Parameters
    ----------
    inputs : Tensor, array or Dataset
    name : str
        Key in `CORRUPTIONS`.
    severity : int
        1 to 5. The numbers behind are those for photographs of 224 x 224 pixels: small pictures suffer more.
    seed : int
        What is random depends on it and on each input's number, `numbers` (n,), alone; by default its position.

    Raises
    ------
    DataError, SettingError
        If the inputs are no pictures in 0..1 with 1 or 3 channels, there is no such corruption, or the severity is
        none.

    Notes
    -----
    As the paper's program does, levels are cut off rather than rounded.
    """
    chosen, value = CORRUPTIONS[name], int(SEVERITY.check(severity, name))
    pictures = as_pictures(inputs)
    if pictures.shape[1] not in (1, 3):
        raise SettingError(f"Corruptions are of grey or RGB pictures, 1 or 3 channels; these have {pictures.shape[1]}.")
    seed, ids = check_seed(seed), as_numbers(numbers, len(pictures))
    changed = np.empty(pictures.shape, np.float32)
    for row, picture in enumerate(pictures):
        given = np.rint(picture.transpose(1, 2, 0) * 255).astype(np.uint8)
        levels = np.clip(chosen.apply(given, value, stream(seed, int(ids[row]))), 0, 255).astype(np.uint8)
        changed[row] = (levels / np.float32(255)).transpose(2, 0, 1)
        if not (row + 1) % _REPORTED or row + 1 == len(pictures):
            report(on_progress, row + 1, len(pictures), f"pictures corrupted: {chosen.label}")
    return changed
