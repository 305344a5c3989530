"""The card of a trained network: its data, recipe, figures and terms."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from idc_core.base.files import SHIPPED
from idc_core.errors import ModelError, of_a_network
from idc_core.lrp.layer_parts import split_layer

if TYPE_CHECKING:
    from idc_core.models.network import Network

Task = Literal["classification", "regression"]

WEIGHTS_FOLDER = SHIPPED / "assets" / "weights"
"""Where the weights trained for this project, and their cards, are kept."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_FINGERPRINT = re.compile(r"[0-9a-f]{16}")
_MOST = 1 << 62


@dataclass(frozen=True)
class ModelCard:
    """What a person should know about a trained network before trusting it.

    `dataset` and `split` say what it was trained and measured on, `parameters` is the number of trained values.
    `default_layer` is analysed unless another one of `layers` (in forward order) is chosen. `metrics` are
    `test_accuracy` and `train_accuracy` as fractions, or `test_rmse`, `train_rmse` and `test_rmse_of_training_mean` in
    the target's unit. `recipe` is the `Recipe` as plain values, or where published weights come from; `seed` is None
    where they were published without one. `fingerprint` is the first 16 hexadecimal digits of the SHA-256 of the
    parameters; `versions` are those of the libraries that trained it.
    """

    name: str
    label: str
    dataset: str
    task: Task
    parameters: int
    default_layer: str
    layers: tuple[str, ...]
    metrics: dict[str, float]
    recipe: dict[str, object]
    seed: int | None
    split: str
    licence: str
    citation: str
    fingerprint: str
    versions: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the card as indented JSON text."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, path: Path) -> ModelCard:
        """Read a card that `to_json` wrote; ModelError if it is none."""
        from idc_core.guarded import read_json  # with NumPy, which a list of networks does not need

        with of_a_network():
            return cls.of(read_json(path, f"The model card {path}", dict[str, object]), str(path))

    @classmethod
    def of(cls, content: object, source: str) -> ModelCard:
        """Make a card of what its JSON text held; ModelError, naming the source, if fields or values cannot be."""
        expected = {item.name for item in fields(cls)}
        if not isinstance(content, Mapping) or set(content) != expected:
            held = sorted(content) if isinstance(content, Mapping) else type(content).__name__
            raise ModelError(f"The model card {source} must have the fields {sorted(expected)}, not {held}.")
        from idc_core.guarded import typed

        with of_a_network():
            card = typed(dict(content), f"The model card {source}", cls)
        wrong = card._wrong()
        if wrong:
            raise ModelError(f"The model card {source}: {wrong}.")
        return card

    def _wrong(self) -> str:
        """Return in words what of a card cannot be; empty where all can."""
        names = [repr(name[:60]) for name in (self.name, self.dataset) if not _NAME.fullmatch(name)]
        if names:
            return f"{' and '.join(names)} cannot be names of a network or a data set: expected letters, digits, . - _"
        if not all(self.layers) or len(set(self.layers)) < len(self.layers) or self.default_layer not in self.layers:
            return "expected layers with different names, the default layer among them"
        if not 0 <= self.parameters < _MOST or not 0 <= (self.seed or 0) < _MOST:
            return "expected a number of parameters and a seed from 0"
        if not all(math.isfinite(value) for value in self.metrics.values()):
            return "expected metrics that are finite numbers"
        if not all(0 <= value <= 1 for name, value in self.metrics.items() if name.endswith("accuracy")):
            return "expected accuracies from 0 to 1"
        other = "rmse" if self.task == "classification" else "accuracy"
        if unfit := next((name for name in self.metrics if other in name), ""):
            return f"expected no {unfit[:60]!r} of a {self.task}"
        return "" if _FINGERPRINT.fullmatch(self.fingerprint) else "expected a fingerprint of 16 hexadecimal digits"

    def check_network(self, network: Network, source: str) -> None:
        """Raise ModelError unless the network has the card's layers and number of parameters."""
        from idc_core.lrp.session import named_layers  # needs torch

        modules = named_layers(network)
        unknown = sorted(layer for layer in self.layers if split_layer(layer)[0] not in modules)
        count = sum(parameter.numel() for parameter in network.parameters())
        if unknown or count != self.parameters:
            lacks = f"the layers {', '.join(unknown)[:200]}" if unknown else f"{self.parameters:,} parameters"
            raise ModelError(f"The card {source} says {lacks}, which its network of {count:,} parameters has not.")
