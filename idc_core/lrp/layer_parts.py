"""Parts of a layer of tokens that neurons are looked for in, written behind its name: ``block3@class``."""

from __future__ import annotations

from dataclasses import dataclass

SIGN = "@"
"""Stands between the name of a module and the part of what it gives."""

CLASS, LAST, HEADS = "class", "last", "heads"


@dataclass(frozen=True)
class _LayerPart:
    """A part: its name behind the sign, and in one sentence what a neuron of it is."""

    name: str
    neuron: str


PARTS = {
    part.name: part
    for part in (
        _LayerPart(CLASS, "A neuron is one feature of the class token, which is the first token."),
        _LayerPart(LAST, "A neuron is one feature of the last token that is no padding."),
        _LayerPart(
            HEADS,
            "A neuron is one attention head. Its activation is the length of what the head gives a token, averaged "
            "over tokens; its relevance is summed over the head's features and tokens.",
        ),
    )
}
"""All parts by name."""


def split_layer(layer: str) -> tuple[str, str]:
    """Return the name of the module, and that of the part of it; the part is empty where the whole layer is meant."""
    module, sign, part = layer.rpartition(SIGN)
    return (module, part) if sign and part in PARTS else (layer, "")


def part_of_layer(module: str, part: str) -> str:
    """Return the name of a part of a layer."""
    return f"{module}{SIGN}{part}"
