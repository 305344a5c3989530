"""How small networks for tests are written down, their random weights, and inputs of every form."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

CLASSES = 3


class Written(nn.Module):
    """A network whose forward pass is written down beside its modules: ``forward(net, x)``."""

    def __init__(self, forward: Callable[[Any, Tensor], Any], **modules: nn.Module) -> None:
        super().__init__()
        self.steps = forward
        for name, module in modules.items():
            self.add_module(name, module)

    def forward(self, x: Tensor) -> Any:
        return self.steps(self, x)


def settle(network: nn.Module, seed: int = 0) -> nn.Module:
    """Give a network random weights, biases and statistics in double precision, in evaluation mode."""
    generator = torch.Generator().manual_seed(seed)
    network = network.double().eval()
    for name, tensor in [*network.named_parameters(), *network.named_buffers()]:
        if tensor.is_floating_point():
            values = torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype) * 0.5
            tensor.data.copy_(values.abs() + 0.5 if name.endswith("running_var") else values)
    return network


def numbers(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def total(values: Any) -> Tensor:
    """Return the sum of each input's values."""
    return torch.as_tensor(values).flatten(1).sum(1)


ROWS = numbers(4, 6)
SERIES = numbers(4, 2, 9)
IMAGES = numbers(4, 2, 7, 7)
VOLUMES = numbers(3, 2, 4, 5, 4)
SEQUENCES = numbers(4, 5, 6)
TOKENS = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3], [5, 8, 9, 7, 9], [3, 2, 3, 8, 4]])
