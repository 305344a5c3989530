"""Parts of a network's layers that attention brings: its heads, and the one token that the scores are computed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from idc_core.lrp.layer_parts import CLASS, HEADS, LAST, part_of_layer, split_layer
from idc_core.lrp.scores import scores_of
from idc_core.lrp.session import named_layers
from idc_core.tracing.parts import kept_tokens


def with_parts(
    network: nn.Module,
    inputs: Tensor,
    layers: Sequence[str],
    attentions: Sequence[str],
    outputs: Mapping[str, Sequence[torch.Size]],
) -> tuple[str, ...]:
    """Return layers with their parts behind them: of each block with one attention its heads, and the token read.

    Parameters
    ----------
    network : Module
    inputs : Tensor, (n, ...)
    layers : sequence of str
    attentions : sequence of str
        The innermost module around each attention that ran, once per run.
    outputs : mapping of str to shapes
        Of what each module gave, once per run, in the order in which they finished first.
    """

    def held(name: str) -> int:
        return sum(module == name or module.startswith(f"{name}.") for module in attentions)

    blocks = [name for name in outputs if held(name) == len(outputs[name])]
    around: dict[str, str] = {}
    for attention in dict.fromkeys(attentions):
        fitting = [name for name in blocks if attention == name or attention.startswith(f"{name}.")]
        if fitting:
            around[attention] = min(fitting, key=len)
    parts = [part_of_layer(name, HEADS) for name in around.values()]
    tokens = [name for name in outputs if name in around.values() and len(outputs[name][0]) == 3]
    read = _token_read(network, inputs, tokens[-1]) if tokens else ""
    parts += [part_of_layer(name, read) for name in tokens if read]
    order = {name: place for place, name in enumerate(outputs)}
    return tuple(sorted({*layers, *parts}, key=lambda name: (order.get(split_layer(name)[0], len(order)), name)))


def _token_read(network: nn.Module, inputs: Tensor, block: str) -> str:
    """Return the part that the scores are computed from, told by gradients at the last block; "" for all tokens."""
    held: list[Tensor] = []

    def ends_here(
        module: nn.Module, given: object, output: Tensor | tuple[Tensor, ...] | list[Tensor]
    ) -> Tensor | tuple[Tensor, ...]:
        first, *rest = output if isinstance(output, tuple | list) else (output,)
        held.append(first.detach().requires_grad_())
        return (held[-1], *rest) if isinstance(output, tuple | list) else held[-1]

    hook = named_layers(network)[block].register_forward_hook(ends_here)
    try:
        with torch.enable_grad():
            scores = scores_of(network(inputs))
            weighted = (scores * torch.arange(1, 1 + scores.shape[-1])).sum()  # sums of probabilities are all 1
            gradient = torch.autograd.grad(weighted, held[-1])[0]
    except RuntimeError:  # no gradients lead back through what follows, so nothing is told
        return ""
    finally:
        hook.remove()
    used = gradient.abs().amax(-1) > 0
    if used.shape[1] < 2 or not bool((used.sum(1) == 1).all()):
        return ""
    kept = kept_tokens(network, inputs)
    kept = torch.ones_like(used) if kept is None or kept.shape != used.shape else kept
    last = (kept * torch.arange(used.shape[1])).amax(1)
    place = used.int().argmax(1)
    if bool((place == 0).all()):
        return CLASS
    return LAST if bool((place == last).all()) else ""
