"""Layers of a detector: which lead to the scores of its boxes, and which to those of all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from idc_core.guarded import Budget
from idc_core.lrp.explained import Explaining
from idc_core.lrp.scores import outputs_of
from idc_core.lrp.session import named_layers
from idc_core.models.bounded import Bounded, TooLargeError


def layers_of_boxes(
    network: nn.Module, explaining: Explaining, inputs: Tensor, layers: Sequence[str]
) -> tuple[tuple[str, ...], str]:
    """Return the layers that lead to scores of boxes, and of those that all boxes share the last one.

    A detector's head has branches: those that give places and sizes have no part in the scores, and those of one size
    of boxes have none in the others. A layer that gives as many numbers as an output is that output. All layers and ""
    where gradients do not tell, or would take more memory than a network may at first sight.
    """
    held: dict[str, Tensor] = {}
    returned: list[object] = []

    def holding(name: str) -> Callable[[nn.Module, object, object], None]:
        def hook(module: nn.Module, given: object, output: object) -> None:
            if isinstance(output, Tensor) and output.requires_grad:
                held[name] = output

        return hook

    modules = named_layers(network)
    hooks = [modules[name].register_forward_hook(holding(name)) for name in layers]
    hooks.append(network.register_forward_hook(lambda module, given, output: returned.append(output), prepend=True))
    try:
        with torch.enable_grad(), Bounded(Budget("The network")):
            network(inputs[:1].detach().requires_grad_())
            scores = explaining.of_places(returned[0])
            reached = [_reached(part, held) for part in (scores, scores[..., 0], scores[..., -1])]
    except (RuntimeError, TooLargeError):  # such as where no gradients pass
        return tuple(layers), ""
    finally:
        for hook in hooks:
            hook.remove()
    some, first, last = reached
    leading = tuple(name for name in layers if name in some) or tuple(layers)
    outputs = {value.numel() for value in outputs_of({"0": returned[0]}).values()}
    shared = (name for name in reversed(leading) if name in first & last and held[name].numel() not in outputs)
    return leading, next(shared, "")


def _reached(scores: Tensor, held: dict[str, Tensor]) -> set[str]:
    """Return the names of the values that some scores depend on: what is cut out of an output has gradients of 0."""
    gradients = torch.autograd.grad(scores.sum(), list(held.values()), retain_graph=True, allow_unused=True)
    return {
        name for name, gradient in zip(held, gradients, strict=True) if gradient is not None and bool(gradient.any())
    }
