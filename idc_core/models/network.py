"""The base class of the registry's networks."""

from __future__ import annotations

from torch import Tensor, nn

from idc_core.models.card import ModelCard

# Dropout only acts while training, and an embedding's outputs are inputs in another form: neither has neurons
# of its own that a coverage criterion could look at.
_WITHOUT_NEURONS = (nn.Dropout, nn.Embedding)


class Network(nn.Module):
    """Base class of the networks of the registry: carries its card; `forward` returns scores before any softmax.

    Submodules are registered in forward order and activations are functional, so the children are its layers by name.
    """

    card: ModelCard

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
