"""Running a gate: every check of its file, each limit measured and judged."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache

from idc_core.base.own_code import explained
from idc_core.base.progress import Progress
from idc_core.errors import CancelledError
from idc_core.gate.baseline import Baseline, read_baseline, value_before
from idc_core.gate.bench import Bench
from idc_core.gate.limits import Limit
from idc_core.gate.settings import Gate, named_errors
from idc_core.gate.verdicts import CheckReport, GateReport, Measured, Value, Verdict
from idc_core.opening.setup_files import open_setup
from idc_core.runs import Planned
from idc_core.work import Executor, Here
from idc_core.work.executor import OpenExecutor


def run_gate(
    gate: Gate, *, renew: bool = False, open_executor: OpenExecutor = Here, on_progress: Progress | None = None
) -> GateReport:
    """Run every check of a gate, and judge its limits.

    A check that cannot run does not stop the others: its limits could not be judged then.

    Parameters
    ----------
    gate : Gate
        From `read_gate`.
    renew : bool
        Compare what is measured with itself instead of a baseline, for `write_baseline`.
    open_executor : callable, optional
        Opens what passes run on, where one is needed; by default they run here, in one piece.
    on_progress : Progress, optional

    Returns
    -------
    GateReport

    Raises
    ------
    IdcError
        Before any work: if a setup file, a network, data or the baseline cannot be opened.
    """
    for setup in gate.setups:
        open_setup(setup)
    for check in gate.checks:
        with named_errors(check.where):
            check.enter(gate.folder)
    needed = any(limit.needs_baseline for check in gate.checks for limit in check.limits)
    baseline = read_baseline(gate.baseline) if needed and not renew else None
    with ExitStack() as stack:
        find_executor = cache(lambda: stack.enter_context(open_executor()))
        numbers = range(len(gate.checks))
        checks = tuple(_run_check(gate, number, baseline, find_executor, on_progress) for number in numbers)
    return GateReport(str(gate.file), checks)


def measure(limit: Limit, bench: Bench) -> Measured:
    """Return what a limit is on; where it was measured before, as it is kept.

    A kind from elsewhere is measured each time: nothing here tells whether its code is still the same.
    """
    if not type(limit).__module__.startswith("idc_core."):
        return limit.measure(bench)
    key = (*bench.fingerprints, *bench.decisive.items(), limit.label)
    return Planned("limits", key, lambda _: limit.measure(bench)).kept(bench.on_progress)


def _run_check(
    gate: Gate,
    number: int,
    baseline: Baseline | None,
    find_executor: Callable[[], Executor],
    on_progress: Progress | None,
) -> CheckReport:
    started, check = time.perf_counter(), gate.checks[number]
    try:
        bench = Bench(gate, number, find_executor, on_progress)
        facts, settings = bench.facts, bench.decisive
    except CancelledError:
        raise
    except BaseException as error:
        if not (why := explained(error)):
            raise
        verdicts = tuple(_unjudged(limit, why) for limit in check.limits)
        return CheckReport(check.name, verdicts=verdicts, seconds=time.perf_counter() - started)
    values: dict[str, Value] = {}
    judged = [verdict for limit in check.limits for verdict in _judged(limit, bench, baseline, values)]
    return CheckReport(check.name, facts, tuple(judged), values, settings, time.perf_counter() - started)


def _judged(limit: Limit, bench: Bench, baseline: Baseline | None, values: dict[str, Value]) -> Iterator[Verdict]:
    """Yield the verdicts of one limit; note its value."""
    try:
        before = None
        if limit.needs_baseline and baseline is not None:
            before = value_before(baseline, bench.check.name, limit.label, bench.decisive)
        measured = measure(limit, bench)
        values[limit.label] = measured.value
        yield from limit.judge(measured, measured.value if before is None else before)
    except CancelledError:
        raise
    except BaseException as error:
        if not (why := explained(error)):
            raise
        yield _unjudged(limit, why)


def _unjudged(limit: Limit, why: str) -> Verdict:
    return Verdict(limit.label, "", "could not run", sentence=why)
