"""Every layer with the shape of its output, and whether relevance passes behind it, in as few passes as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.analysis.checking.findings import LayerCheck
from idc_core.base.progress import Progress, report
from idc_core.errors import CancelledError, IdcError
from idc_core.lrp.randomness import randomness_allowed
from idc_core.lrp.rules import RelevanceSettings
from idc_core.tracing.trace import collect
from idc_core.tracing.traces import Traces

_Attempt = Callable[[Sequence[str]], Traces]


def check_layers(
    model: nn.Module, one: NDArray[np.float32] | NDArray[np.int64], layers: Sequence[str], on_progress: Progress | None
) -> tuple[LayerCheck, ...]:
    """Check layers on one input (1, ...)."""

    def shown(some: Sequence[str]) -> Traces:
        with randomness_allowed():  # a mistake of its own kind
            return collect(model, one, some)

    def explained(some: Sequence[str]) -> Traces:
        return collect(model, one, some, RelevanceSettings())

    report(on_progress, 0, 2, "shapes of the layers")
    shapes = _tried(layers, shown)
    running = [name for name in layers if isinstance(shapes[name], Traces)]
    report(on_progress, 1, 2, "relevance behind the layers")
    relevance = _tried(running, explained)
    for name in running:
        result = relevance[name]
        if isinstance(result, Traces) and not result.relevance[name].any():
            relevance[name] = _tried([name], explained)[name]  # alone it tells whether a way leads there at all
    return tuple(
        LayerCheck(name, result.shapes[name], stopped if isinstance(stopped := relevance[name], str) else "")
        if isinstance(result := shapes[name], Traces)
        else LayerCheck(name, (), result)
        for name in layers
    )


def _tried(layers: Sequence[str], attempt: _Attempt) -> dict[str, Traces | str]:
    """Try layers together, and in halves where that fails; return what each showed, or why it could not."""
    if not layers:
        return {}
    try:
        return dict.fromkeys(layers, attempt(layers))
    except CancelledError:
        raise
    except IdcError as error:
        if len(layers) == 1:
            return {layers[0]: str(error)}
        half = len(layers) // 2
        return {**_tried(layers[:half], attempt), **_tried(layers[half:], attempt)}
