"""A person's own predictions: an npz file or a CSV table with a probability matrix, or activations with predictions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idc_core.confusion.evidence import MOST_CLASSES, Evidence
from idc_core.confusion.predictions_parts import SEVERAL_BYTES, check_size, evidence_of, scaled_over_layers
from idc_core.confusion.predictions_table import read_table
from idc_core.datasets.formats import DATA_FORMATS, ending_of, format_of
from idc_core.errors import DataError
from idc_core.guarded import ArrayFile, ArrayHeader, open_arrays

_TABLE = ("a table of numbers", (2,), "fiu")
_LABELS = ("whole numbers (n,), or zeros and ones (n, classes)", (1, 2), "biuf")
_IDS = ("one value for each input", (1,), "biufU")
_FORMS = {
    "probability": _TABLE,
    "activations": _TABLE,
    "predicted": _LABELS,
    "true": _LABELS,
    "layer_sizes": ("whole numbers in one row", (1,), "iu"),
    "class_names": ("a list with a text for each class", (1,), "iuU"),
    "ids": _IDS,
    "label_ids": _IDS,
}
"""What an npz file can hold, in words, dimensions and kinds of values; other arrays are left alone."""

_OF_INPUTS = ("activations", "predicted", "true", "ids", "label_ids")
_SHOWN = 500


def own_evidence(
    file: Path | bytes, name: str = "", *, scaled: bool = False, class_names: Sequence[str] = ()
) -> Evidence:
    """Read a person's own predictions from an npz file or a table; nothing in it is ever executed.

    `name` is the file's where `file` is its content; its ending says what it is, as of data. `scaled` activations
    are mean scaled outputs in 0..1 already; else each input's are scaled over its layer. `class_names` (default:
    numbers) are used where the file has none. Raises DataError if the file is damaged or too large, an array is missing
    or of another form, labels are out of range, or activations and labels are of different inputs.

    Notes
    -----
    An npz file holds `probability`, (neurons, classes) in 0..1, or `activations`, (n, neurons), with
    `predicted`; optional `true`, `class_names`, and for activations `layer_sizes`, the numbers of neurons of the layers
    that they are scaled over (one layer unless given). Labels are whole numbers (n,) or zeros and ones (n, classes).
    Where `ids` (of the activations' inputs) and `label_ids` (of the labels' inputs) are there, they must be the same. A
    table is read as data are: any sign between columns, and columns that number the rows are left out, which the
    evidence's `notes` say. With a column `predicted` (or y_pred, prediction) each row is an input, its columns but
    `true` (or y_true, label, target) are activations, and labels are names or numbers, several separated by "|".
    Without it each row is a neuron, and each column a class with its probability.

    From channel means only, the scale of an input's layer runs between its channels' means, not between all values.
    """
    path = file.name if isinstance(file, Path) else name
    where = path or "The file"
    format = format_of(file) if isinstance(file, Path) else DATA_FORMATS.get(ending_of(name))
    if format is not None and (read := format.read_table):
        return read_table(file, where, read, scaled, class_names)
    kind = "an npz file or a table whose name ends in .csv"
    with open_arrays(file, where, kind=kind) as arrays:
        return _of_arrays(arrays, where, scaled, class_names)


def _of_arrays(arrays: ArrayFile, where: str, scaled: bool, class_names: Sequence[str]) -> Evidence:
    """Read arrays whose headers fit each other."""
    headers = _headers(arrays, where)
    main = "probability" if "probability" in headers else "activations"
    neurons = headers[main].shape[main == "activations"]
    count = _class_count(headers, where)
    if count is not None:
        check_size(count, neurons, arrays.budget)
    if "ids" in headers and "label_ids" in headers and not np.array_equal(arrays.read("ids"), arrays.read("label_ids")):
        raise DataError(f"{where}: the activations (ids) are of other inputs than the labels (label_ids).")
    labels: dict[str, NDArray[np.generic]] = {
        name: _labels(arrays, name, headers[name]) for name in ("predicted", "true") if name in headers
    }
    if "class_names" in headers:
        class_names = [str(name) for name in arrays.read("class_names").tolist()]
    elif not class_names:
        count = _numbered(labels, where) if count is None else count
        check_size(count, neurons, arrays.budget)
        class_names = [str(i) for i in range(count)]
    sizes = _layer_sizes(arrays, headers, neurons, where)
    kind = headers[main].kind.newbyteorder("=")
    values = arrays.read(main, kind if kind in (np.float32, np.float64) else np.float64)
    if main == "activations":
        return evidence_of(where, class_names, labels, values=scaled_over_layers(values, sizes, scaled, where))
    if np.fmin.reduce(values, axis=None) < 0 or np.fmax.reduce(values, axis=None) > 1:
        raise DataError(f"{where}: a probability matrix holds shares in 0..1; found values outside.")
    return evidence_of(where, class_names, labels, probability=values)


def _headers(arrays: ArrayFile, where: str) -> dict[str, ArrayHeader]:
    """Return the headers of the arrays that are there, each of the form that it must have, all of the same inputs."""
    headers = {name: arrays.header(name) for name in _FORMS if name in arrays.names}
    if ("probability" in headers) == ("activations" in headers):
        listed = ", ".join(arrays.names)[:_SHOWN] or "nothing"
        raise DataError(f"{where}: expected an array probability, or activations with predicted; found {listed}.")
    if "activations" in headers and "predicted" not in headers:
        raise DataError(f"{where}: activations need an array predicted with the class or classes of each input.")
    for name, header in headers.items():
        form, dimensions, kinds = _FORMS[name]
        if len(header.shape) not in dimensions or header.kind.kind not in kinds or not header.items:
            raise DataError(f"{where}: expected {name} as {form}, found {header.kind} of shape {header.shape}.")
    inputs = {name: headers[name].shape[0] for name in _OF_INPUTS if name in headers}
    if len(set(inputs.values())) > 1:
        listed = ", ".join(f"{name} of {count:,}" for name, count in inputs.items())
        raise DataError(f"{where}: expected arrays of the same inputs, found {listed} inputs.")
    return headers


def _class_count(headers: dict[str, ArrayHeader], where: str) -> int | None:
    """Return the number of classes where a shape tells it; refuse shapes that differ in it."""
    tell = {name: headers[name].shape for name in ("probability", "predicted", "true") if name in headers}
    counts: dict[str, int] = {name: shape[1] for name, shape in tell.items() if len(shape) == 2}
    if "class_names" in headers:
        counts["class_names"] = headers["class_names"].shape[0]
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} of {count:,}" for name, count in counts.items())
        raise DataError(f"{where}: expected arrays of the same classes, found {listed} classes.")
    return next(iter(counts.values()), None)


def _labels(arrays: ArrayFile, name: str, header: ArrayHeader) -> NDArray[np.generic]:
    """Read labels; what their check holds beside them is counted."""
    beside = (header.kind.itemsize + SEVERAL_BYTES if len(header.shape) == 2 else 16) * header.items
    arrays.budget.take(beside, f"checking {name}")
    labels = arrays.read(name)
    arrays.budget.give(beside)
    return labels


def _numbered(labels: dict[str, NDArray[np.generic]], where: str) -> int:
    """Return the number of classes that labels, one class an input, are numbers of."""
    smallest = min((int(array.min()) for array in labels.values()), default=0)
    largest = max((int(array.max()) for array in labels.values()), default=0)
    if smallest < 0 or largest >= MOST_CLASSES:
        raise DataError(
            f"{where}: the labels reach from {smallest:,} to {largest:,}; expected classes numbered from 0, at most "
            f"{MOST_CLASSES:,}."
        )
    return largest + 1


def _layer_sizes(arrays: ArrayFile, headers: dict[str, ArrayHeader], neurons: int, where: str) -> list[int]:
    """Return the numbers of neurons of the layers; one layer unless the file says otherwise."""
    if "layer_sizes" not in headers:
        return [neurons]
    layers = headers["layer_sizes"].shape[0]
    # Python's own numbers, which never overflow.
    sizes = arrays.read("layer_sizes").tolist() if layers <= neurons else []
    if not sizes or min(sizes) < 1 or sum(sizes) != neurons:
        raise DataError(f"{where}: layer_sizes must be numbers of neurons, each 1 or more, that sum to {neurons:,}.")
    return [int(size) for size in sizes]
