"""What is put around a network without changing the names of its layers: hooks that relevance passes through."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.overrides import handle_torch_function, has_torch_function_unary

from idc_core.errors import ModelError
from idc_core.lrp.endings import pick_outputs
from idc_core.models.scaling import Scaling


def put_before(network: nn.Module, scaling: Scaling) -> None:
    """Scale the inputs of a network, as a hook before its forward."""
    network.register_forward_pre_hook(Before(scaling))


def put_two_scores(network: nn.Module, probability: bool) -> None:
    """Make two scores of the one that a classifier of two classes gives, as a hook behind its forward.

    The scores are -x/2 and x/2, so that the second class is predicted where x is above 0, and their softmax is the
    sigmoid of x. Of a `probability` x is the logit.
    """
    network.register_forward_hook(_TwoScores(probability))


def put_order(network: nn.Module, outputs: tuple[int, ...]) -> None:
    """Let a network give the scores of some of its outputs, in this order, as a hook behind its forward."""
    network.register_forward_hook(_Ordered(outputs))


@contextmanager
def all_outputs(network: nn.Module) -> Iterator[tuple[int, ...] | None]:
    """Let a network give the scores of all outputs in a block, which is given the outputs that it gives otherwise.

    None where it gives all of them anyway.
    """
    kept = dict(network._forward_hooks)
    own = [hook for hook in kept.values() if isinstance(hook, _Ordered)]
    if not own:
        yield None
        return
    try:
        for key, hook in kept.items():
            if isinstance(hook, _Ordered):
                del network._forward_hooks[key]
        yield own[0].outputs
    finally:
        network._forward_hooks.clear()
        network._forward_hooks.update(kept)


def scale_channels(input: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Return ``input * scale + shift``; one operation for relevance propagation, which passes it unchanged."""
    if has_torch_function_unary(input):
        result: Tensor = handle_torch_function(scale_channels, (input,), input, scale, shift)
        return result
    return torch.addcmul(shift, input, scale)


@dataclass(frozen=True)
class Before:
    """The hook before a network; an object, so that copies of the network have it as well."""

    scaling: Scaling

    def __call__(self, module: nn.Module, given: tuple[Tensor, *tuple[object, ...]]) -> tuple[object, ...]:
        """Scale the first input."""
        return (self._scaled(given[0]), *given[1:])

    def _scaled(self, x: Tensor) -> Tensor:
        own = self.scaling
        if not x.is_floating_point():
            raise ModelError("Scaling is for pictures and numbers; these inputs are token ids. Leave it out.")
        channels = max(len(own.mean), len(own.deviation))
        if x.dim() < 2 or channels not in (1, x.shape[1]):
            raise ModelError(
                f"Scaling has {channels} channels, but inputs have the shape {tuple(x.shape[1:])}; give one mean and "
                "one deviation per channel."
            )
        if own.order == "BGR":
            x = x.flip(1)
        shape = (-1, *[1] * (x.dim() - 2))
        mean, deviation = (torch.tensor(values).reshape(shape).to(x) for values in (own.mean, own.deviation))
        if own.factor != 1 or any(own.mean) or set(own.deviation) != {1.0}:
            x = scale_channels(x, own.factor / deviation, -mean / deviation)
        if own.layout == "last":
            return x.movedim(1, -1).contiguous()  # as a network is given them that takes them so
        if own.layout == "rows":
            if x.dim() != 4 or x.shape[1] != 1:
                raise ModelError(
                    f"The layout 'rows' is for grey pictures (n, 1, rows, columns), but inputs have the shape "
                    f"{tuple(x.shape[1:])}; choose another layout."
                )
            return x.squeeze(1)
        return x.flatten(1) if own.layout == "flat" else x


@dataclass(frozen=True)
class _TwoScores:
    """The hook behind a network with one score."""

    probability: bool

    def __call__(self, module: nn.Module, given: tuple[object, ...], output: Tensor) -> Tensor:
        """Return scores (n, 2)."""
        x = output.reshape(-1, 1)
        if self.probability:
            x = torch.logit(x, 1e-7)
        return torch.cat([x * -0.5, x * 0.5], 1)


@dataclass(frozen=True)
class _Ordered:
    """The hook behind a network whose outputs are not the classes of its data as they are."""

    outputs: tuple[int, ...]

    def __call__(self, module: nn.Module, given: tuple[object, ...], output: Tensor) -> Tensor:
        """Return the scores of these outputs."""
        return pick_outputs(output, torch.tensor(self.outputs))


def check_finite(network: nn.Module, source: str) -> None:
    """Refuse weights that are no numbers; a mask of a network's own may hold infinity."""
    for name, value in network.state_dict(keep_vars=True).items():
        if not value.is_floating_point():
            continue
        finite = torch.isfinite(value) if isinstance(value, nn.Parameter) else ~torch.isnan(value)
        if not bool(finite.all()):
            raise ModelError(
                f"{source}: weight {name!r:.100} holds values that are not finite; load the weights of a training "
                "that did not diverge."
            )
