"""Attacks on a setup's tests: what is chosen, and one job a block, so that stopping loses no block that is finished."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idc_core.base.progress import Progress
from idc_core.coverage.cell_table import Gained, gained
from idc_core.errors import CancelledError
from idc_core.evidence.additions import addition
from idc_core.evidence.finding import Finding
from idc_core.runs import AttackRun
from studio.jobs.jobs import HALTED, JobKind, Waiting, shelf
from studio.jobs.results import View
from studio.jobs.runs import run_settings
from studio.state import allowed

if TYPE_CHECKING:
    from idc_core.analysis.predictions import Predictions
    from idc_core.attribution.shift import Shift
    from idc_core.base.parameters import Value
    from idc_core.perturbation.attacks import AttackResult
    from idc_core.tracing.traces import Traces

_ATTACKS = JobKind("attacks", kept=128, is_long=True)
_ATTACKED, _MOVED = JobKind("attacked", kept=128), JobKind("moved", kept=128)

Ints = NDArray[np.int64]
_Maps = tuple[NDArray[np.float32], NDArray[np.float32]]

EXPLAINED = {"answer": "the predicted class", "right": "the true class"}
"""Whose score the heatmaps before and after explain: key and label."""

_QUICK = 4_000_000
"""Values of all inputs times passes through the network up to which an attack starts by itself: about three seconds."""


@dataclass(frozen=True)
class Plan:
    """One attack with its settings, on at most `numbers` tests drawn by the seed, with misclassified ones if `every`.

    `goal` is the class to be predicted; None for any wrong one.
    """

    attack: str
    settings: tuple[tuple[str, Value], ...]
    goal: int | None = None
    seed: int = 0
    numbers: int = 64
    every: bool = False

    @property
    def label(self) -> str:
        """The attack's name, and that of its settings where they have one."""
        from idc_core.perturbation.attacks import ATTACKS

        entry = ATTACKS[self.attack]
        usual = {one.name: one.default for one in entry.parameters}
        presets = [name for name, one in entry.presets.items() if dict(self.settings) == {**usual, **one.settings}]
        if presets:
            return f"{entry.label} ({presets[0]})"
        changed = [
            f"{one.label.lower()} {value if isinstance(value, str) else f'{value:g}'}"
            for one, (_, value) in zip(entry.parameters, self.settings, strict=True)
            if value != one.default
        ]
        return f"{entry.label} ({', '.join(changed)})" if changed else entry.label

    def on(self, attack: str, settings: dict[str, Value]) -> Plan:
        """Return another attack on the same tests."""
        return replace(self, attack=attack, settings=tuple(settings.items()))


def _pool(view: View, every: bool, goal: int | None) -> Ints:
    """Return the positions of the tests that can be attacked: by default the correctly classified ones."""
    chosen = view.chosen
    kept = np.ones(len(chosen), bool) if every or view.correct is None else view.correct[chosen]
    if goal is not None:
        # An input of that class, or taken for it, is there already.
        kept = kept & (view.test.targets[chosen] != goal) & (view.analysis.predictions[chosen] != goal)
    return chosen[kept]


def sample(view: View, plan: Plan) -> Ints:
    """Draw the tests to attack; a larger number keeps those of a smaller one, in the same order."""
    some = _pool(view, plan.every, plan.goal)
    return np.random.default_rng(plan.seed).permutation(some)[: plan.numbers]


def is_quick(view: View, plan: Plan) -> bool:
    """Whether an attack takes so few seconds that it needs no click."""
    return bool(len(sample(view, plan)) * view.test.inputs[0].size * _passes(view, plan) <= _QUICK)


def _passes(view: View, plan: Plan) -> int:
    """Return how often an attack runs each test through the network, at most."""
    from idc_core.perturbation.attacks import ATTACKS

    return int(ATTACKS[plan.attack].passes(values=view.test.inputs[0].size, **dict(plan.settings)))


@dataclass(frozen=True, eq=False)
class Run:
    """The result of an attack on n tests, as far as it is finished; pictures are float32 (n, C, H, W).

    `before` and `after` are the relevance of the pixels; `assignments`, uint8 (n, m), the cluster of every attacked
    input and important neuron; `gained` the cells that none of the chosen tests reaches.
    """

    plan: Plan
    positions: Ints
    originals: NDArray[np.float32]
    result: AttackResult
    predictions: Predictions
    assignments: NDArray[np.uint8]
    gained: Gained
    before: NDArray[np.float32]
    after: NDArray[np.float32]

    @cached_property
    def shift(self) -> Shift:
        """How the relevance moved."""
        return _shift(crc32(self.before.tobytes()), crc32(self.after.tobytes()), self.before, self.after)

    @property
    def fooled(self) -> NDArray[np.bool_]:
        """Which inputs the attack succeeded with, bool (done,)."""
        return self.result.success

    @property
    def key(self) -> Hashable:
        """What the run depends on beside the setup."""
        return self.plan, self.result.done

    def finding(self, view: View, claim: str = "New cells from the attacked inputs", looks: int = 1) -> Finding:
        """Return how many cells the attacked inputs add, beside what as many natural inputs would."""
        return addition(claim, [len(self.gained)], view.table.counts, view.table.total, self.result.done, looks=looks)

    @property
    def accuracy(self) -> float:
        """Share of the attacked inputs that are classified correctly."""
        return float((self.result.predictions == self.result.targets).mean())

    @property
    def share(self) -> float:
        """Share of the attacked inputs that the attack succeeded with."""
        return float(self.fooled.mean())

    def mean(self, size: str) -> float:
        """Return the mean size of the successful changes; NaN where there is none."""
        values = getattr(self.result, size)[self.fooled]
        return float(values.mean()) if len(values) else float("nan")


@st.cache_resource(max_entries=32, show_spinner=False)
def _shift(first: int, second: int, _before: NDArray[np.float32], _after: NDArray[np.float32]) -> Shift:
    from idc_core.attribution.shift import shift

    return shift(_before, _after)


def open_run(
    view: View, plan: Plan, explained: str = "answer", *, only: Ints | None = None, paused: bool = False
) -> Run | None:
    """Attack the tests of a plan, or find again what was attacked; show progress while it takes long.

    `explained` is a key of `EXPLAINED`; `only` (k,) attacks these tests and not those of the plan; `paused` begins
    nothing. Of the blocks that are finished; None where none is.
    """
    from idc_core.perturbation.attacks import ATTACKS, join_results
    from idc_core.suites.attacked import BLOCK

    positions = sample(view, plan) if only is None else only
    passes = len(positions) * _passes(view, plan)
    what = f"The attack takes {passes:,} passes of a test through the network"
    allowed.check("attack_passes", passes, what, "Attack fewer tests, or in fewer steps.")
    blocks = [positions[start : start + BLOCK] for start in range(0, len(positions), BLOCK)]
    waiting = Waiting(3 * len(blocks))
    label = ATTACKS[plan.attack].label
    parts: list[tuple[AttackResult, Traces, _Maps]] = []
    for block in blocks:
        steps = _Steps(view, plan, block, explained)
        if paused and shelf().finished(_ATTACKS, steps.key) is None:
            break
        try:
            result = waiting.get(_ATTACKS, steps.key, f"attacking by {label}", steps.attack)
            traces = waiting.get(_ATTACKED, steps.trace_key, "running attacked inputs", steps.trace(result))
            maps = waiting.get(_MOVED, steps.maps_key, "computing relevance", steps.explain(result))
        except CancelledError:
            break
        parts.append((result, traces, maps))
    if not parts:
        return None
    run = _joined(view, plan, positions, join_results([part[0] for part in parts], len(positions)), parts)
    if only is None and run.result.complete and not st.session_state.get(HALTED):
        _note(waiting, view, run)
    return run


def _note(waiting: Waiting, view: View, run: Run) -> None:
    """Note a finished attack among the runs."""

    def work(report: Progress) -> AttackRun:
        result = run.result
        return AttackRun(run.positions, result.success, result.l2, result.linf, len(run.gained))

    plan = run.plan
    named = {f"{plan.attack}_{name}": value for name, value in plan.settings}
    goal = None if plan.goal is None else view.train.class_names[plan.goal]
    facts = {"attack": plan.attack, **named, "goal": goal, "seed": plan.seed, "attacked_at_most": plan.numbers}
    # The key has the cells' own settings too, which the blocks do not depend on.
    key = (*view.key, view.setup, plan, tuple(run.positions.tolist()))
    settings = run_settings(view, **facts, with_misclassified=plan.every)
    waiting.get(JobKind("attack-runs", kept=128), key, "noting the run", work, settings=settings)


def _joined(
    view: View, plan: Plan, positions: Ints, result: AttackResult, found: list[tuple[AttackResult, Traces, _Maps]]
) -> Run:
    from idc_core.suites.responses import predict

    scores, activations = (
        np.concatenate(parts)
        for parts in zip(
            *((traces.scores, traces.activations[view.setup.layer]) for _, traces, _ in found), strict=True
        )
    )
    before, after = (np.concatenate(maps) for maps in zip(*(maps for _, _, maps in found), strict=True))
    assignments = view.analysis.assign(activations)
    done = positions[: result.done]
    return Run(
        plan,
        done,
        view.test.inputs[done],
        result,
        predict(scores, result.targets, "classification"),
        assignments,
        gained(view.analysis.assignments[view.chosen], assignments, view.sizes),
        before,
        after,
    )


@dataclass(frozen=True, eq=False)
class _Steps:
    """The work on one block of a plan; in other threads, so nothing here uses Streamlit."""

    view: View
    plan: Plan
    block: Ints
    explained: str

    @property
    def key(self) -> Hashable:
        view, plan = self.view, self.plan
        return (*view.key, plan.attack, plan.settings, plan.goal, plan.seed, tuple(self.block.tolist()))

    @property
    def trace_key(self) -> Hashable:
        return self.key, self.view.setup.layer

    @property
    def maps_key(self) -> Hashable:
        return self.key, self.explained

    def attack(self, report: Progress) -> AttackResult:
        from idc_core.suites.attacked import attack_block

        plan = self.plan
        return attack_block(
            self.view.model,
            self.view.test,
            self.block,
            plan.attack,
            goal=plan.goal,
            seed=plan.seed,
            on_progress=report,
            **dict(plan.settings),
        )

    def trace(self, result: AttackResult) -> Callable[[Progress], Traces]:
        def work(report: Progress) -> Traces:
            from idc_core.tracing.trace import collect

            return collect(self.view.model, result.inputs, [self.view.setup.layer], on_progress=report)

        return work

    def explain(self, result: AttackResult) -> Callable[[Progress], _Maps]:
        def work(report: Progress) -> _Maps:
            from idc_core.attribution.relevance import relevance

            answers = [result.before, result.predictions]
            if self.explained == "right":
                answers = [result.targets, result.targets]
            pictures = (self.view.test.inputs[self.block], result.inputs)
            before, after = (
                relevance(self.view.model, inputs, ["input"], target=targets.tolist(), on_progress=report)["input"]
                for inputs, targets in zip(pictures, answers, strict=True)
            )
            return np.asarray(before, np.float32), np.asarray(after, np.float32)

        return work
