"""Which numbers a kept result holds: results of another version of their kind are other results.

A result outlives every change of the program that leaves its numbers as they are. Whoever changes the numbers of a kind
raises its version here; `tests/store/computed_with.py` tells whose modules have changed.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version

_VERSIONS: dict[str, int] = {
    "analysis": 2,
    "criteria": 2,
    "explanations": 2,
    "fillings": 2,
    "heatmaps": 2,
    "limits": 3,
    "mistakes": 2,
    "neuron-examples": 2,
    "overview": 2,
    "report": 6,
    "statistics": 2,
    "trace": 2,
    "trials": 2,
    "verifications": 2,
}
"""Versions of the kinds of results whose numbers, or whose form, have ever changed; that of all others is 1."""

_LIBRARIES = ("captum", "numpy", "scikit-learn", "scipy", "torch", "umap-learn")
"""Libraries whose versions can change numbers."""


def version_of(kind: str) -> str:
    """Return the version of a kind of result, with those of the libraries that compute it, for a person to read."""
    return f"{_VERSIONS.get(kind, 1)}, with {_libraries()}"


@cache
def _libraries() -> str:
    return ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
