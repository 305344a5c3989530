"""Attacks a block at a time, each block kept on disk: what was finished before a stop is never made again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.base.arrays import Array
from idc_core.base.files import cache_folder
from idc_core.base.parameters import settle
from idc_core.base.progress import Progress
from idc_core.base.registry import own_code
from idc_core.base.threads import number
from idc_core.datasets import Dataset
from idc_core.errors import CancelledError
from idc_core.models.weights import fingerprint
from idc_core.perturbation.attacks import ATTACKS, AttackResult, assess, attack
from idc_core.store.cache import ArrayFolder
from idc_core.suites.suite import Positions, ProvenanceStep, Suite, SuitePart, content_address, nowhere, original

BLOCK = 32
"""Inputs of one block: what is lost, at most, when an attack is stopped."""

LIMIT = 1 << 30
"""Bytes that all blocks on disk together may take."""


def cached_block(inputs: Array, key: object, make: Callable[[], NDArray[np.float32]]) -> NDArray[np.float32]:
    """Return a block of attacked inputs from disk, or make and keep it.

    It has the shape of the inputs (k, ...) that it is made of, and follows from them and `key`, as Python writes it.
    """
    text = repr((key, number(), inputs.dtype.str, inputs.shape))
    digest = hashlib.sha256(f"{text}{own_code(text)}".encode())
    digest.update(np.ascontiguousarray(inputs).data)
    folder = ArrayFolder(cache_folder() / "suites", "The attacked inputs", LIMIT)
    name = digest.hexdigest()[:32]
    block: NDArray[np.float32] | None = folder.get(name, {}).get("inputs")
    if block is None or block.shape != inputs.shape or block.dtype != np.float32:
        block = make()
        folder[name] = {"inputs": block}
    return block


def attack_block(
    model: nn.Module,
    test: Dataset,
    positions: NDArray[np.int64],
    name: str,
    *,
    goal: int | None = None,
    seed: int = 0,
    on_progress: Progress | None = None,
    **settings: object,
) -> AttackResult:
    """Attack some tests, int64 (k,), about `BLOCK` of them, or read what an earlier run made of them.

    Other parameters as in `idc_core.perturbation.attacks.attack`; random draws depend on the tests' numbers. The result
    is complete: a block that is stopped is lost, with `CancelledError`.
    """
    chosen = ATTACKS[name]
    values: dict[str, Any] = settle(chosen.parameters, settings, chosen.label)
    inputs, targets, numbers = test.inputs[positions], test.targets[positions], test.ids[positions]

    def make() -> NDArray[np.float32]:
        result = attack(
            model, inputs, targets, name, goal=goal, seed=seed, numbers=numbers, on_progress=on_progress, **values
        )
        if not result.complete:
            raise CancelledError(f"Stopped on request while {len(inputs)} inputs were attacked by {chosen.label}.")
        return result.inputs

    key = ("block", name, tuple(values.items()), seed, goal, fingerprint(model), targets.tolist(), numbers.tolist())
    made = cached_block(inputs, key, make)
    return assess(model, inputs, made, targets, name, goal=goal, settings={**values, "seed": seed})


def attacked_suite(
    result: AttackResult, test: Dataset, numbers: NDArray[np.int64], model: nn.Module, places: Positions | None = None
) -> Suite:
    """Return attacked inputs as a suite, with the true classes as targets.

    `numbers`, int64 (done,), are the inputs' numbers in the data set; `places`, int64 (k,), chooses some of them.
    """
    places = np.arange(result.done, dtype=np.int64) if places is None else places
    label = ATTACKS[result.name].label
    settings = {name: value for name, value in result.settings.items() if name != "seed"}
    if result.goal is not None and result.done:
        settings["goal"] = int(result.goal[0])
    tests = f"{len(places):,} of {len(test):,} tests of {test.name}"
    steps = (
        ProvenanceStep("original", tests, {"fingerprint": test.fingerprint}),
        ProvenanceStep(result.name, label, settings, int(result.settings["seed"]), fingerprint(model)),
    )
    name = content_address(
        result.name, test.fingerprint, numbers[places].tolist(), settings, steps[1].seed, steps[1].model
    )
    return replace(
        original(test),
        name=result.name,
        label=label,
        targets=result.targets[places],
        origin=numbers[places],
        partner=nowhere(len(places)),
        provenance=steps,
        parts=(SuitePart.of(result.inputs[places], name),),
    )
