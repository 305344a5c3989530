"""A network and its data checked before any work: layers, relevance, trial predictions and likely mistakes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from idc_core.datasets import Dataset, load_dataset
from idc_core.errors import IdcError
from idc_core.lrp.rules import RelevanceSettings
from idc_core.models import load_model
from idc_core.models.weights import fingerprint
from idc_core.progress import Progress
from idc_core.tracing.batching import place, probe
from idc_core.tracing.trace import collect

TRIALS = 12
CHECKED = 2000
"""Inputs of each split that are run and compared."""

CHANCE = 1.5
"""Accuracy below so many times that of guessing is near chance."""


@dataclass(frozen=True)
class LayerCheck:
    """A layer, the shape of its output for one input, and "yes" or what stops relevance behind it."""

    name: str
    shape: str
    relevance: str


@dataclass(frozen=True)
class NetworkCheck:
    """What was found.

    Attributes
    ----------
    facts : tuple of (str, str)
        Name and value: inputs, classes, accuracy.
    layers : tuple of LayerCheck
    trials : tuple of (str, str, str, str)
        Test, target, prediction, confidence or "".
    mistakes : tuple of str
        One sentence for each likely mistake.
    """

    facts: tuple[tuple[str, str], ...]
    layers: tuple[LayerCheck, ...]
    trials: tuple[tuple[str, str, str, str], ...]
    mistakes: tuple[str, ...]


def check_network(name: str, on_progress: Progress | None = None) -> NetworkCheck:
    """Check a network and its data.

    Parameters
    ----------
    name : str
        A name in `MODELS`.
    on_progress : Progress, optional

    Returns
    -------
    NetworkCheck

    Raises
    ------
    IdcError
        If the network or its data cannot be read at all.
    """
    model = load_model(name)
    train, test = (load_dataset(model.card.dataset, split, on_progress=on_progress) for split in ("train", "test"))
    seen = [collect(model, data.inputs[:CHECKED], [], on_progress=on_progress).scores for data in (train, test)]
    outputs = _raw_outputs(model, test)
    facts = [
        ("weights", f"{model.card.parameters:,} parameters, fingerprint {model.card.fingerprint}"),
        *(("note", remark) for remark in getattr(model, "remarks", ())),
        ("data", f"{train.name}: {len(train):,} training inputs, {len(test):,} tests"),
        ("input", f"{' x '.join(map(str, test.inputs.shape[1:]))}, {test.inputs.dtype}, {_range(test)}"),
        ("task", train.task),
    ]
    if train.class_names:
        facts.append(("classes", f"{len(train.class_names)}: {', '.join(train.class_names)}"))
    facts += [
        (what, _quality(data, scores))
        for what, data, scores in zip(("training", "tests"), (train, test), seen, strict=True)
    ]
    return NetworkCheck(
        tuple(facts),
        tuple(_check_layer(model, test, layer) for layer in model.card.layers),
        tuple(_trial(test, seen[1], number) for number in range(min(TRIALS, len(test)))),
        (
            *_mistakes_of_network(name, model, seen[1], outputs, train),
            *_mistakes_of_data(train, test),
            *_near_chance(test, seen[1]),
        ),
    )


def _range(data: Dataset) -> str:
    return f"{data.inputs.min():.4g}..{data.inputs.max():.4g}"


def _raw_outputs(model: nn.Module, test: Dataset) -> NDArray[np.float32]:
    """Return what the network itself returns, softmax included."""
    with torch.no_grad():
        return np.asarray(model(place(model, test.inputs[:CHECKED][:256])).reshape(min(len(test), 256), -1).numpy())


def _quality(data: Dataset, scores: NDArray[np.float32]) -> str:
    targets = data.targets[: len(scores)]
    of = "" if len(scores) == len(data) else f" (of the first {len(scores):,})"
    if not data.class_names:
        return f"RMSE {float(np.sqrt(((scores[:, 0] - targets) ** 2).mean())):.4g}, targets' SD {targets.std():.4g}{of}"
    return f"accuracy {100 * float((scores.argmax(1) == targets).mean()):.1f} %{of}"


def _check_layer(model: nn.Module, test: Dataset, layer: str) -> LayerCheck:
    inputs = test.inputs[:1]
    try:
        shape = " x ".join(str(size) for size in collect(model, inputs, [layer]).shapes[layer])
    except IdcError as error:
        return LayerCheck(layer, "", str(error))
    try:
        probe(model, place(model, inputs), [layer], RelevanceSettings())
    except IdcError as error:
        return LayerCheck(layer, shape, str(error))
    return LayerCheck(layer, shape, "yes")


def _trial(test: Dataset, scores: NDArray[np.float32], number: int) -> tuple[str, str, str, str]:
    if not test.class_names:
        return str(number), f"{test.targets[number]:.4g}", f"{scores[number, 0]:.4g}", ""
    even = np.exp(scores[number] - scores[number].max())
    best = int(scores[number].argmax())
    share = f"{100 * float(even[best] / even.sum()):.1f} %"
    return str(number), test.class_names[int(test.targets[number])], test.class_names[best], share


def _mistakes_of_network(
    name: str, model: nn.Module, scores: NDArray[np.float32], outputs: NDArray[np.float32], train: Dataset
) -> list[str]:
    found = []
    bad = [
        name for name, value in model.state_dict().items() if value.is_floating_point() and not value.isfinite().all()
    ]
    if bad:
        found.append(f"Weights are not finite: {', '.join(bad)}. Load the weights of a training that did not diverge.")
    if len(scores) > 1 and (scores == scores[0]).all():
        found.append(
            "All outputs are the same. Check that the weights are loaded, and that the inputs reach the network."
        )
    softmax = outputs.shape[1] > 1 and (outputs >= 0).all() and np.allclose(outputs.sum(1), 1, atol=1e-4)
    if train.class_names and softmax:
        found.append(
            "The network ends in a softmax. The engine goes back to the scores before it where it sees the softmax; "
            "return scores where it is part of another operation."
        )
    if fingerprint(load_model(name)) != fingerprint(model):
        found.append("Two builds have different weights. Load trained weights in `build`, or fix its seed.")
    return found


def _mistakes_of_data(train: Dataset, test: Dataset) -> list[str]:
    found = []
    first, second = (_digests(data) for data in (train, test))
    both = sum(one in set(first) for one in second)
    if both:
        found.append(f"{both:,} of {len(second):,} tests are training inputs, too: coverage and accuracy are too high.")
    for what, digests in (("training inputs", first), ("tests", second)):
        doubled = len(digests) - len(set(digests))
        if doubled:
            found.append(f"{doubled:,} of {len(digests):,} {what} are duplicates of others.")
    for what, data in (("training inputs", train), ("tests", test)):
        missing = sorted(set(range(len(data.class_names))) - set(data.targets.tolist())) if data.class_names else []
        if missing:
            found.append(f"There are no {what} of {', '.join(data.class_names[one] for one in missing)}.")
    pictures = test.inputs.ndim == 4
    if pictures and test.inputs.max() <= 2 / 255:
        found.append("Pixels reach at most 2/255: they were probably divided by 255 twice.")
    ranges = [(float(data.inputs.min()), float(data.inputs.max())) for data in (train, test)]
    if train.inputs.dtype.kind == "f" and ranges[0][1] > 10 * max(ranges[1][1], 1e-9):
        found.append("Training inputs reach ten times as high as tests: check that both are scaled in the same way.")
    return found


def _digests(data: Dataset) -> list[bytes]:
    return [row.tobytes() for row in data.inputs[:CHECKED]]


def _near_chance(test: Dataset, scores: NDArray[np.float32]) -> list[str]:
    """Say where accuracy is near that of guessing, and whether other names for the classes would fit."""
    from scipy.optimize import linear_sum_assignment

    classes, targets = len(test.class_names), test.targets[: len(scores)]
    if classes < 2:
        return []
    table = np.zeros((classes, classes), np.int64)
    np.add.at(table, (targets, scores.argmax(1)), 1)
    chance = table.sum(1).max() / len(targets)
    accuracy = float(np.trace(table) / len(targets))
    if accuracy > min(CHANCE * chance, (1 + chance) / 2):
        return []
    rows, columns = linear_sum_assignment(-table)
    best = float(table[rows, columns].sum() / len(targets))
    said = f"Accuracy is {100 * accuracy:.1f} %; always the most frequent class is {100 * chance:.1f} %."
    if best > max(2 * accuracy, 0.6):
        order = ", ".join(test.class_names[row] for row in np.argsort(columns))
        return [
            f"{said} With the classes in the order {order} it is {100 * best:.1f} %: check the order of the classes."
        ]
    return [f"{said} Check weights, scaling of the inputs and the order of the channels."]
