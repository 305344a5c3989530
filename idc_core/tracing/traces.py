"""What a network showed on all inputs, in memory; needs no torch."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Traces:
    """What the network showed on all inputs, one number per neuron."""

    scores: NDArray[np.float32]  # (n, classes), scores before the softmax
    activations: dict[str, NDArray[np.float32]]
    """(n, neurons), unit outputs of dense layers; means over positions or tokens of channels and features."""
    relevance: dict[str, NDArray[np.float32]]
    """(n, neurons), relevance, summed over positions or tokens; empty where none was asked for."""
    shapes: dict[str, tuple[int, ...]]  # shape of each layer's output for one input: (units,) or (channels, *positions)

    @property
    def predictions(self) -> NDArray[np.int64]:
        """The class with the highest score, int64 (n,)."""
        return np.asarray(self.scores.argmax(1), np.int64)

    def only(self, positions: NDArray[np.int64]) -> "Traces":
        """Return the traces of some of the inputs, copied."""
        activations, relevance = (
            {layer: values[positions] for layer, values in held.items()} for held in (self.activations, self.relevance)
        )
        return Traces(self.scores[positions], activations, relevance, self.shapes)

    @classmethod
    def joined(cls, *parts: "Traces") -> "Traces":
        """Return the traces of several sets of inputs, one after the other; layers that a part lacks are left out."""
        if len(parts) == 1:
            return parts[0]
        activations, relevance = (
            {
                layer: np.concatenate([values[layer] for values in held])
                for layer in held[0]
                if all(layer in values for values in held)
            }
            for held in ([part.activations for part in parts], [part.relevance for part in parts])
        )
        return cls(np.concatenate([part.scores for part in parts]), activations, relevance, parts[0].shapes)
