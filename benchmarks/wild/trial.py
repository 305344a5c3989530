"""One network under the project's own commands; run as a process of its own: `python -m benchmarks.wild.trial NAME`."""

from __future__ import annotations

import contextlib
import io
import json
import re
import resource
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import idc_core as idc
from benchmarks.wild.report import CONSERVED
from benchmarks.wild.subjects import Case, Subject, subjects
from idc_core.attribution.digits import said_lost
from idc_core.cli import main
from idc_core.models import Network

_FEW = 4
"""Inputs of which relevance is summed."""

_MOST_CLASSES = 1 << 16
_ENDS = {
    "": lambda scores: scores,
    "softmax": lambda scores: (
        np.exp(scores - scores.max(1, keepdims=True))
        / np.exp(scores - scores.max(1, keepdims=True)).sum(1, keepdims=True)
    ),
    "log-softmax": lambda scores: (
        scores
        - scores.max(1, keepdims=True)
        - np.log(np.exp(scores - scores.max(1, keepdims=True)).sum(1, keepdims=True))
    ),
    "sigmoid": lambda scores: 1 / (1 + np.exp(-np.clip(scores, -80, 80))),
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
        row |= _compared(model, case, outputs)
    except idc.IdcError as error:
        row["relevance_refused"] = str(error).splitlines()[0]
        return row
    row |= _relevance(model, case)
    if row.get("relevance", 0) > CONSERVED:
        row |= _lost(model, case, row["remarks"])
    layers = [layer["name"] for layer in check["layers"] if not layer["stopped"]]
    row["layers"] = [len(layers), len(check["layers"])]
    if not layers:
        return row | {"refused": next(layer["stopped"] for layer in check["layers"])}
    late = model.card.default_layer if model.card.default_layer in layers else layers[-1]
    middle = layers[(layers.index(late) + 1) // 2 if late in layers else len(layers) // 2]
    for place, layer in (("middle", middle), ("late", late)):
        found = folder / f"{place}.json"
        refused = _command(row, ["analyze", *words, "--layer", layer, "--fresh", "--json", str(found)])
        if refused:
            row.setdefault("refused", refused)
        else:
            result = json.loads(found.read_text())
            row[place] = {"layer": layer, "m": result["settings"]["m"], "idc": result["idc"]}
    return row


def try_by_library(subject: Subject, folder: Path) -> dict[str, Any]:
    """Return the same by `idc.load_model`, `idc.relevance` and `idc.IDC` alone, which takes a part of the time."""
    row: dict[str, Any] = {
        "name": subject.name,
        "package": subject.package,
        "version": subject.version,
        "by": "library",
    }
    case = subject.case(folder)
    row |= {"options": list(case.options), "inputs": list(case.inputs.shape[1:])}
    outputs = case.runtime(case.inputs)
    try:
        if case.setup is not None:
            idc.open_setup(case.setup)
        model = _loaded(case)
        row |= {"opens": True, "parameters": model.card.parameters} | _compared(model, case, outputs)
    except idc.IdcError as error:
        return row | {"opens": False, "refused": str(error).splitlines()[0]}
    row |= _relevance(model, case)
    if row.get("relevance", 0) > CONSERVED:
        worst = case.inputs[row["worst"] : row["worst"] + 1]
        row["remarks"] = [said_lost(model, worst, idc.RelevanceSettings(bias="redistribute"))]
        row |= _lost(model, case, row["remarks"])
    late = model.card.default_layer
    layers = [layer for layer in model.card.layers if "@" not in layer]
    cut = 2 * len(case.inputs) // 3
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
    said, started = io.StringIO(), time.monotonic()
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            status = main(words)
    except BaseException as error:
        row["raw"] = "".join(traceback.format_exception(error)[-3:])
        return f"{type(error).__name__}: {error}"
    row.setdefault("seconds", {})[f"{words[0]} {words[-4] if words[0] == 'analyze' else ''}".strip()] = round(
        time.monotonic() - started, 1
    )
    lines = [line for line in said.getvalue().splitlines() if line.strip()]
    return "" if status == 0 else (lines or ["It said nothing."])[-1]


def _loaded(case: Case) -> Network:
    """Return the network as `idc.load_model` gives it: of a file all outputs, in the order of the file."""
    if case.setup is not None:
        return idc.load_model(case.network)
    given = dict(zip(case.options[::2], case.options[1::2], strict=True))
    known = {"--explain": "explain", "--output": "output", "--output-layout": "output_layout"}
    held = {one.partition("=")[0]: float(one.partition("=")[2]) for one in given.get("--hold", "").split(",") if one}
    return idc.load_model(case.network, held=held, **{known[flag]: given[flag] for flag in given if flag in known})


def _scores(model: Network, inputs: NDArray[np.generic]) -> NDArray[np.float64]:
    """Return the scores of inputs, (n, outputs)."""
    found = idc.trace(model, inputs, [])
    return np.concatenate([np.asarray(batch.scores, np.float64) for batch in found])


def _compared(model: Network, case: Case, outputs: dict[str, NDArray[np.generic]]) -> dict[str, Any]:
    """Compare the scores with what the runtime returns: the largest difference, of the largest number there."""
    ours = _scores(model, case.inputs)
    best: dict[str, Any] = {}
    for name, value in outputs.items():
        if value.dtype.kind != "f" or len(value) != len(ours):
            continue
        theirs = value.astype(np.float64)
        theirs = _over_positions(theirs, case.options) if theirs.ndim > 2 and "--explain" in case.options else theirs
        theirs = theirs.reshape(len(theirs), -1)
        for end, function in _ENDS.items():
            made = function(ours)
            if made.shape == theirs.shape:
                error = float(np.abs(made - theirs).max() / max(float(np.abs(theirs).max()), 1e-30))
                if not best or error < best["error"]:
                    best = {"error": error, "output": name, "end": end}
    return best


def _relevance(model: Network, case: Case, rule: str = "epsilon") -> dict[str, Any]:
    """Compare the sum of relevance at the input with the score it started from, biases redistributed."""
    inputs = case.inputs[:_FEW]
    try:
        start = _scores(model, inputs).max(1)
        found = idc.relevance(model, inputs, ["input"], rule, bias="redistribute")["input"].astype(np.float64)
    except idc.IdcError as error:
        return {"relevance_refused": str(error).splitlines()[0]}
    errors = np.abs(found.reshape(len(found), -1).sum(1) - start)
    largest = max(float(np.abs(start).max()), 1e-30)
    return {"relevance": float(errors.max() / largest), "worst": int(errors.argmax())}


_LOST = re.compile(r"redistributed loses all its digits from layer '(.+?)'")
_OFFER = re.compile(r"\(rule='([\w-]+)', bias='(\w+)'\)")


def _lost(model: Network, case: Case, remarks: list[str]) -> dict[str, Any]:
    """Return from where relevance loses its digits, as the check says, and how well the other rule keeps it."""
    said = next(filter(_LOST.search, remarks), "")
    layer, offer = _LOST.search(said), _OFFER.search(said)
    if layer is None:
        return {}
    lost: dict[str, Any] = {"layer": layer[1]}
    if offer is not None:
        lost |= {"rule": offer[1], "bias": offer[2]}
        lost |= _relevance(model, case, offer[1]) if offer[2] == "redistribute" else {}
    return {"lost": lost}


if __name__ == "__main__":
    name, limit = sys.argv[1], int(sys.argv[2])
    source = name.partition("/")[0]
    chosen = next(one for one in subjects([source]) if f"{source}/{one.name}" == name)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    with tempfile.TemporaryDirectory() as made:
        row = (try_by_library if chosen.by_library else try_out)(chosen, Path(made))
    row["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps(row))
