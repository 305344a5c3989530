"""Suites as the address writes them: a kind, what differs from its defaults, and which of its tests are selected.

``rotation~degrees=30`` is a kind with a setting, ``original~answers=wrong`` a part of the tests, and
``noise|guided`` two suites together. Whatever is as usual is not written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from idc_core.base.parameters import shown
from idc_core.base.ranges import SEED
from idc_core.errors import SettingError

TOGETHER, _APART, _SETS = "|", "~", "="

ANSWERS = {"": "all", "right": "correct", "wrong": "wrong"}
"""Which answers of the network a suite is cut down to: value and label."""

MOST_SEED = 9999


@dataclass(frozen=True)
class SuiteAddress:
    """One suite, of a key of `idc_core.suites.SUITES`, the name of a data set, or of a saved suite.

    `settings` are parameters that are not at their defaults; "pixels" stands for the share of the pixels. Selected are
    true `classes` (empty for all), a key of `ANSWERS`, and a range of confidence.
    """

    base: str
    settings: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    classes: tuple[int, ...] = ()
    answers: str = ""
    least: float = 0.0
    most: float = 1.0

    @property
    def text(self) -> str:
        """The suite as the address writes it."""
        parts = {name: f"{value:.10g}" for name, value in sorted(self.settings.items())}
        if self.seed:
            parts["seed"] = str(self.seed)
        if self.classes:
            parts["class"] = "-".join(map(str, self.classes))
        if self.answers:
            parts["answers"] = self.answers
        if self.confidence is not None:
            parts["sure"] = f"{self.least:.10g}to{self.most:.10g}"
        return _APART.join([self.base, *(f"{name}{_SETS}{value}" for name, value in parts.items())])

    @property
    def confidence(self) -> tuple[float, float] | None:
        """The range of confidence that is kept; None for all of it."""
        return None if (self.least, self.most) == (0.0, 1.0) else (self.least, self.most)

    @property
    def is_part(self) -> bool:
        """Whether only some of the tests are kept."""
        return bool(self.classes or self.answers or self.confidence)

    def words(self, label: str, class_names: Sequence[str]) -> str:
        """Name the suite for a person: the label of its kind, and what differs."""
        changed = [f"{name} {value:g}" for name, value in sorted(self.settings.items())]
        if self.seed:
            changed.append(f"seed {self.seed}")
        text = f"{label} ({', '.join(changed)})" if changed else label
        answers = {"": "", "right": "correctly classified", "wrong": "misclassified"}[self.answers]
        names = ", ".join(class_names[number] for number in self.classes if number < len(class_names))
        classes = f"of class{'es' if len(self.classes) > 1 else ''} {names}" if names else ""
        sure = f"with confidence {self.least:g} to {self.most:g}" if self.confidence else ""
        if self.base == "original":
            described = " ".join(part for part in (answers, "tests", classes, sure) if part)
            return described[0].upper() + described[1:]
        return ", ".join(part for part in (text, answers, classes, sure) if part)

    def changed(self, name: str, value: float, default: object) -> SuiteAddress:
        """Return the suite with another setting; one that is at its default is not noted."""
        settings = {key: setting for key, setting in self.settings.items() if key != name}
        return replace(self, settings=settings if value == default else {**settings, name: value})


def parse(text: str) -> SuiteAddress:
    """Read one suite from an address; raise `SettingError` where it is not as `Recipe.text` writes it.

    Whether its base and its settings exist is seen when it is made.
    """
    base, *parts = text.split(_APART)
    fields: dict[str, Any] = {"settings": {}}
    for part in parts:
        name, _, value = part.partition(_SETS)
        try:
            if name == "seed":
                fields["seed"] = int(SEED.read(value))
            elif name == "class":
                fields["classes"] = tuple(sorted({int(digits) for digits in value.split("-")}))
            elif name == "answers":
                fields["answers"] = value
            elif name == "sure":
                least, _, most = value.partition("to")
                fields["least"], fields["most"] = float(least), float(most)
            else:
                number = float(value)
                if not math.isfinite(number):
                    raise ValueError(value)
                fields["settings"][name] = int(number) if number.is_integer() else number
        except (ValueError, OverflowError) as error:
            raise SettingError(
                f"The address asks for a suite {shown(text)}, in which {shown(part)} cannot be read."
            ) from error
    recipe = SuiteAddress(base, **fields)
    if recipe.answers not in ANSWERS or not 0 <= recipe.least <= recipe.most <= 1:
        raise SettingError(f"The address asks for a suite {shown(text)}, whose part of the tests does not exist.")
    return recipe


def split(text: str) -> list[str]:
    """Return the suites that are put together under one name; mostly the one itself."""
    return [part for part in text.split(TOGETHER) if part]
