"""How many threads compute, and how they wait for one another: the same in every process of the studio.

The order in which threads add floating-point numbers changes the last digits of sums and products. So server, worker
processes, command line and checks compute with one number of threads: torch's own, which is `OMP_NUM_THREADS` of the
environment, else `threads` of the config file, else one per core. It is settled before torch is imported, as each
thread of Python keeps the number that holds when it first computes, and it is part of the name of a kept result.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from idc_core.base.config import config

log = logging.getLogger("idc_core")

_NUMBER, _NUMPY = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"
"""Environment variables that libraries read when they are loaded, in child processes too."""

_MKL_ALONE = "mkl_get_max_threads() : 1\n"
"""What torch says of MKL where that computes with one thread."""

_SPINS = 1000
"""Turns of its waiting loop, some microseconds, after which a thread of OpenMP sleeps.

By default threads spin for milliseconds, and two busy processes are half as fast as with sleeping ones; threads that
sleep at once make one process alone 1.6 times slower in many small steps, as waking one takes longer than a step. So
few turns cost less than a tenth in either case. Measured with `idc_core.relevance` of 512 digits on two cores.
"""


def settle() -> None:
    """Fix the threads of this process and its children; what a person's environment says is kept.

    Call it before torch is imported. Where it is imported already, its number of threads belongs to the program that
    did so, and stays.

    Raises
    ------
    SettingError
        If the config file is not what it should be.
    """
    _wait_briefly()
    number = config().threads
    if config().engine == "ray":
        number = 1  # as its workers compute
    if number is not None and os.environ.setdefault(_NUMBER, str(number)) != str(number):
        log.warning("Computing with %s=%s, not the %s of the config file", _NUMBER, os.environ[_NUMBER], number)
    few = max(1, _most() // 4)
    # NumPy's products are small here. Shared among all cores they take many times as long where others use these
    # too: its threads wait for each other by spinning.
    os.environ.setdefault(_NUMPY, str(few))
    if "numpy" in sys.modules:
        from threadpoolctl import threadpool_limits

        said_of_numpy = os.environ[_NUMPY]
        threadpool_limits(int(said_of_numpy) if said_of_numpy.isdecimal() else few, user_api="blas")


def _wait_briefly() -> None:
    """Let waiting threads spin for microseconds; only the OpenMP of GCC, which torch has on Linux, listens to it."""
    if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & set(os.environ):
        os.environ["GOMP_SPINCOUNT"] = str(_SPINS)


def number() -> int:
    """Return how many threads compute what this thread of Python asks for."""
    import torch

    return torch.get_num_threads()


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread in this block, as trainings do, and every worker of a Ray cluster.

    Other threads of Python keep their number, but where the program has called `torch.set_num_threads`: MKL then has
    one number for all of them.
    """
    import torch
    from threadpoolctl import threadpool_limits

    before = number()
    with threadpool_limits(1):
        fixed = "mkl_get_max_threads()" in (info := torch.__config__.parallel_info()) and _MKL_ALONE not in info
        try:
            if fixed:
                torch.set_num_threads(1)
            yield
        finally:
            if fixed:
                torch.set_num_threads(before)


def _most() -> int:
    number = os.environ.get(_NUMBER, "").partition(",")[0]
    return int(number) if number.isdecimal() else os.cpu_count() or 1
