"""What the axes of an output with many scores per input are: classes, and the boxes or pixels that have scores.

Needs no torch. Detectors agree on little more than that each box has a score per class: YOLO puts the box in front of
the scores, and up to its seventh version how likely it holds any object; others keep boxes apart, and count "no object"
as a class.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from idc_core.base.parameters import shown
from idc_core.errors import ModelError, SettingError

if TYPE_CHECKING:
    from torch import Tensor

Places = Literal["boxes", "pixels"]

_COLUMNS = r"(?:([145])\+)?classes(?:\+([1-9][0-9]{0,3}))?"
PATTERN = rf"(?::(?:{_COLUMNS},(?:boxes|pixels)|(?:boxes|pixels),{_COLUMNS}))?"
"""The form of axes, behind the name of what is explained."""

_BOX, _OBJECT = 4, 5
"""Columns before the classes: a box, and how likely it holds any object."""

_USUAL = {
    "4+classes,boxes": "YOLO 8 and later",
    "boxes,5+classes": "YOLO 5 to 7, YOLOX",
    "boxes,classes": "RT-DETR",
    "boxes,classes+1": "DETR, YOLOS: the last is no object",
    "boxes,1+classes": "SSD: the first is no object",
    "boxes,4+classes": "",
    "classes,boxes": "",
    "5+classes,boxes": "",
    "classes+1,boxes": "",
    "1+classes,boxes": "",
}
"""Axes that detectors have, and whose they are."""

_ROUNDED = 1e-3
"""How far a sum of probabilities may be from 1."""


@dataclass(frozen=True)
class Axes:
    """The axes behind the batch: one or more of `places` with scores each, and on the first or the `last` the classes.

    `before` columns stand in front of the classes: 4 are a box, 5 a box and how likely it holds any object, 1 is the
    class "no object". `behind` columns follow them: 1 is the class "no object" where there is no box, more are ignored.
    """

    places: Places
    last: bool = False
    before: int = 0
    behind: int = 0

    @classmethod
    def read(cls, text: str, places: Places) -> Axes:
        """Return the axes that are written so; SettingError where they are not of these places."""
        first, _, second = text.partition(",")
        last = first == places
        columns = re.fullmatch(_COLUMNS, second if last else first)
        if columns is None or places not in (first, second) or (places == "pixels" and any(columns.groups())):
            usual = ", ".join(_USUAL) if places == "boxes" else "classes,pixels, pixels,classes"
            raise SettingError(f"axes are written {usual}; {shown(text)} is none of these.")
        return cls(places, last, *(int(number or 0) for number in columns.groups()))

    def __str__(self) -> str:
        """Return them as they are written in options."""
        columns = "+".join(str(part) for part in (self.before, "classes", self.behind) if part)
        return f"{self.places},{columns}" if self.last else f"{columns},{self.places}"

    def classes(self, shape: Sequence[int]) -> int:
        """Return how many classes an output of this shape, the batch first, has; below 1 where it is of another one."""
        return int(shape[-1 if self.last else 1]) - self.before - self.behind if len(shape) > 2 else 0

    @property
    def has_background(self) -> bool:
        """Whether "no object" is a class."""
        return self.before == 1 or (not self.before and self.behind == 1)

    def scores(self, output: Tensor, undo: str) -> Tensor:
        """Return the scores of each class at each place, (n, classes, places), before the ending that is undone.

        Where "no object" is a class, a class's score is how far it is above that one's, which is the logarithm of
        how many times as likely it is. Where boxes tell how likely they hold any object, it is that of both.
        """
        columns = self._columns(_before(output, undo))
        classes = columns.shape[1] - self.before - self.behind
        own = columns[:, self.before : self.before + classes]
        if self.has_background:
            return own - (columns[:, :1] if self.before else columns[:, classes:])
        if undo == "softmax":  # a number that is the same for all classes is lost in it
            return own - own.mean(1, keepdim=True)
        return _both(columns[:, _OBJECT - 1 : _OBJECT], own) if self.before == _OBJECT else own

    def ending(self, output: Tensor) -> str:
        """Return "sigmoid" or "softmax" where the values at all places are probabilities that one gave, else ""."""
        columns = self._columns(output.detach())
        told = columns[:, _BOX if self.before >= _BOX else 0 : columns.shape[1] - self.behind * (self.before > 1)]
        if not told.numel() or not bool(((told >= 0) & (told <= 1)).all()):
            return ""
        whole = told.shape[1] > 1 and self.before < _BOX and bool(((told.sum(1) - 1).abs() < _ROUNDED).all())
        return "softmax" if whole else "sigmoid"

    def _columns(self, output: Tensor) -> Tensor:
        return output.flatten(1, -2).transpose(1, 2) if self.last else output.flatten(2)


def found_axes(places: Places, shape: Sequence[int], counts: Sequence[int]) -> Axes | None:
    """Return the axes of an output of this shape, the batch first; None where several are possible, or none are.

    `counts` are numbers of classes that the network may have: of the names that it gives its outputs, of its data.
    """
    for count in filter(None, counts):
        alike = [axes for axes in _usual(places) if axes.classes(shape) in ({1, 2} if count == 2 else {count})]
        if alike:
            return alike[0] if len(alike) == 1 else None
    return None


def ask_axes(name: str, shape: Sequence[int]) -> ModelError:
    """Return the error that asks what the axes of boxes are, with what is to be typed."""
    fits = [axes for axes in _usual("boxes") if axes.classes(shape) > 0 and axes.last == (shape[-1] <= shape[1])]
    lines = [f"--explain {name}:{axes} ({_said(axes, shape)})" for axes in fits]
    python = f" In Python: explain='{name}:{fits[0]}', and so on." if fits else ""
    said = f"explain={name!r}: the network returns an array of shape ({', '.join(('n', *map(str, shape[1:])))})"
    if not lines:
        return ModelError(
            f"{said}; expected an axis of boxes and one of classes. Take the output with the scores by --output, or "
            "give a function of what the network returns (explain=... of @idc.network)."
        )
    return ModelError(f"{said}, of which it is not known where the classes are. Say it: {', '.join(lines)}.{python}")


def _usual(places: Places) -> Iterator[Axes]:
    if places == "pixels":
        yield from (Axes(places), Axes(places, last=True))
        return
    for text in _USUAL:
        yield Axes.read(text, places)


def _said(axes: Axes, shape: Sequence[int]) -> str:
    count = axes.classes(shape)
    return "; ".join(filter(None, (f"{count:,} class{'es' if count > 1 else ''}", _USUAL[str(axes)])))


def _before(output: Tensor, undo: str) -> Tensor:
    """Return what a softmax or a sigmoid made probabilities of; of a softmax, up to a number per place."""
    import torch

    from idc_core.lrp.endings import ending_of

    if not undo:
        return output
    noted = ending_of(output)
    if noted is not None and noted[0] == undo and noted[1].shape == output.shape:
        return noted[1]
    bounds = torch.finfo(output.dtype)
    if undo == "softmax":
        return output.clamp(min=bounds.tiny).log()
    return output.clamp(bounds.tiny, 1 - bounds.eps / 2).logit()


def _both(one: Tensor, other: Tensor) -> Tensor:
    """Return the score of the product of two probabilities, from the scores of both."""
    import torch

    one = one.expand_as(other)
    return -torch.logsumexp(torch.stack((-one, -other, -one - other)), 0)
