"""Attacks a block at a time, each block kept on disk: what was finished before a stop is never made again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.datasets import Dataset
from idc_core.errors import CancelledError
from idc_core.models.weights import fingerprint
from idc_core.parameters import settle
from idc_core.perturbation.attacks import ATTACKS, AttackResult, assess, attack
from idc_core.progress import Progress
from idc_core.suites.attack_cache import kept
from idc_core.suites.suite import Part, Positions, Step, Suite, address

BLOCK = 32
"""Inputs of one block: what is lost, at most, when an attack is stopped."""


def attack_block(
    model: nn.Module,
    test: Dataset,
    positions: NDArray[np.int64],
    name: str,
    *,
    goal: int | None = None,
    seed: int = 0,
    on_progress: Progress | None = None,
    **settings: Any,
) -> AttackResult:
    """Attack a few tests, or read what an earlier run made of them.

    Parameters
    ----------
    model : Module
        A classifier; left as it was found.
    test : Dataset
        Pictures with classes.
    positions : ndarray, int64 (k,)
        Which tests; about `BLOCK` of them.
    name, goal, seed, **settings
        As in `idc_core.perturbation.attacks.attack`; random draws go by the tests' numbers.
    on_progress : Progress, optional

    Returns
    -------
    AttackResult
        Complete.

    Raises
    ------
    IdcError
        As `idc_core.perturbation.attacks.attack` and `idc_core.suites.attack_cache.kept`.
    CancelledError
        If the work was stopped; this block is then lost.
    """
    chosen = ATTACKS[name]
    values = settle(chosen.parameters, settings, chosen.label)
    inputs, targets, numbers = test.inputs[positions], test.targets[positions], test.ids[positions]

    def make() -> NDArray[np.float32]:
        found = attack(
            model, inputs, targets, name, goal=goal, seed=seed, numbers=numbers, on_progress=on_progress, **values
        )
        if not found.complete:
            raise CancelledError(f"Stopped on request while {len(inputs)} inputs were attacked by {chosen.label}.")
        return found.inputs

    key = ("block", name, tuple(values.items()), seed, goal, fingerprint(model), targets.tolist(), numbers.tolist())
    made = kept(inputs, key, make)
    return assess(model, inputs, made, targets, name, goal=goal, settings={**values, "seed": seed})


def as_suite(
    result: AttackResult, test: Dataset, numbers: NDArray[np.int64], model: nn.Module, places: Positions | None = None
) -> Suite:
    """Return attacked inputs as a suite.

    Parameters
    ----------
    result : AttackResult
    test : Dataset
        What they were made of.
    numbers : ndarray, int64 (done,)
        Number of each of them in the data set.
    model : Module
        The network that was attacked.
    places : ndarray, int64 (k,), optional
        Which of the inputs; default: all.

    Returns
    -------
    Suite
        With the right classes as targets, which the network mostly misses.
    """
    places = np.arange(result.done, dtype=np.int64) if places is None else places
    inputs, attacked = result.inputs[places], ATTACKS[result.name]
    settings = {name: value for name, value in result.settings.items() if name != "seed"}
    if result.goal is not None and result.done:
        settings["goal"] = int(result.goal[0])
    steps = (
        Step("original", f"{len(places):,} of {len(test):,} tests of {test.name}", {"fingerprint": test.fingerprint}),
        Step(result.name, attacked.label, settings, int(result.settings["seed"]), fingerprint(model)),
    )
    name = address(test.fingerprint, numbers[places].tolist(), steps[1].settings, steps[1].seed, steps[1].model)

    return Suite(
        name=result.name,
        label=attacked.label,
        targets=result.targets[places],
        origin=numbers[places],
        shape=tuple(test.inputs.shape[1:]),
        class_names=test.class_names,
        task=test.task,
        provenance=steps,
        parts=(Part.of(inputs, name),),
    )
