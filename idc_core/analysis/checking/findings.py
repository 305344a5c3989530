"""What the check of a network found, for the command line and for pages."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class LayerCheck:
    """A layer, and whether relevance passes behind it.

    Attributes
    ----------
    name : str
    shape : tuple of int
        Of its output for one input; empty where it gave none.
    stopped : str
        What stops relevance, a sentence with the operation's name; empty where it passes.
    """

    name: str
    shape: tuple[int, ...]
    stopped: str


@dataclass(frozen=True)
class Trial:
    """A prediction to look at.

    Attributes
    ----------
    position : int
        Which of the tests.
    target, prediction : str
        Class names, or numbers of a regression.
    confidence : float or None
        Share of the predicted class after a softmax of the scores; None of a regression.
    correct : bool or None
        None of a regression.
    """

    position: int
    target: str
    prediction: str
    confidence: float | None
    correct: bool | None


@dataclass(frozen=True)
class Quality:
    """How well inputs of one split are predicted.

    Attributes
    ----------
    split : {"train", "test"}
    measure : {"accuracy", "RMSE"}
    value : float
        Accuracy in 0..1, or the root mean squared error.
    baseline : float
        Accuracy of always predicting the most frequent class, or the standard deviation of the targets.
    inputs, of : int
        How many were drawn, and from how many.
    """

    split: str
    measure: str
    value: float
    baseline: float
    inputs: int
    of: int

    def __str__(self) -> str:
        """Return it as a phrase."""
        drawn = "" if self.inputs == self.of else f" ({self.inputs:,} of {self.of:,}, drawn at random)"
        if self.measure == "accuracy":
            return f"accuracy {100 * self.value:.1f} %, most frequent class {100 * self.baseline:.1f} %{drawn}"
        return f"RMSE {self.value:.4g}, standard deviation of the targets {self.baseline:.4g}{drawn}"


@dataclass(frozen=True)
class Mistake:
    """A likely mistake.

    Attributes
    ----------
    kind : str
        Name of the detector.
    seen : str
        The evidence, with figures.
    remedy : str
        What to do.
    """

    kind: str
    seen: str
    remedy: str

    def __str__(self) -> str:
        """Return both sentences."""
        return f"{self.seen} {self.remedy}"


@dataclass(frozen=True)
class NetworkCheck:
    """What was found.

    Attributes
    ----------
    network, data : str
        Names in the registries.
    parameters : int
    fingerprint : str
    notes : tuple of str
        What was changed to make the network ready, and what was seen that is no mistake.
    training, tests : int
        Numbers of inputs.
    input_shape : tuple of int
        Of one input.
    input_type : str
    input_range : (float, float)
        Lowest and highest value of the inputs drawn.
    task : {"classification", "regression"}
    class_names : tuple of str
    quality : tuple of Quality
    layers : tuple of LayerCheck
    trials : tuple of Trial
    mistakes : tuple of Mistake
    prepared : tuple of str
        What was done to make inputs of files, each in a few words.
    """

    network: str
    data: str
    parameters: int
    fingerprint: str
    notes: tuple[str, ...]
    training: int
    tests: int
    input_shape: tuple[int, ...]
    input_type: str
    input_range: tuple[float, float]
    task: str
    class_names: tuple[str, ...]
    quality: tuple[Quality, ...]
    layers: tuple[LayerCheck, ...]
    trials: tuple[Trial, ...]
    mistakes: tuple[Mistake, ...]
    prepared: tuple[str, ...] = ()

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield the facts as name and phrase."""
        yield "network", self.network
        yield "weights", f"{self.parameters:,} parameters, fingerprint {self.fingerprint}"
        for note in self.notes:
            yield "note", note
        yield "data", f"{self.data}: {self.training:,} training inputs, {self.tests:,} tests"
        if self.prepared:
            yield "read as", "; ".join(self.prepared)
        low, high = self.input_range
        yield "input", f"{said_shape(self.input_shape)}, {self.input_type}, {low:.4g}..{high:.4g}"
        yield "task", self.task
        if self.class_names:
            yield "classes", f"{len(self.class_names)}: {listed(self.class_names, 20)}"
        for entry in self.quality:
            yield {"train": "training", "test": "tests"}[entry.split], str(entry)


def said_shape(shape: tuple[int, ...]) -> str:
    """Return a shape as "3 x 32 x 32"."""
    return " x ".join(str(size) for size in shape)


def listed(names: tuple[str, ...] | list[str], most: int = 6) -> str:
    """Return names with commas, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def finite(value: float) -> float | None:
    """Return a number, or None where it is not finite."""
    return value if math.isfinite(value) else None
