"""A network as a search needs it: scores of pictures, and the gradient of an objective with respect to them."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from idc_core.attribution.captum_adapter import CaptumNetwork
from idc_core.errors import UnsupportedOperationError
from idc_core.lrp.session import check_layers, undisturbed
from idc_core.tracing.batching import place
from idc_core.tracing.trace import neuron_activation, neuron_axes

PASS_BYTES = 32 * 2**20
"""Activations of one pass; gradients double them."""

MOST_INPUTS = 128
"""Pictures of one pass, however small; more leave the caches."""

Objective = Callable[[Tensor, Tensor, slice], Tensor]
"""From scores (n, classes), activations (n, neurons) and which pictures these are: values (n,) to be raised."""


class Searched:
    """One network during a search; left as it is found, and locked only while it runs.

    Parameters
    ----------
    model : Module
    example : Tensor, (1, C, H, W)
    layers : sequence of str
        Whose activations objectives are given, layer after layer.
    batch_size : int, optional
        Default: chosen from the network's size.

    Raises
    ------
    ModelError, UnsupportedOperationError
        If a layer is missing or runs more than once, or the network gives no scores.
    """

    def __init__(
        self, model: nn.Module, example: Tensor, layers: Sequence[str] = (), batch_size: int | None = None
    ) -> None:
        check_layers(model, layers)
        self.model, self.layers = model, tuple(layers)
        self.axes = neuron_axes(model, self.layers)
        with undisturbed(model), torch.enable_grad():
            self.opened = CaptumNetwork(model, place(model, example))
            self._modules = {layer: self.opened.layer(layer) for layer in self.layers}
        self.batch_size = batch_size or max(1, min(MOST_INPUTS, PASS_BYTES // (4 * self.opened.elements)))

    def scores(self, pictures: Tensor) -> Tensor:
        """Return the scores before the softmax, float32 (n, classes), on the processor."""
        return self._run(pictures, None)[0]

    def activations(self, pictures: Tensor) -> Tensor:
        """Return one activation a neuron of the layers, float32 (n, neurons), on the processor."""
        return self._run(pictures, None)[2]

    def both(self, pictures: Tensor) -> tuple[Tensor, Tensor]:
        """Return `scores` and `activations` of one pass."""
        scores, _, activations = self._run(pictures, None)
        return scores, activations

    def climb(self, pictures: Tensor, objective: Objective) -> tuple[Tensor, Tensor]:
        """Return the scores, and the gradient of each picture's objective with respect to it, (n, C, H, W)."""
        return self._run(pictures, objective)[:2]

    def _run(self, pictures: Tensor, objective: Objective | None) -> tuple[Tensor, Tensor, Tensor]:
        scores, gradients, activations = [], [], []
        for start in range(0, len(pictures), self.batch_size):
            rows = slice(start, min(start + self.batch_size, len(pictures)))
            with undisturbed(self.model), torch.set_grad_enabled(objective is not None), ExitStack() as hooks:
                given = place(self.model, pictures[rows]).requires_grad_(objective is not None)
                values = {layer: self._listen(layer, hooks) for layer in self.layers}
                found = self.opened(given.clone())
                parts = [neuron_activation(values[layer][0], self.axes[layer]) for layer in self.layers]
                active = torch.cat(parts, 1) if parts else found.new_zeros(len(found), 0)
                if objective is not None:
                    gradients.append(_gradient(objective(found, active, rows).sum(), given))
            scores.append(found.detach().float().cpu())
            activations.append(active.detach().float().cpu())
        return torch.cat(scores), torch.cat(gradients) if gradients else torch.zeros(0), torch.cat(activations)

    def _listen(self, layer: str, hooks: ExitStack) -> list[Tensor]:
        """Return a list that will hold the layer's output after its activation function."""
        module = self._modules[layer]
        heard: list[Tensor] = []

        def hook(module: nn.Module, args: Any, output: Tensor) -> None:
            heard.append(output)

        if module is None:
            raise UnsupportedOperationError("A search aims at neurons of a layer, not of the input; name a layer.")
        hooks.enter_context(module.register_forward_hook(hook))
        return heard


def _gradient(value: Tensor, given: Tensor) -> Tensor:
    if not value.requires_grad:
        raise UnsupportedOperationError(
            "The network's scores do not depend on its input by operations that have gradients, so nothing can be "
            "searched with them. Choose another network, or perturb its inputs by noise."
        )
    return torch.autograd.grad(value, given)[0].detach().float().cpu().contiguous()


def neuron_layers(model: nn.Module) -> tuple[str, ...]:
    """Return the names of the layers whose neurons count where nobody named any: convolutions and dense layers."""
    kinds = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
    return tuple(name for name, module in model.named_modules() if name and isinstance(module, kinds))
