"""Networks with several inputs, made to take the main one alone: the others are computed from it in front."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from idc_core.datasets.naming import SAME, WAYS, Naming, Other

_KNOWN = {"attention_mask": "mask", "token_type_ids": "zeros"}
"""Inputs of networks of texts that go by these names everywhere, and what they are."""


def put_naming(network: nn.Module, naming: Naming) -> None:
    """Let a network take its main input alone, as a hook before its forward; what is given by name stays.

    What a mask hides is padding, also where activations are averaged over tokens.
    """
    for other in naming.others:
        if other.way == "mask":
            network.padding_idx = other.padding  # type: ignore[assignment]
    network.register_forward_pre_hook(_Naming(naming), with_kwargs=True)


def naming_of(dtypes: Mapping[str, torch.dtype]) -> Naming | None:
    """Return what the inputs of a network of texts are, told by their names; None where several are unknown."""
    main = [name for name in dtypes if name not in _KNOWN]
    if len(main) != 1:
        return None
    kinds = {name: str(dtype).removeprefix("torch.") for name, dtype in dtypes.items() if name in _KNOWN}
    return Naming(main[0], tuple(Other(name, _KNOWN[name], kind) for name, kind in kinds.items()))


@dataclass(frozen=True)
class _Naming:
    """The hook before a network; an object, so that copies of the network have it as well."""

    naming: Naming

    def __call__(
        self, module: nn.Module, given: tuple[Tensor, ...], named: dict[str, Tensor]
    ) -> tuple[tuple[()], dict[str, Tensor]] | None:
        """Call the network by keyword, with all its inputs."""
        known = dict(named) if not given else {self.naming.main: given[0], **named}
        if len(given) > 1 or self.naming.main not in known:
            return None
        for other in self.naming.others:
            if other.name not in known:
                known[other.name] = _computed(other, known[self.naming.main])
        return (), known


def _computed(other: Other, main: Tensor) -> Tensor:
    """Return an input for a batch of the main one."""
    dtype = getattr(torch, other.dtype)
    if other.way != SAME:
        values: Tensor = WAYS[other.way](main.detach(), other.padding)
        return values.to(dtype)
    row = torch.tensor(other.values, dtype=dtype, device=main.device).reshape(other.shape)
    return row.expand(len(main), *other.shape)
