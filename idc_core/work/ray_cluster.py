"""Ray as an executor: workers on all machines of a cluster; those that die are replaced, those that join are used."""

from __future__ import annotations

import copy
import itertools
import os
import socket
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, TypeVar

from idc_core.base import devices
from idc_core.base.progress import Progress, report
from idc_core.base.threads import one_thread
from idc_core.errors import EngineError, IdcError, SettingError, needing
from idc_core.work.executor import Block, Executor, Found, Work, executor
from idc_core.work.source import Opener, Source
from idc_core.work.tree import Node, Tree

_Thing = TypeVar("_Thing")

_MOST_FAILURES = 5
"""How often workers may end at one block, or its results be lost, before the work is given up."""

_LOOK_S = 1.0
"""Seconds after which the cluster is asked for new machines, and the caller whether to stop."""

_START_S = 30.0
"""Seconds after which a worker that has not begun is given up where CPUs are free: its machine has gone."""

_CONNECT_S = 10.0
"""Seconds in which a cluster must answer at first."""

_NOBODY_S = 300.0
"""Seconds without any worker after which the work is given up."""

_LOST_S = 20.0
"""Seconds without the cluster's head after which the work is given up; after 60 Ray would end this process."""


class _Worker:
    """What runs in a worker's process; it opens networks on the device of this name."""

    def __init__(self, device: str) -> None:
        os.environ[devices.VARIABLE] = device
        self._open = Opener()
        self._work: tuple[object, Any] = None, None

    def ready(self) -> None:
        """Answer once the process is there."""

    def block(self, source: Source, work: list[object], block: Block) -> tuple[object, None]:
        """Return what a block gives, and a second, small object that tells the driver that it is done.

        `work` is a list with the reference to it, so that it is read once per run.
        """
        if self._work[0] != work[0]:
            self._work = work[0], _own(_import_ray().get(work[0]))
        with one_thread():
            return self._work[1](self._open(source), block), None

    def merge(self, *states: Any) -> tuple[object, None]:
        """Return states merged in their order."""
        with one_thread():
            return reduce(lambda state, other: state.merge(other), map(_own, states)), None


def _own(thing: _Thing) -> _Thing:
    """Return a copy of what comes from Ray's store, whose arrays are read-only."""
    return copy.deepcopy(thing)


@dataclass(eq=False)
class _Hired:
    """A worker as the driver sees it: its process, what it is at, and what tells that it has answered."""

    number: int
    actor: Any
    signal: object  # reference to the answer that is awaited; None while it has nothing to do
    hired: float  # when, by the clock that only goes forward
    job: Node | None = None
    state: object = None  # reference to the job's result

    @property
    def starting(self) -> bool:
        """Whether its process is not known to be there."""
        return self.signal is not None and self.job is None


@executor(
    "ray", label="Ray", help="Runs on the machines of a Ray cluster, by its address, or on the cores of this one."
)
class RayCluster(Executor):
    """Run blocks on a Ray cluster: one worker per CPU, or per GPU where another device than the processor is chosen.

    Parameters
    ----------
    address : str
        Of a cluster: HOST:PORT, or "auto" for the one that this machine is part of. Empty: the connection that this
        process has, or else a cluster of this machine's own cores, for this executor alone.

    Raises
    ------
    SettingError
        If Ray is not installed, no cluster answers there, or this process has a connection already.
    """

    def __init__(self, address: str = "") -> None:
        self.ray = _import_ray()
        self._ours = not self.ray.is_initialized()
        if self._ours:
            _connect(address)
        elif address:
            raise SettingError("This process is connected to a Ray cluster: leave the address out to use that one.")
        self.workers: dict[int, _Hired] = {}
        self.homes: dict[str, dict[int, int]] = defaultdict(dict)
        self._numbers = itertools.count()
        self._device = devices.said().partition(":")[0]  # which GPU a worker has is Ray's to say
        self._kind = self._kind_of_workers()
        self._head = _place(self.ray.get_runtime_context().gcs_address)
        self._lost = False
        self._looked, self._served = float("-inf"), time.monotonic()
        self._silent: float | None = None  # since when the head has not answered: short runs go on without it

    def _kind_of_workers(self) -> str:
        """Say what each worker is to have: a GPU or a CPU; the same to the end, since devices round differently."""
        gpus = self._device == devices.AUTO and self.ray.cluster_resources().get("GPU", 0) >= 1
        return "GPU" if gpus or self._device == "cuda" else "CPU"

    def run(
        self,
        source: Source,
        work: Work[Found],
        blocks: Sequence[Block],
        on_progress: Progress | None = None,
        *,
        moving: bool = False,
    ) -> Found:
        """Return what all blocks give, merged; progress counts inputs, and says how many each worker has done."""
        self._looked, self._served = float("-inf"), time.monotonic()
        errors = self.ray.exceptions
        try:
            merged: Found = _Run(self, source, work, blocks, on_progress, moving).result()
        except BaseException as error:
            self.dismiss(
                [worker for worker in self.workers.values() if worker.job is not None]
            )  # they would go on with it
            if isinstance(error, errors.RayError) and not isinstance(error, errors.RayTaskError):
                raise EngineError(
                    f"The Ray cluster fails ({_said(error)}). Look at its log, then start again."
                ) from error
            raise
        return merged

    def close(self) -> None:
        """End the workers, and the connection where it was made here."""
        self.dismiss(list(self.workers.values()))
        if self._ours:
            self.ray.shutdown()
            self._ours = False

    def hire(self) -> None:
        """Ask now and then for one worker per CPU, or GPU, that the cluster has; all of them begin side by side.

        Raises
        ------
        EngineError
            If the cluster is lost, or has had no worker for long.
        """
        now = time.monotonic()
        if now < self._looked + _LOOK_S:
            return
        self._looked = now
        if not self._reaches_head(now):
            return
        if any(not worker.starting for worker in self.workers.values()):
            self._served = now
        elif now > self._served + _NOBODY_S:
            raise EngineError(
                f"The Ray cluster has begun no worker for {_NOBODY_S:.0f} seconds: others hold its CPUs or GPUs, or "
                "its machines cannot start this program. Look at `ray status`, then start again."
            )
        there = self.ray.cluster_resources()
        late = [worker for worker in self.workers.values() if worker.starting and now > worker.hired + _START_S]
        if late and self.ray.available_resources().get(self._kind, 0) >= 1:
            self.dismiss(late)
        needs = {"num_cpus": 1, "num_gpus": int(self._kind == "GPU"), "max_restarts": 0}
        for _ in range(len(self.workers), int(there.get(self._kind, 0))):
            number = next(self._numbers)
            actor = self.ray.remote(_Worker).options(**needs).remote(self._device)
            self.workers[number] = _Hired(number, actor, actor.ready.remote(), now)

    def _reaches_head(self, now: float) -> bool:
        """Say whether the cluster's head answers; what is asked of Ray itself would wait for it."""
        try:
            socket.create_connection(self._head, _LOOK_S).close()
        except OSError as error:
            self._silent = now if self._silent is None else self._silent
            if now > self._silent + _LOST_S:
                self._lost = True
                raise EngineError(
                    f"The Ray cluster is lost: its head at {':'.join(map(str, self._head))} has not answered for "
                    f"{_LOST_S:.0f} seconds ({_said(error)}). Start it again, then this run."
                ) from error
            return False
        self._silent = None
        return True

    def dismiss(self, workers: Sequence[_Hired]) -> None:
        """End workers, if they have not ended."""
        for worker in workers:
            self.workers.pop(worker.number, None)
            if not self._lost:
                with suppress(self.ray.exceptions.RayError):
                    self.ray.kill(worker.actor)


class _Run:
    """One run, as the driver leads it."""

    def __init__(
        self,
        executor: RayCluster,
        source: Source,
        work: Work[Any],
        blocks: Sequence[Block],
        on_progress: Progress | None,
        moving: bool,
    ) -> None:
        self._executor, self._ray, self._errors = executor, executor.ray, executor.ray.exceptions
        self._blocks, self._on_progress = blocks, on_progress
        self._homes = executor.homes[work.keeps] if work.keeps else {}
        self._tree: Tree[Any] = Tree(len(blocks), self._homes, moving)
        self._source, self._work = replace(source, live=None), [self._ray.put(work)]
        self._did: dict[int, int] = {}  # the worker that did each block
        self._failures: Counter[Node | None] = Counter()  # by job; None: before a worker had one

    def result(self) -> Any:
        """Lead the run to its end."""
        while True:
            while not self._tree.finished:
                self._hand_out()
                self._hear()
                self._tell()
            top = self._tree.top
            try:
                while not self._ray.wait([self._tree.found[top]], timeout=_LOOK_S)[0]:
                    self._executor.hire()
                    self._tell()
                return _own(self._ray.get(self._tree.found[top]))
            except self._errors.ObjectLostError as error:
                self._redo(top, error)

    def _hand_out(self) -> None:
        workers = self._executor.workers
        self._executor.hire()
        for worker in workers.values():
            node = None if worker.signal is not None else self._tree.take(worker.number, set(workers))
            if node is None:
                continue
            if node.level:
                call, given = worker.actor.merge, self._tree.states(node)
            else:
                call, given = worker.actor.block, [self._source, self._work, self._blocks[node.index]]
            worker.job = node
            worker.state, worker.signal = call.options(num_returns=2).remote(*given)

    def _hear(self) -> None:
        """Wait until a worker answers, but not for long."""
        awaited = {worker.signal: worker for worker in self._executor.workers.values() if worker.signal is not None}
        if not awaited:
            time.sleep(_LOOK_S)
            return
        for signal in self._ray.wait(list(awaited), num_returns=1, timeout=_LOOK_S)[0]:
            self._answered(awaited[signal])

    def _answered(self, worker: _Hired) -> None:
        node, state, signal = worker.job, worker.state, worker.signal
        worker.job = worker.state = worker.signal = None
        try:
            self._ray.get(signal)
        except self._errors.RayError as error:
            cause = getattr(error, "cause", error)
            if isinstance(cause, self._errors.ObjectLostError) and node is not None and node.level:
                self._redo(node, cause)
            elif isinstance(error, self._errors.RayTaskError):
                raise cause if isinstance(cause, IdcError) else error from None
            else:
                self._ended(worker, node, error)
            return
        self._failures.pop(None, None)
        if node is not None:
            self._tree.done(node, state)
            if not node.level:
                self._did[node.index] = self._homes[node.index] = worker.number

    def _ended(self, worker: _Hired, node: Node | None, error: Exception) -> None:
        """Put back the job of a worker that has ended; another one is hired in its place."""
        self._executor.dismiss([worker])
        if node is not None:
            self._tree.put_back(node)
        self._failed(node, error)

    def _redo(self, node: Node, error: Exception) -> None:
        """Run the blocks again whose states went with a machine."""
        for index in self._tree.redo(node):
            self._did.pop(index, None)
        self._failed(node, error)

    def _failed(self, node: Node | None, error: Exception) -> None:
        """Count a job that has no result; one that fails again and again ends the run."""
        self._failures[node] += 1
        if self._failures[node] >= _MOST_FAILURES:
            raise EngineError(
                f"{_MOST_FAILURES} times a worker ended {_named(node, self._blocks)} ({_said(error)}). Look whether "
                "the machines have enough memory, and this program at the same path."
            )

    def _tell(self) -> None:
        counts = dict.fromkeys(self._executor.workers, 0)
        for index, number in self._did.items():
            start, end = self._blocks[index]
            counts[number] = counts.get(number, 0) + end - start
        each = ", ".join(f"{count:,}" for count in counts.values())
        report(self._on_progress, sum(counts.values()), self._blocks[-1][1], f"inputs done (per worker: {each})")


def _named(node: Node | None, blocks: Sequence[Block]) -> str:
    if node is None:
        return "before its first block"
    if node.level:
        return "at the same merge"
    start, end = blocks[node.index]
    return f"at the same inputs, {start:,} to {end - 1:,}"


def _said(error: BaseException) -> str:
    """Return the first line of an error."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would report its use to its makers
    with needing("cluster", "The engine ray"):
        import ray
        import ray.exceptions
    return ray


def _place(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _connect(address: str) -> None:
    ray = _import_ray()
    try:
        if ":" in address:  # Ray would try for minutes
            socket.create_connection(_place(address), _CONNECT_S).close()
        ray.init(
            address=address or "local",
            include_dashboard=None if address else False,
            log_to_driver=False,
            logging_level="ERROR",
        )
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise SettingError(
            f"No Ray cluster answers at {address or 'this machine'} ({_said(error)}). Start one as docs/CLUSTER.md "
            "explains, and check its address and token."
        ) from error
