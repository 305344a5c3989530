"""Scaling of pixels that belongs to a network: what its training did between pictures of 0..1 and the first layer."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from idc_core.base.parameters import Parameter, option
from idc_core.errors import ModelError

_Order = Literal["RGB", "BGR"]
Layout = Literal["first", "last", "flat", "rows"]
_MOST_CHANNELS = 4096
_PIXEL = Parameter("scaling", "Scaling", "Of inputs in front of a network.", 0.0, -1e6, 1e6)


@dataclass(frozen=True)
class Scaling:
    """What is done to inputs of 0..1 in front of a network: ``(factor * input - mean) / deviation`` per channel.

    Attributes
    ----------
    mean, deviation : tuple of float
        One number per channel, or one for all; in units of the inputs after `factor`.
    factor : float
        Inputs are multiplied by it: 255 for networks trained on pixels of 0..255.
    order : {"RGB", "BGR"}
        Of the channels that the network takes.
    layout : {"first", "last", "flat", "rows"}
        Where the network takes the channels: (n, C, H, W), (n, H, W, C) as in Keras, (n, C * H * W), or of grey
        pictures (n, H, W).

    Raises
    ------
    ModelError
        If a number is not finite, a deviation or the factor is 0, or a word is unknown.
    """

    mean: tuple[float, ...] = option((0.0,), "subtracted from inputs, per channel or one for all", _PIXEL)
    deviation: tuple[float, ...] = option((1.0,), "inputs are divided by it, per channel or one for all", _PIXEL)
    factor: float = option(1.0, "inputs are multiplied by it first, such as 255", _PIXEL)
    order: _Order = option("RGB", "of the channels that they take", get_args(_Order))
    layout: Layout = option("first", "where they take the channels", get_args(Layout))

    def __post_init__(self) -> None:
        """Refuse what cannot be computed."""
        values = (*self.mean, *self.deviation, self.factor)
        if not self.mean or not self.deviation or not all(math.isfinite(value) for value in values):
            raise ModelError(f"Scaling needs finite numbers for mean, deviation and factor, not {self.said or values}.")
        if 0 in self.deviation or self.factor == 0:
            raise ModelError("Scaling with a deviation or a factor of 0 would make all inputs equal; give others.")
        if len({len(self.mean), len(self.deviation)} - {1}) > 1 or max(len(self.mean), len(self.deviation)) > (
            _MOST_CHANNELS
        ):
            raise ModelError(
                f"Scaling has {len(self.mean)} means and {len(self.deviation)} deviations; give one of each per "
                "channel, or one for all."
            )
        if self.order not in get_args(_Order) or self.layout not in get_args(Layout):
            raise ModelError(
                f"Scaling takes the order {' or '.join(get_args(_Order))} and the layout "
                f"{', '.join(get_args(Layout))}, not {self.order!r:.40} and {self.layout!r:.40}."
            )

    @property
    def said(self) -> str:
        """What it does, for a card; empty where it does nothing."""
        parts = [] if self.factor == 1 else [f"multiplied by {self.factor:g}"]
        if any(self.mean) or set(self.deviation) != {1.0}:
            parts.append(f"mean {_listed(self.mean)} subtracted, divided by {_listed(self.deviation)}")
        if self.order == "BGR":
            parts.append("channels in the order BGR")
        places = {
            "first": "",
            "last": "channels last",
            "flat": "laid out flat",
            "rows": "rows and columns without a channel",
        }
        parts.append(places[self.layout])
        return ", ".join(filter(None, parts))

    def to_json(self) -> dict[str, object]:
        """Return plain values, from which `from_json` makes it again."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, plain: object, where: str) -> Scaling:
        """Make one of what `to_json` returned; ModelError, naming where that lay, if it is something else."""
        known = {item.name: item for item in fields(cls)}
        if not isinstance(plain, dict) or not set(plain) <= set(known):
            raise ModelError(f"{where} must have some of the fields {', '.join(known)}.")
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()
        }
        try:
            return cls(**given)
        except TypeError as error:
            raise ModelError(f"{where} must have numbers for mean, deviation and factor ({error}).") from error


def _listed(values: tuple[float, ...]) -> str:
    return " ".join(f"{value:g}" for value in values)
