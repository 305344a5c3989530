"""The registry of likely mistakes: one detector each, with what it needs to make sense."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from idc_core.analysis.checking.evidence import Evidence
from idc_core.analysis.checking.findings import Mistake
from idc_core.base.progress import report
from idc_core.base.registry import Registry

_Find = Callable[[Evidence], Iterator[tuple[str, str]]]
"""Yields what was seen, with figures, and what to do: one sentence each."""

_Need = Callable[[Evidence], bool]


@dataclass(frozen=True)
class _Detector:
    """Looks for one mistake.

    Attributes
    ----------
    name, label : str
        Kind of the mistake, and what is looked for, for a person.
    find : callable
    needs : tuple of callable
        It runs only where all of these hold.
    """

    name: str
    label: str
    find: _Find
    needs: tuple[_Need, ...]


DETECTORS: Registry[_Detector] = Registry("detector")
"""All detectors by the kind of mistake; each is shown what those before it found."""


def detector(name: str, label: str, *needs: _Need) -> Callable[[_Find], _Find]:
    """Enter the decorated function as a detector."""

    def enter(find: _Find) -> _Find:
        DETECTORS.enter(name, _Detector(name, label, find, needs))
        return find

    return enter


def run_detectors(evidence: Evidence) -> tuple[Mistake, ...]:
    """Run all detectors that make sense, in the order of the registry, and return what they found."""
    for done, entry in enumerate(DETECTORS.values()):
        report(evidence.on_progress, done, len(DETECTORS), f"looking for mistakes: {entry.label}")
        if all(need(evidence) for need in entry.needs):
            evidence.found += [Mistake(entry.name, seen, remedy) for seen, remedy in entry.find(evidence)]
    return tuple(evidence.found)


def classification(evidence: Evidence) -> bool:
    """Whether inputs have classes."""
    return len(evidence.test.class_names) > 1


def numbers(evidence: Evidence) -> bool:
    """Whether inputs are pictures, vectors or sequences of numbers, not token ids."""
    return evidence.inputs.dtype.kind == "f"


def finite_scores(evidence: Evidence) -> bool:
    """Whether all scores are numbers, so that predictions mean something."""
    return evidence.finite


def varied(evidence: Evidence) -> bool:
    """Whether predictions depend on inputs."""
    return not evidence.has_found("constant")
