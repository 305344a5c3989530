"""The base class of the registry's networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from idc_core.models.card import ModelCard

if TYPE_CHECKING:
    from idc_core.datasets.naming import Naming

# Dropout only acts while training, and an embedding's outputs are inputs in another form: neither has neurons
# of its own that a coverage criterion could look at.
_WITHOUT_NEURONS = (nn.Dropout, nn.Embedding)


@dataclass(frozen=True)
class Expected:
    """What the file of a network says of one input: its shape, None for a length that is open, and its type.

    `naming` says what it takes beside it, where it has several inputs.
    """

    shape: tuple[int | None, ...]
    dtype: torch.dtype
    naming: Naming | None = None

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether an input of this shape can be taken."""
        return len(shape) == len(self.shape) and all(
            own is None or own == size for own, size in zip(self.shape, shape, strict=True)
        )

    def example(self) -> Tensor | None:
        """Return two inputs, the same ones each time; None where a length is open."""
        if None in self.shape:
            return None
        random = torch.Generator().manual_seed(0)
        shape = [2, *(size or 1 for size in self.shape)]
        if self.dtype.is_floating_point:
            return torch.rand(shape, generator=random)
        return torch.randint(0, 2, shape, generator=random).to(self.dtype)


class Network(nn.Module):
    """Base class of the networks of the registry: carries its card; `forward` returns scores before any softmax.

    `remarks` are sentences on what was changed to make it so, of a network that came from outside. `padding_idx` is
    the token id whose positions are left out where activations are averaged over tokens; None averages over all.
    `channels_last` says that pictures may lie with the channels last in memory, where convolutions are faster: for a
    network without views that it writes into, and each class for itself, since one derived from it may have them.

    Submodules are registered in forward order and activations are functional, so the children are its layers by name.
    """

    card: ModelCard
    remarks: tuple[str, ...] = ()
    padding_idx: int | None = None
    channels_last: bool = False

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers that have neurons, in forward order."""
        return tuple(name for name, child in self.named_children() if not isinstance(child, _WITHOUT_NEURONS))

    @property
    def parameter_count(self) -> int:
        """Number of trained values."""
        return sum(parameter.numel() for parameter in self.parameters())

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the scores of a batch of inputs."""
        raise NotImplementedError
