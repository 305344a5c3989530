"""Passes that benchmarks compare: PyTorch's own forward pass, and with its gradient; the engine's."""

from collections import deque

import torch
from torch import Tensor, nn

from idc_core.base.devices import device_of, exact
from idc_core.lrp.rules import RelevanceSettings
from idc_core.tracing.trace import trace
from idc_core.tracing.transfers import to_device


def forward(model: nn.Module, inputs: Tensor, size: int) -> None:
    """Run inputs in batches of a size; on a GPU in whole float32, as the engine does."""
    device = device_of(model)
    with exact(model), torch.no_grad():
        for batch in inputs.split(size):
            model(to_device(batch, device))


def gradient(model: nn.Module, inputs: Tensor, size: int) -> None:
    """Let autograd compute the gradient of the predicted score: that of the first layer's output, where ids come in."""
    first = next(module for module in model.modules() if isinstance(module, nn.Conv2d | nn.Linear | nn.LayerNorm))
    start = first.register_forward_hook(lambda module, args, output: output.detach().requires_grad_())
    parameters = [parameter.requires_grad_(False) for parameter in model.parameters()]
    device = device_of(model)
    with exact(model):
        for batch in inputs.split(size):
            found = model(to_device(batch, device))
            getattr(found, "logits", found).amax(1).sum().backward()
    start.remove()
    for parameter in parameters:
        parameter.requires_grad_(True)


def traced(model: nn.Module, inputs: Tensor, layers: list[str], settings: RelevanceSettings | None) -> None:
    """Trace layers, with relevance where there are settings, and drop what comes, each batch before the next one."""
    deque(trace(model, inputs, layers, settings), maxlen=0)
