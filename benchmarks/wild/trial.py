"""One network under the project's own commands, in a process of its own."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import resource
import tempfile
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, softmax

import idc_core as idc
import idc_core.analysis.network_check  # what the commands import, once for all networks
import idc_core.models.onnx
import idc_core.runs
from benchmarks.wild.report import CONSERVED
from benchmarks.wild.subjects import Case, Subject, subjects
from idc_core.attribution.digits import said_lost
from idc_core.cli import main
from idc_core.models import Network
from idc_core.tracing.batching import placed

_FEW = 4
"""Inputs of which relevance is summed."""

_MOST_CLASSES = 1 << 16
_ENDS: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "": lambda scores: scores,
    "softmax": lambda scores: softmax(scores, 1),
    "softmax over the last axis": lambda scores: softmax(scores, -1),
    "log-softmax": lambda scores: log_softmax(scores, 1),
    "log-softmax over the last axis": lambda scores: log_softmax(scores, -1),
    "sigmoid": expit,
}
"""What the engine leaves out at the end of a network, and its runtime does not."""


def try_out(subject: Subject, folder: Path) -> dict[str, Any]:
    """Return all that was seen of a network; what is refused says so in `refused`, in its own sentence."""
    row: dict[str, Any] = {"name": subject.name, "package": subject.package, "version": subject.version}
    case = subject.case(folder)
    row |= {"options": list(case.options), "inputs": list(case.inputs.shape[1:])}
    outputs = case.runtime(case.inputs)
    words = _words(case, outputs, folder)
    checked = folder / "check.json"
    refused = _command(row, ["check-network", *words, "--json", str(checked)])
    if refused:
        return row | {"opens": False, "refused": refused}
    check = json.loads(checked.read_text())
    row |= {"opens": True, "parameters": check["parameters"], "remarks": check["notes"]}
    model = _loaded(case)
    try:
        row |= _compared(model if case.setup else _loaded(case, explained=False), case, outputs)
    except idc.IdcError as error:
        row["relevance_refused"] = str(error).splitlines()[0]
        return row
    layers = [layer["name"] for layer in check["layers"] if not layer["stopped"]]
    row["layers"] = [len(layers), len(check["layers"])]
    if not layers:
        return row | {"refused": next(layer["stopped"] for layer in check["layers"])}
    row |= _relevance(model, case, layers[0])
    late = model.card.default_layer if model.card.default_layer in layers else layers[-1]
    middle = layers[(layers.index(late) + 1) // 2 if late in layers else len(layers) // 2]
    for place, layer in (("middle", middle), ("late", late)):
        found = folder / f"{place}.json"
        if layer == row.get("middle", {}).get("layer"):
            row[place] = row["middle"]
            continue
        refused = _command(row, ["analyze", *words, "--layer", layer, "--fresh", "--json", str(found)])
        if refused:
            row.setdefault("refused", refused)
        else:
            result = json.loads(found.read_text())
            row[place] = {"layer": layer, "m": result["settings"]["m"], "idc": result["idc"]}
    return row


def try_by_library(subject: Subject, folder: Path) -> dict[str, Any]:
    """Return the same by `idc.load_model`, `idc.relevance` and `idc.IDC` alone, which takes a part of the time."""
    row: dict[str, Any] = {"name": subject.name, "package": subject.package, "version": subject.version}
    case = subject.case(folder)
    row |= {"by": "library", "options": list(case.options), "inputs": list(case.inputs.shape[1:])}
    outputs = case.runtime(case.inputs)
    try:
        if case.setup is not None:
            idc.open_setup(case.setup)
        model = _loaded(case)
        row |= {"opens": True, "parameters": model.card.parameters} | _compared(model, case, outputs)
    except idc.IdcError as error:
        return row | {"opens": False, "refused": str(error).splitlines()[0]}
    late, cut = model.card.default_layer, 2 * len(case.inputs) // 3
    layers = [layer for layer in model.card.layers if "@" not in layer]
    row |= _relevance(model, case, layers[0])
    for place, layer in (("middle", layers[(layers.index(late) + 1) // 2]), ("late", late)):
        try:
            criterion = idc.IDC(model, layer).fit(case.inputs[:cut]).update(case.inputs[cut:])
        except idc.IdcError as error:
            row.setdefault("refused", str(error).splitlines()[0])
        else:
            row[place] = {"layer": layer, "m": criterion.m, "idc": criterion.score}
    return row


def _words(case: Case, outputs: dict[str, NDArray[np.generic]], folder: Path) -> list[str]:
    """Return the options that name network and data, after the data were written where no setup file reads them."""
    if case.setup is not None:
        return ["--setup", str(case.setup), "--model", case.network, *case.options]
    cut = 2 * len(case.inputs) // 3
    targets, data = _targets(case, outputs), folder / "inputs.npz"
    parts = {
        "x_train": case.inputs[:cut],
        "x_test": case.inputs[cut:],
        "y_train": targets[:cut],
        "y_test": targets[cut:],
    }
    np.savez(data, **parts)
    task = "regression" if case.regression else "classification"
    return ["--model", case.network, "--data", str(data), "--task", task, *case.options]


def _targets(case: Case, outputs: dict[str, NDArray[np.generic]]) -> NDArray[np.generic]:
    """Return what the network's own runtime predicts; where that is one class alone, the runner-up of every third."""
    floats = [value for value in outputs.values() if value.dtype.kind == "f" and len(value) == len(case.inputs)]
    floats = floats or list(outputs.values())  # classes alone, of which a sentence tells
    scores = next((value for value in floats if value.ndim == 2 and value.shape[1] > 1), floats[0]).astype(np.float64)
    scores = scores.reshape(len(scores), -1) if scores.ndim < 3 else _over_positions(scores, case.options)
    if case.regression:
        return scores[:, 0].astype(np.float32)
    if scores.shape[1] == 1:
        targets = (scores[:, 0] > np.median(scores)).astype(np.int64)
        targets[:2] = 0, 1
        return targets
    order = scores.argsort(1)
    best, second = order[:, -1].copy(), order[:, -2]
    return np.where(np.arange(len(best)) % 3 == 0, second, best) if len(set(best.tolist())) == 1 else best


def _over_positions(scores: NDArray[np.float64], options: tuple[str, ...]) -> NDArray[np.float64]:
    """Return the mean over positions, which are the last axes of maps and the middle ones of tokens."""
    maps = "mean-pixels" in options
    axes = tuple(range(2, scores.ndim)) if maps else tuple(range(1, scores.ndim - 1))
    return scores.mean(axes)


def _command(row: dict[str, Any], words: list[str]) -> str:
    """Run one command; return the sentence in which it was refused, or "". What is no sentence is entered as raw."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            status = main(words)
    except BaseException as error:
        row["raw"] = "".join(traceback.format_exception(error)[-3:])
        return f"{type(error).__name__}: {error}"
    lines = [line for line in said.getvalue().splitlines() if line.strip()]
    return "" if status == 0 else (lines or ["It said nothing."])[-1]


def _loaded(case: Case, explained: bool = True) -> Network:
    """Return the network as `idc.load_model` gives it: of a file all outputs, in the order of the file.

    Where it is not `explained`, many scores per input stay as they are.
    """
    if case.setup is not None:
        return idc.load_model(case.network)
    given = dict(zip(case.options[::2], case.options[1::2], strict=True))
    known = {"--output": "output", "--output-layout": "output_layout"} | ({"--explain": "explain"} if explained else {})
    held = {one.partition("=")[0]: float(one.partition("=")[2]) for one in given.get("--hold", "").split(",") if one}
    return idc.load_model(case.network, held=held, **{known[flag]: given[flag] for flag in given if flag in known})


def _scores(model: Network, inputs: NDArray[np.generic]) -> NDArray[np.float64]:
    """Return the scores of inputs, (n, outputs)."""
    found = idc.trace(model, inputs, [])
    return np.concatenate([np.asarray(batch.scores, np.float64) for batch in found])


def _compared(model: Network, case: Case, outputs: dict[str, NDArray[np.generic]]) -> dict[str, Any]:
    """Compare what the network returns with what the runtime does: the largest difference, of the largest number."""
    with torch.no_grad():
        returned = [model(placed(model, rows)) for rows in np.split(case.inputs, range(1, len(case.inputs)))]
    ours = np.concatenate([np.asarray(scores, np.float64) for scores in returned])
    best: dict[str, Any] = {}
    for name, value in outputs.items():
        two = ours.shape[1:] == (1,) and value.size == 2 * ours.size  # one score, of which the file gives both classes
        scores = np.concatenate([-ours / 2, ours / 2], 1) if two else ours
        if value.dtype.kind != "f" or value.size != scores.size or len(value) != len(ours):
            continue
        theirs = value.astype(np.float64).reshape(scores.shape)
        for end, function in _ENDS.items():
            largest = 1.0 if end else max(float(np.abs(theirs).max()), 1e-30)  # probabilities may all be near 0
            error = float(np.abs(function(scores) - theirs).max()) / largest
            if not best or error < best["error"]:
                best = {"error": error, "output": name, "end": end}
    return best


def _relevance(model: Network, case: Case, first: str) -> dict[str, Any]:
    """Compare the sum of relevance with the score it started from, biases redistributed.

    It is that at the input, or at the `first` layer where that is whole numbers. Where the epsilon rule loses its
    digits, the engine's own sentence on that is told, and the gamma rule is compared. A sum that still misses
    its score is compared in double precision, which tells rounding from a rule that does not conserve.
    """
    inputs = case.inputs[:_FEW]
    place = first if np.issubdtype(inputs.dtype, np.integer) else "input"
    epsilon, gamma = (idc.RelevanceSettings(rule, bias="redistribute") for rule in ("epsilon", "gamma"))
    try:
        start = _scores(model, inputs).max(1)
        errors = _missing(model, inputs, place, epsilon, start)
        if errors.max() <= CONSERVED:
            return {"relevance": float(errors.max()), "relevance_at": place}
        worst = int(errors.argmax())
        lost = said_lost(model, inputs[worst : worst + 1], epsilon)
        rule = gamma if lost else epsilon
        errors = _missing(model, inputs, place, rule, start) if lost else errors
        if errors.max() > CONSERVED:
            errors = _missing(copy.deepcopy(model).double(), _doubled(inputs), place, rule, start)
            lost = f"{lost} The number is that of double precision.".strip()
    except idc.IdcError as refusal:
        return {"relevance_refused": str(refusal).splitlines()[0]}
    return {"relevance": float(errors.max()), "relevance_at": place, "relevance_lost": lost}


def _missing(
    model: Network, inputs: NDArray[np.generic], place: str, settings: idc.RelevanceSettings, start: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the difference of each input's sum of relevance from its score, of the largest score."""
    found = idc.relevance(model, inputs, [place], settings)[place].astype(np.float64)
    sums = found.reshape(len(found), -1).sum(1)
    return np.abs(sums - start) / max(float(np.abs(start).max()), 1e-30)


def _doubled(inputs: NDArray[np.generic]) -> NDArray[np.generic]:
    return inputs.astype(np.float64) if np.issubdtype(inputs.dtype, np.floating) else inputs


def run(name: str, most: int, home: str, telling: Connection) -> None:
    """Try one network, SOURCE/NAME, with at most so many bytes; tell what was seen, or why nothing was."""
    os.environ["IDC_HOME"] = home
    source = name.partition("/")[0]
    subject = next(one for one in subjects([source]) if f"{source}/{one.name}" == name)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    try:
        with tempfile.TemporaryDirectory() as folder:
            row = (try_by_library if subject.by_library else try_out)(subject, Path(folder))
    except Exception as error:
        telling.send(f"{type(error).__name__}: {error}")
        raise
    telling.send(row | {"peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024})
