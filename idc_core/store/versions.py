"""Which numbers a kept result holds: results of another version of their kind are other results.

A result outlives every change of the program that leaves its numbers as they are. Whoever changes the numbers of a kind
raises its version here; `tests/store/computed_with.py` tells whose modules have changed.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version

_VERSIONS: dict[str, int] = {
    "analysis": 3,
    "criteria": 3,
    "explanations": 3,
    "fillings": 3,
    "heatmaps": 3,
    "limits": 4,
    "mistakes": 3,
    "neuron-examples": 3,
    "overview": 3,
    "report": 7,
    "statistics": 3,
    "trace": 3,
    "trials": 3,
    "verifications": 3,
}
"""Versions of the kinds of results whose numbers, or whose form, have changed on their own."""

_OTHERS = 2
"""The version of all other kinds; raised with those above where any kind that runs a network has other numbers."""

_LIBRARIES = ("captum", "numpy", "scikit-learn", "scipy", "torch", "umap-learn")
"""Libraries whose versions can change numbers."""


def version_of(kind: str) -> str:
    """Return the version of a kind of result, with those of the libraries that compute it, for a person to read."""
    return f"{_VERSIONS.get(kind, _OTHERS)}, with {_libraries()}"


@cache
def _libraries() -> str:
    return ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
