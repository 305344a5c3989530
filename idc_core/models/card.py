"""The card of a trained network: its data, recipe, figures and terms."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from idc_core.errors import ModelError

Task = Literal["classification", "regression"]


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
    recipe: dict[str, Any]
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
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ModelError(f"The model card {path} cannot be read as JSON ({error}).") from error
        return cls.of(content, str(path))

    @classmethod
    def of(cls, content: Any, source: str) -> ModelCard:
        """Make a card of what its JSON text held; ModelError, naming the source, if the fields are others."""
        expected = {item.name for item in fields(cls)}
        if not isinstance(content, Mapping) or set(content) != expected:
            found = sorted(content) if isinstance(content, Mapping) else type(content).__name__
            raise ModelError(f"The model card {source} must have the fields {sorted(expected)}, not {found}.")
        values = dict(content)
        values["layers"] = tuple(values["layers"])
        return cls(**values)
