"""An attack: blocks of the inputs are attacked, and the attacked inputs come back as rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from idc_core.base.progress import Progress
from idc_core.perturbation.attacks.result import AttackResult, join_results
from idc_core.perturbation.attacks.runner import attack, inputs_attacked_at_once
from idc_core.work.executor import Block, Cut, Executor, Work
from idc_core.work.rows import Parts
from idc_core.work.source import Opened, Source


def attack_inputs(
    executor: Executor,
    source: Source,
    name: str = "fgsm",
    *,
    most: int | None = None,
    goal: int | None = None,
    preset: str | None = None,
    seed: int = 0,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
    **settings: Any,
) -> AttackResult:
    """Attack the inputs that a source names, at `most` so many, as `attack` does.

    An input's random draws depend on its number alone.
    """
    cutting = executor.cut(source, Cut(partial(_at_once, name=name), batch_size, most))
    work = _Attack(name, {"goal": goal, "preset": preset, "seed": seed, **settings}, cutting.batch_size)
    merged = executor.run(source, work, cutting.blocks, on_progress)
    return join_results(merged.parts, cutting.count)


def _at_once(opened: Opened, name: str) -> int:
    return inputs_attacked_at_once(opened.model, opened.data.inputs[:1], name)


@dataclass(frozen=True)
class _Attack(Work[Parts[AttackResult]]):
    """Work: the attack on a block."""

    name: str
    settings: Mapping[str, Any]
    batch_size: int | None

    def __call__(self, opened: Opened, block: Block) -> Parts[AttackResult]:
        """Attack a block of inputs."""
        rows, data = slice(*block), opened.data
        result = attack(
            opened.model,
            opened.inputs(block),
            data.targets[rows],
            self.name,
            numbers=data.ids[rows],
            batch_size=self.batch_size,
            on_progress=opened.on_progress,
            **self.settings,
        )
        return Parts([result])
