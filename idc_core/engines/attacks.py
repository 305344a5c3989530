"""An attack on an engine: every worker attacks blocks of the inputs, and the attacked inputs come back as rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from idc_core.engines.engine import Block, Engine, cut
from idc_core.engines.sizes import Cutting
from idc_core.engines.source import Opened, Source
from idc_core.perturbation.attacks.result import AttackResult, join_results
from idc_core.perturbation.attacks.runner import attack, inputs_attacked_at_once
from idc_core.progress import Progress


def attack_on(
    engine: Engine,
    source: Source,
    name: str = "fgsm",
    *,
    goal: int | None = None,
    preset: str | None = None,
    seed: int = 0,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
    **settings: Any,
) -> AttackResult:
    """Attack the inputs that a source names as `attack` does; an input's random draws depend on its number alone."""
    cutting = engine.run(source, _Sizes(name, batch_size), [(0, 1)])
    work = _Attack(name, {"goal": goal, "preset": preset, "seed": seed, **settings}, cutting.batch_size)
    found = engine.run(source, work, cutting.blocks, on_progress)
    return join_results(found.parts, cutting.blocks[-1][1])


@dataclass(frozen=True)
class _Sizes:
    """Work: how inputs are cut, as `attack` would cut them."""

    name: str
    batch_size: int | None
    keeps: str = ""

    def __call__(self, opened: Opened, block: Block) -> Cutting:
        """Return the blocks."""
        size = self.batch_size or inputs_attacked_at_once(opened.model, opened.data.inputs[:1], self.name)
        return Cutting(cut(len(opened.data), size), size)


@dataclass(eq=False)
class _Attacked:
    """Results of blocks, in order."""

    parts: list[AttackResult]

    def merge(self, other: _Attacked) -> Self:
        """Take in the results of the next blocks."""
        self.parts += other.parts
        return self


@dataclass(frozen=True)
class _Attack:
    """Work: the attack on a block."""

    name: str
    settings: Mapping[str, Any]
    batch_size: int
    keeps: str = ""

    def __call__(self, opened: Opened, block: Block) -> _Attacked:
        """Attack a block of inputs."""
        rows, data = slice(*block), opened.data
        numbers = np.arange(*block)
        found = attack(
            opened.model,
            data.inputs[rows],
            data.targets[rows],
            self.name,
            numbers=numbers,
            batch_size=self.batch_size,
            **self.settings,
        )
        return _Attacked([found])
