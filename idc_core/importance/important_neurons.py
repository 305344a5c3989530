"""Algorithm 1: from relevance to the m important neurons of a layer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from idc_core.base.parameters import whole_number
from idc_core.base.registry import Registry
from idc_core.errors import SettingError

Relevance = NDArray[np.float32] | NDArray[np.float64]


@dataclass(frozen=True)
class _Priority:
    """A way to turn relevance per input into one number per neuron."""

    name: str
    label: str
    help: str
    per_input: Callable[[Relevance], Relevance]

    def total(self, relevance: Relevance) -> NDArray[np.float64]:
        """Return the priority summed over inputs, float64 (neurons,), from relevance (n, neurons)."""
        summed: NDArray[np.float64] = self.per_input(relevance).sum(0, dtype=np.float64)
        return summed


PRIORITIES: Registry[_Priority] = Registry("priority")
"""Priorities by name, entered by `priority`; "sum" is the paper's."""

_PerInput = TypeVar("_PerInput", bound=Callable[[Relevance], Relevance])


def priority(name: str, *, label: str, help: str) -> Callable[[_PerInput], _PerInput]:
    """Enter a priority into `PRIORITIES`; the decorated function maps relevance (n, neurons) to the same shape."""

    def enter(per_input: _PerInput) -> _PerInput:
        PRIORITIES.enter(name, _Priority(name, label, help, per_input))
        return per_input

    return enter


@priority(
    "sum", label="Cumulative relevance", help="What speaks for decisions counts, what speaks against is taken off."
)
def _cumulative(relevance: Relevance) -> Relevance:
    return relevance


@priority("absolute", label="Absolute relevance", help="What speaks for and what speaks against count alike.")
def _absolute(relevance: Relevance) -> Relevance:
    return np.abs(relevance)


@priority(
    "normalised",
    label="Normalised relevance",
    help="Each input's relevance is divided by the sum of its absolute values: all inputs count alike.",
)
def _normalised(relevance: Relevance) -> Relevance:
    # The paper, section 3.1, names normalised relevance as another choice and does not say by what; here the layer's.
    whole = np.abs(relevance).sum(1, keepdims=True)
    shares: Relevance = np.divide(relevance, whole, out=np.zeros_like(relevance), where=whole > 0)
    return shares


def most_important(importance: NDArray[np.float64], m: int) -> NDArray[np.int64]:
    """Return the m neurons with the largest importance, int64 (m,), most important first, of equals the lower number.

    S. Gerasimou, H. F. Eniser, A. Sen, A. Cakan, "Importance-Driven Deep Learning System Testing", ICSE 2020, Algorithm
    1. The original program takes the higher number first where importances are equal.
    """
    check_m(m, len(importance))
    if not np.isfinite(importance).all():
        raise SettingError(
            "The relevance of some neurons is not finite. Check the network's weights and the scaling of its inputs."
        )
    return np.argsort(-importance, kind="stable")[:m].astype(np.int64)


def check_m(m: int, neurons: int) -> None:
    """Refuse a number of important neurons that a layer cannot have."""
    whole_number("m", m, 1, neurons, ", the layer's neurons")
