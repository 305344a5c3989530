"""Cases of ONNX files: inputs by the shapes that a file says, run by onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from sklearn.datasets import load_sample_images

from benchmarks.wild.subjects import Case, Runtime

COUNT = 45
"""Inputs of one network."""

_WHOLE = {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(uint8)": np.uint8, "tensor(int8)": np.int8}


def runtime(path: Path, others: Mapping[str, NDArray[np.generic]] | None = None) -> Runtime:
    """Return what runs a file one input after the other, since a batch may be written into it."""
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), quiet, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_outputs()]
    main = next(one for one in session.get_inputs() if one.name not in (others or {}))

    def run(inputs: NDArray[np.generic]) -> dict[str, NDArray[np.generic]]:
        kind = _WHOLE.get(main.type, np.float64 if "double" in main.type else np.float32)
        rows = [session.run(names, {main.name: x[None].astype(kind), **(others or {})}) for x in inputs]
        return {name: _joined([_array(row[place]) for row in rows]) for place, name in enumerate(names)}

    return run


def _array(output: NDArray[np.generic] | list[dict[object, float]]) -> NDArray[np.generic]:
    """Return an output as an array; a classifier of scikit-learn gives a dictionary of probabilities per input."""
    if isinstance(output, list):
        return np.array([list(row.values()) for row in output], np.float32)
    return np.asarray(output)


def _joined(rows: list[NDArray[np.generic]]) -> NDArray[np.generic]:
    """Join the results of single inputs; those without a batch keep theirs."""
    alike = all(row.shape == rows[0].shape for row in rows)
    axis = next((axis for axis, size in enumerate(rows[0].shape) if size == 1), None)
    return np.concatenate(rows, axis).swapaxes(0, axis) if alike and axis is not None else rows[0]


def case(
    path: Path,
    sizes: Mapping[int, int] | None = None,
    kind: str = "",
    fixed: Mapping[str, float] | None = None,
    options: tuple[str, ...] = (),
    regression: bool = False,
) -> Case:
    """Return the case of a file with one input beside those that are fixed, all of whose numbers are the same.

    `sizes` are the lengths of axes that are open, by their number; `kind` is "pictures" for crops of two
    photographs in 0..1, "bytes" for the same in 0..255, "tokens" for whole numbers below 100, "letters" for such below
    50, "" for random numbers.
    """
    given = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).get_inputs()
    held = fixed or {}
    others = {one.name: _full(one, held[one.name]) for one in given if one.name in held}
    main = next(one for one in given if one.name not in held)
    lengths = sizes or {}
    shape = [lengths.get(axis, size if isinstance(size, int) else 1) for axis, size in enumerate(main.shape)][1:]
    words = ("--hold", ",".join(f"{name}={value:g}" for name, value in held.items())) if held else ()
    made = inputs(tuple(shape), kind or _likely(main.type, shape))
    return Case(str(path), made, runtime(path, others), (*words, *options), regression=regression)


def _full(one: onnxruntime.NodeArg, value: float) -> NDArray[np.generic]:
    """Return an input of one number alone; its open axes are those of the batch, or as long as the main input."""
    shape = [size if isinstance(size, int) else 1 for size in one.shape]
    kind = np.bool_ if "bool" in one.type else _WHOLE.get(one.type, np.float32)
    return np.full(shape, value, kind)


def _likely(kind: str, shape: list[int]) -> str:
    if kind in _WHOLE:
        return "tokens" if len(shape) == 1 else "bytes"
    return "pictures" if len(shape) == 3 and 3 in (shape[0], shape[2]) else ""


def inputs(shape: tuple[int, ...], kind: str, count: int = COUNT) -> NDArray[np.generic]:
    """Return inputs of a shape, the same at every run."""
    random = np.random.default_rng(0)
    if kind in ("tokens", "letters"):
        return random.integers(1, 100 if kind == "tokens" else 50, (count, *shape))
    if kind in ("pictures", "bytes"):
        last = len(shape) == 3 and shape[2] in (1, 3)
        rows, columns = shape[:2] if last else shape[-2:]
        crops = np.stack([_crop(random, rows, columns) for _ in range(count)])
        crops = crops.mean(3, keepdims=True) if 1 in (shape[0], shape[-1]) else crops
        return (crops if last else crops.transpose(0, 3, 1, 2)).astype(np.float32) * (255 if kind == "bytes" else 1)
    return random.normal(size=(count, *shape)).astype(np.float32)


def _crop(random: np.random.Generator, rows: int, columns: int) -> NDArray[np.float64]:
    """Return a part of a photograph, (rows, columns, 3) in 0..1, taken every few pixels."""
    photo = load_sample_images().images[int(random.integers(2))]
    step = max(
        1, int(random.integers(1, 4)) * min(photo.shape[0] // max(rows, 1), photo.shape[1] // max(columns, 1)) // 3
    )
    top, left = (int(random.integers(0, 200)) for _ in range(2))
    down, right = (
        (start + step * np.arange(count)) % size
        for start, count, size in ((top, rows, photo.shape[0]), (left, columns, photo.shape[1]))
    )
    return np.asarray(photo[np.ix_(down, right)] / 255)
