"""Networks that `torch.export` saved (.pt2), as modules under their old names whose operations relevance can follow.

Reading such a file unpickles parts of it, which can run code: only the owner's command line does so (`--trust`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from idc_core.errors import ModelError
from idc_core.models.network import Expected

_ADVICE = 'torch.export.export(net, (inputs,), dynamic_shapes=({0: torch.export.Dim("n")},))'


def load_exported(path: Path) -> nn.Module:
    """Read a program that `torch.export.save` wrote; it can run code of whoever made it.

    Raises
    ------
    ModelError
        If it cannot be read, has several inputs, or was exported for one size of batch.
    """
    try:
        program = torch.export.load(path)
        network = torch.export.unflatten(program)
    except Exception as error:  # a damaged file fails in many ways, deep inside torch
        reason = (str(error).strip().splitlines() or [""])[0][:200]
        raise ModelError(f"{path} is no program of torch.export ({type(error).__name__}: {reason}).") from error
    network.expected = _expected(program, path)  # type: ignore[assignment]
    for module in network.modules():
        for value in vars(module).values():
            graph = getattr(value, "graph", value)  # a module keeps its graph also as a graph module
            if isinstance(graph, torch.fx.Graph):
                _make_plain(graph)
    return network


def _make_plain(graph: torch.fx.Graph) -> None:
    """Let a graph call what people call, and forget the sizes of the export, which cannot be copied."""
    for node in graph.nodes:
        node.meta.clear()
        if node.op == "call_function":
            node.target = _plain(node.target)


def _expected(program: torch.export.ExportedProgram, path: Path) -> Expected:
    """Return what the program says of its input."""
    names = program.graph_signature.user_inputs
    values = [node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder" and node.name in names]
    if len(values) != 1 or not isinstance(values[0], Tensor) or not values[0].dim():
        raise ModelError(f"{path} takes {len(values)} inputs; expected a network with one.")
    first, *others = values[0].shape
    if isinstance(first, int):
        raise ModelError(f"{path} was exported for batches of {first} inputs; export it for any number: {_ADVICE}.")
    return Expected(tuple(size if isinstance(size, int) else None for size in others), values[0].dtype)


def _plain(target: object) -> Callable[..., object]:
    """Return the function of PyTorch that people call for an operation of an exported graph."""
    schema = getattr(target, "_schema", None)
    name = schema.name.removeprefix("aten::") if schema is not None else ""
    if name in _OTHERWISE:
        return _OTHERWISE[name]
    attributes = (getattr(home, name, None) for home in (torch, F, Tensor) if name)
    return cast("Callable[..., object]", next((attribute for attribute in attributes if callable(attribute)), target))


def _slice(x: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    return x[(slice(None),) * (dim % x.dim()) + (slice(start, end, step),)]


_OTHERWISE: dict[str, Callable[..., object]] = {
    "batch_norm": lambda x, weight, bias, mean, var, training, momentum, eps, *_: F.batch_norm(
        x, mean, var, weight, bias, training, momentum, eps
    ),
    "layer_norm": lambda x, shape, weight=None, bias=None, eps=1e-5, *_: F.layer_norm(x, shape, weight, bias, eps),
    "embedding": lambda weight, indices, *_: F.embedding(indices, weight),
    "slice": _slice,
}
"""Operations whose arguments come in another order than those of the function."""
