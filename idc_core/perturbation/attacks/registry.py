"""The registry of attacks: one decorated function adds one; menus, command line and documentation list them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from idc_core.base.parameters import Parameter, Value
from idc_core.base.registry import Registry
from idc_core.perturbation.attacks.score_model import Scores


@dataclass(frozen=True, eq=False)
class Batch:
    """What one call of an attack works on."""

    scores: Scores
    inputs: Tensor  # (n, C, H, W), in 0..1, float32 or float64, without gradients; not to be written into
    labels: Tensor  # (n,), true classes
    goal: Tensor | None  # (n,), the classes to be predicted; None for any wrong one
    numbers: NDArray[np.int64]  # (n,), number of each input, which with the seed fixes its random draws
    seed: int
    tick: Callable[[float], None]
    """To be called often with the share of this batch's work that is done, 0..1; stops the work when asked to."""


@dataclass(frozen=True)
class Preset:
    """Named values for an attack's parameters: a label that says whose they are, the values, and what they achieve."""

    label: str
    settings: Mapping[str, Value]
    measured: str = ""


_Run = Callable[..., Tensor]
"""Called with (batch, **settings); returns the attacked inputs, of the same shape, in 0..1."""


_Passes = Callable[..., int]
"""Called with (values, **settings): how often an attack usually asks the network about an input of so many values."""


@dataclass(frozen=True)
class Attack:
    """What a menu, the command line or the documentation says about an attack, and the function itself."""

    name: str
    label: str
    help: str
    citation: str
    parameters: tuple[Parameter, ...]  # their defaults are the paper's
    run: _Run
    takes_goal: bool = True  # whether the wrong answer can be chosen
    random: bool = False  # whether it draws from `Batch.seed`; else the seed changes nothing
    batch_size: int = 256  # inputs attacked at a time at most: what is lost when the work is stopped
    presets: Mapping[str, Preset] = field(default_factory=dict)  # other values than the defaults that have a name
    passes: _Passes = lambda values, **settings: 1


ATTACKS: Registry[Attack] = Registry("attack")
"""Attacks by name, entered by `register_attack`."""


def register_attack(
    name: str, label: str, help: str, citation: str, *parameters: Parameter, **options: Any
) -> Callable[[_Run], _Run]:
    """Enter the decorated function into `ATTACKS`; suites, menus and figures follow from its entry."""

    def enter(run: _Run) -> _Run:
        ATTACKS[name] = Attack(name, label, help, citation, parameters, run, **options)
        return run

    return enter
