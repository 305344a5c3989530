"""What of a network's output its scores are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from idc_core.errors import ModelError

if TYPE_CHECKING:
    from torch import Tensor

SCORES = ("logits", "scores", "output", "out", "predictions", "prediction")
"""Names under which networks give their scores, where they give several things."""

_CHOSEN = (
    "The network returns a dictionary of chosen boxes per input, and no scores of the other boxes. Put it into a "
    "module whose forward returns the scores of all boxes, (n, boxes, classes), before any is chosen, and give this "
    "one with explain='best-box:boxes,classes'. Of torchvision's RetinaNet and SSD they are "
    'net.head(list(net.backbone(x).values()))["cls_logits"].'
)

_DEEPEST = 4
"""Dictionaries, records and tuples inside each other that are looked into."""


def scores_of(output: object, name: str = "") -> Any:
    """Return the scores of what a network returned, however deep they lie in dictionaries, records and tuples.

    `name` is the output that was asked for, as in `outputs_of`. Without, they have one of the names in `SCORES`; where
    nothing has, they are the first tensor. What holds no tensor is returned as it is.

    Raises ModelError if there is no such output.
    """
    if name:
        outputs = outputs_of(output)
        if name not in outputs:
            raise ModelError(f"The network has no output {name!r:.60}; its outputs are {', '.join(outputs) or 'none'}.")
        return outputs[name]
    if isinstance(output, list | tuple) and output and all(isinstance(o, Mapping) and "boxes" in o for o in output):
        raise ModelError(_CHOSEN)
    scores = _first_tensor(output)
    return output if scores is None else scores


def outputs_of(output: object) -> dict[str, Tensor]:
    """Return each tensor of what a network returned by its name or number, with dots between those of nested ones."""
    found: dict[str, Tensor] = {}
    _collect(output, "", found, _DEEPEST)
    return found


def _collect(output: object, name: str, found: dict[str, Tensor], depth: int) -> None:
    from torch import Tensor

    if isinstance(output, Tensor):
        if name and not any(output is other for other in found.values()):
            found[name] = output
        return
    for part, value in _parts(output).items() if depth else ():
        _collect(value, f"{name}.{part}" if name else str(part), found, depth - 1)


def _first_tensor(output: object, depth: int = _DEEPEST) -> object:
    from torch import Tensor

    if isinstance(output, Tensor) or not depth:
        return output if isinstance(output, Tensor) else None
    parts = _parts(output)
    named = [parts[name] for name in SCORES if name in parts]
    tensors = (_first_tensor(part, depth - 1) for part in (*named, *parts.values()))
    return next((tensor for tensor in tensors if tensor is not None), None)


def _parts(output: object) -> dict[object, object]:
    """Return what a dictionary, a record or a tuple holds, by name or number."""
    if isinstance(output, Mapping):
        return dict(output)
    parts = {name: getattr(output, name) for name in SCORES if hasattr(output, name)}
    if isinstance(output, tuple | list):
        return parts | dict(enumerate(output))
    known = fields(output) if is_dataclass(output) else ()
    return parts | {field.name: getattr(output, field.name) for field in known} | getattr(output, "__dict__", {})
