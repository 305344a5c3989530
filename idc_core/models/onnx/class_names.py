"""What an ONNX file calls the classes of its scores: in its metadata, or in its classifier of scikit-learn."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping

from onnx import ModelProto

_KEYS = ("class_names", "names", "classes", "labels", "label_names", "id2label", "categories")
"""Keys of the metadata under which exporters write names."""

_LONGEST = 1 << 20
_MOST = 50_000


def names_in(model: ModelProto) -> tuple[str, ...]:
    """Return the names of the classes in the order of the scores; empty where the file does not say them."""
    held = {one.key.lower(): one.value for one in model.metadata_props if len(one.value) <= _LONGEST}
    told = (_names(held[key]) for key in _KEYS if key in held)
    return next(filter(None, told), ()) or _of_classifier(model)


def _names(text: str) -> tuple[str, ...]:
    """Return the names that a text lists: JSON, a list or dictionary as Python writes it, or names between commas."""
    value: object = None
    for read in (json.loads, ast.literal_eval):
        try:
            value = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        break
    if isinstance(value, Mapping):
        value = _in_order({str(key): name for key, name in value.items()})
    if value is None and re.search("[,\n]", text) and not set("{}[]") & set(text):
        value = [part.strip() for part in re.split("[,\n]", text) if part.strip()]
    if not isinstance(value, list | tuple) or not 0 < len(value) <= _MOST:
        return ()
    names = tuple(name for name in value if isinstance(name, str) and name.strip())
    return names if len(names) == len(value) and len(set(names)) == len(names) else ()


def _in_order(names: Mapping[str, object]) -> list[object] | None:
    """Return the names of a dictionary by number, or from names to numbers, in the order of the numbers."""
    numbers = {str(number) for number in range(len(names))}
    if set(names) == numbers:
        return [names[str(number)] for number in range(len(names))]
    if {str(number) for number in names.values()} == numbers:
        return [name for name, _ in sorted(names.items(), key=lambda pair: int(str(pair[1])))]
    return None


def _of_classifier(model: ModelProto) -> tuple[str, ...]:
    """Return the labels of a classifier of scikit-learn, whose scores have their order; not of one inside of another.

    One against the rest consists of a classifier per class, each with labels of its own, which nothing reads.
    """
    nodes = model.graph.node
    read = {name for node in nodes for name in node.input} | {one.name for one in model.graph.output}
    linear = [node for node in nodes if node.op_type == "LinearClassifier"]
    whole = [node for node in linear if len(linear) == 1 and node.output[0] in read]
    for node in [*(node for node in nodes if node.op_type == "ZipMap"), *whole]:
        for one in node.attribute:
            if one.name in ("classlabels_strings", "classlabels_ints", "classlabels_int64s"):
                labels = [text.decode("utf-8", "replace") for text in one.strings] or [
                    str(number) for number in one.ints
                ]
                if len(set(labels)) == len(labels) > 1:
                    return tuple(labels)
    return ()
