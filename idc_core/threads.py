"""How threads of OpenMP wait for one another. Needs no torch, which reads it when it is first imported."""

from __future__ import annotations

import os

SPINS = 1000
"""Turns of its waiting loop, some microseconds, after which a thread of OpenMP sleeps.

By default threads spin for milliseconds, and two busy processes are half as fast as with sleeping ones; threads that
sleep at once make one process alone 1.6 times slower in many small steps, as waking one takes longer than a step. So
few turns cost less than a tenth in either case. Measured with `idc_core.relevance` of 512 digits on two cores.
"""


def wait_briefly() -> None:
    """Let waiting threads spin for microseconds, in this process and its children; what a person has set is kept.

    Call it before torch is imported. Only the OpenMP of GCC, which torch brings along on Linux, listens to it.
    """
    if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & set(os.environ):
        os.environ["GOMP_SPINCOUNT"] = str(SPINS)
