"""Which layers of a network of transformers are worth a look: it has hundreds of modules."""

from __future__ import annotations

from torch import nn


def offered_layers(network: nn.Module) -> tuple[str, ...]:
    """Return the names of blocks, attentions, units between the two dense layers of a block, and the layers around.

    A block is an item of a `ModuleList` that has parts of its own. Of a block are offered itself, its attentions, and
    its widest layer with weights. Of what lies outside of all blocks, every layer with weights is, but those within an
    `nn.MultiheadAttention`, which runs as a whole.
    """
    blocks = [
        f"{before}.{number}" if before else number
        for before, parts in network.named_modules()
        if isinstance(parts, nn.ModuleList)
        for number, part in parts.named_children()
        if next(part.children(), None) is not None
    ]
    layers = set(blocks)
    for block in blocks:
        within = [name for name in blocks if name.startswith(f"{block}.")]
        layers |= _of_block(network, block, within)
    whole = [name for name, module in network.named_modules() if isinstance(module, nn.MultiheadAttention)]
    for name, module in network.named_modules():
        in_block = any(name == block or name.startswith(f"{block}.") for block in blocks)
        part = any(name.startswith(f"{attention}.") for attention in whole)
        if not (in_block or part) and (_width(module) or name in whole):
            layers.add(name)
    return tuple(name for name, _ in network.named_modules() if name in layers)


def _of_block(network: nn.Module, block: str, within: list[str]) -> set[str]:
    """Return a block's attentions, and its widest layer with weights; parts that are blocks themselves left out."""
    layers: set[str] = set()
    widest, width = "", 0
    for part, module in network.get_submodule(block).named_modules(prefix=block):
        if part == block or any(part == outer or part.startswith(f"{outer}.") for outer in within):
            continue
        if "attention" in type(module).__name__.lower():
            if not any(part.startswith(f"{outer}.") for outer in layers):
                layers.add(part)
        elif not any(part.startswith(f"{outer}.") for outer in layers) and _width(module) > width:
            widest, width = part, _width(module)
    return layers | ({widest} if widest else set())


def _width(module: nn.Module) -> int:
    """Return how many neurons a layer with weights has; 0 for other modules."""
    if isinstance(module, nn.Linear):
        return int(module.out_features)
    if isinstance(module, nn.modules.conv._ConvNd):
        return int(module.out_channels)
    return int(getattr(module, "nf", 0))  # the dense layer of GPT-2
