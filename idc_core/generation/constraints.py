"""How a picture may be changed: each constraint says which pictures a search can reach from its seed.

A constraint turns numbers, the *state* of a search, into pictures. The search climbs in the state, and looks at the
rendered pictures only, each of them one of 8 bits, so that a disagreement survives being saved. A new constraint is a
frozen dataclass in a file of its own, under the decorator `constraint`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from types import MappingProxyType
from typing import ClassVar, TypeVar

import numpy as np
import torch
from torch import Tensor

from idc_core.base.parameters import Parameter
from idc_core.base.registry import Registry
from idc_core.errors import DataError
from idc_core.lrp.affine import pull_back

LEVELS = 255
"""Steps between black and white in a picture of 8 bits."""


@dataclass(frozen=True)
class ConstraintCard:
    """What menus and the command line say about a constraint; `parameters` holds the numbers with a range."""

    name: str
    label: str
    help: str
    citation: str
    defaults: Mapping[str, object]
    parameters: tuple[Parameter, ...] = ()


class Constraint(ABC):
    """A way to change pictures. Subclasses are frozen dataclasses of their parameters."""

    card: ClassVar[ConstraintCard]
    steers_once: ClassVar[bool] = False
    """Whether only the gradient at the seed is used, so that later steps need none."""

    def take(self, seeds: object) -> Tensor:
        """Return what a search starts from, float32 (n, ...); DataError where it is not what this changes."""
        return as_seeds(seeds)

    @abstractmethod
    def start(self, seeds: Tensor) -> Tensor:
        """Return the state, (n, ...), at which the pictures are the seeds."""

    @abstractmethod
    def render(self, seeds: Tensor, state: Tensor) -> Tensor:
        """Return pictures (n, C, H, W) that autograd can follow back to the state."""

    def picture(self, seeds: Tensor, state: Tensor) -> Tensor:
        """Return the valid pictures of 8 bits that the state stands for."""
        with torch.no_grad():
            return _eight_bits(self.render(seeds, state))

    def prepare(self, seeds: Tensor, gradient: Tensor) -> Tensor:
        """Return what stays fixed for each seed through the search, (n, ...), from the seeds' own gradient."""
        return torch.zeros(len(seeds), 0)

    def advance(self, seeds: Tensor, state: Tensor, fixed: Tensor, gradient: Tensor, step: float) -> Tensor:
        """Return the state one step up a gradient (n, C, H, W), inside the constraint."""
        with torch.enable_grad():
            moving = state.detach().requires_grad_()
            (up,) = pull_back(self.render(seeds, moving), (moving,), gradient)
        return self.inside(seeds, state + step / LEVELS * normalised(up))

    def inside(self, seeds: Tensor, state: Tensor) -> Tensor:
        """Return the nearest state that the constraint allows."""
        return state.clamp(-1, 1)


CONSTRAINTS: Registry[type[Constraint]] = Registry("constraint")
"""Constraint classes by name."""

_C = TypeVar("_C", bound=type[Constraint])


def constraint(
    name: str, *, label: str, help: str, citation: str = "", parameters: tuple[Parameter, ...] = ()
) -> Callable[[_C], _C]:
    """Register a constraint; the defaults of its card are those of the dataclass."""

    def enter(cls: _C) -> _C:
        defaults = {f.name: f.default for f in fields(cls) if f.default is not MISSING}  # type: ignore[arg-type]
        cls.card = ConstraintCard(name, label, help, citation, MappingProxyType(defaults), parameters)
        CONSTRAINTS[name] = cls
        return cls

    return enter


def find_constraint(wanted: str | Constraint) -> Constraint:
    """Return a constraint by its name, with default parameters, or as it is."""
    return wanted if isinstance(wanted, Constraint) else CONSTRAINTS[wanted]()


def normalised(gradient: Tensor) -> Tensor:
    """Return each picture's gradient divided by its root mean square over the values that are not zero.

    DeepXplore divides by that over the whole picture before the constraint is applied, which makes the same step small
    in a small rectangle and huge for a brightness. Here what the constraint leaves free is normalised.
    """
    flat = gradient.flatten(1)
    free = (flat != 0).sum(1).clamp(min=1)
    size = (flat.square().sum(1) / free).sqrt()
    size = torch.where(size > 0, size, torch.ones_like(size))
    return gradient / size.view(-1, *[1] * (gradient.dim() - 1))


def _eight_bits(pictures: Tensor) -> Tensor:
    """Return the nearest pictures that 8 bits can hold, values k / 255 with whole k in 0..255."""
    return torch.round(pictures.clamp(0, 1) * LEVELS) / LEVELS


def towards(seeds: Tensor, pictures: Tensor) -> Tensor:
    """Return the pictures (n, C, H, W) in 8 bits, rounded towards their seeds of 8 bits: none lies farther away."""
    change = torch.trunc((pictures - seeds) * LEVELS)
    return torch.round((seeds * LEVELS + change).clamp(0, LEVELS)) / LEVELS


def as_seeds(seeds: object) -> Tensor:
    """Return a tensor, array or Dataset of pictures in 0..1, at least one, as 8 bits, float32 (n, C, H, W)."""
    values = getattr(seeds, "inputs", seeds)
    array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    if array.ndim != 4 or array.dtype.kind != "f" or not len(array):
        raise DataError(
            "A search starts from pictures: expected at least one, numbers in 0..1 of shape (n, channels, height, "
            f"width), not {array.dtype} of shape {array.shape}."
        )
    if not (array.min() >= 0 and array.max() <= 1):
        raise DataError(
            f"A search starts from pictures with values in 0..1, and these reach from {array.min():.3g} to "
            f"{array.max():.3g}: give them in 0..1, and let the network's forward scale them."
        )
    return _eight_bits(torch.tensor(array, dtype=torch.float32))
