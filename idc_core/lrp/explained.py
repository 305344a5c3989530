"""Which scores of a network are explained, where it gives more than one row of them per input. Needs no torch."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from idc_core.base.foreign import said_foreign
from idc_core.base.own_digest import reached_digest
from idc_core.base.parameters import shown
from idc_core.errors import IdcError, ModelError, SettingError
from idc_core.lrp.axes import PATTERN as AXES
from idc_core.lrp.axes import Axes, ask_axes, found_axes
from idc_core.lrp.scores import scores_of

if TYPE_CHECKING:
    from torch import Tensor, nn


Explain = str | Callable[..., "Tensor"]
"""A name of `EXPLAINED`, "token-N", or a function from what a network returns to scores (n, classes)."""

_MASK = "attention_mask"
"""The input that says which tokens are read (1) and which are padding (0)."""


@dataclass(frozen=True)
class Choice:
    """One way from many rows of scores per input to one: what it is for people, what has scores, what it does."""

    said: str
    of: Literal["pixels", "tokens", "boxes"]
    scores: Callable[[Tensor, Tensor], Tensor]
    """From scores (n, classes, pixels or boxes), or (n, tokens, classes) and what is no padding, bool (n, tokens), to
    scores (n, classes)."""


def _mean_of_tokens(scores: Tensor, present: Tensor) -> Tensor:
    share = present.to(scores.dtype) / present.sum(1, keepdim=True).clamp(min=1)
    return (scores * share[..., None]).sum(1)


def _first_token(scores: Tensor, present: Tensor) -> Tensor:
    return scores[range(len(scores)), present.int().argmax(1)]


def _last_token(scores: Tensor, present: Tensor) -> Tensor:
    last = present.shape[1] - 1 - present.flip(1).int().argmax(1)
    return scores[range(len(scores)), last]


def _mean_of_mask(scores: Tensor, _: Tensor) -> Tensor:
    """Return each class's mean where it is predicted; where it is nowhere, over all: below the predicted ones there."""
    seen = scores.detach()
    return _mean_where(scores, seen > 0 if seen.shape[1] == 1 else seen == seen.amax(1, keepdim=True))


def _mean_of_found(scores: Tensor, _: Tensor) -> Tensor:
    """Return each class's mean over the boxes in which it is likelier than not; where it is in none, of its best."""
    seen = scores.detach()
    found = seen > 0
    return _mean_where(scores, found | (~found.any(2, keepdim=True) & (seen == seen.amax(2, keepdim=True))))


def _mean_where(scores: Tensor, chosen: Tensor) -> Tensor:
    share = (chosen | ~chosen.any(2, keepdim=True)).to(scores.dtype)
    return (scores * (share / share.sum(2, keepdim=True))).sum(2)


EXPLAINED: dict[str, Choice] = {
    "mean-pixels": Choice("the mean of the scores over all pixels", "pixels", lambda scores, _: scores.mean(2)),
    "mean-mask": Choice(
        "the mean of each class's scores over the pixels where it is predicted", "pixels", _mean_of_mask
    ),
    "mean-tokens": Choice("the mean of the scores over all tokens, padding left out", "tokens", _mean_of_tokens),
    "first-token": Choice("the scores of the first token", "tokens", _first_token),
    "last-token": Choice("the scores of the last token that is no padding", "tokens", _last_token),
    "best-box": Choice("each class's score in its best box", "boxes", lambda scores, _: scores.amax(2)),
    "mean-boxes": Choice(
        "the mean of each class's scores over the boxes where it is found, else its best box", "boxes", _mean_of_found
    ),
}
"""What can be explained, by name; beside them "token-0", "token-1" and so on."""

_WHOLE = (
    "The network is analysed as a classifier of whole pictures: a picture's predicted class is the one with the "
    "highest such score, accuracy is how often that is the picture's label, and coverage is of neurons that lead to "
    "these scores. "
)
_MEANINGS = {
    "boxes": f"{_WHOLE}They say nothing of places and sizes of boxes, nor of how many are found.",
    "pixels": f"{_WHOLE}They say nothing of how well outlines fit.",
    "tokens": "",
}

LAYOUTS = ("time-first", "batch-first")
"""Layouts of scores that are one row per step: (time, n, classes), and (n, time, classes)."""

_TOKEN = r"token-[0-9]{1,6}"

PATTERN = f"(?:{'|'.join((*EXPLAINED, _TOKEN))}){AXES}"
"""The form of what can be explained by name, with axes behind it or without."""

NAMES = f"{', '.join(EXPLAINED)} or token-N"
WAYS = f"{', '.join(map(repr, EXPLAINED))}, 'token-N' or a function of what the network returns"


def explaining(network: nn.Module, explain: Explain) -> Explanation:
    """Let a network return the scores that are explained, for all that is done with it from here on.

    For networks that return more than one row of scores per input: of segmentation, detection, or one row per token.

    >>> with explaining(network, "mean-pixels"):
    ...     analyze(network, train, tests, layer="layer4", m=6)

    Parameters
    ----------
    network : Module
    explain : str or callable
        Of scores per pixel: "mean-pixels", the mean over all of them; "mean-mask", of each class over the pixels where
        it is predicted, and over all where it is nowhere. They are (n, classes, positions...), or with
        "mean-pixels:pixels,classes" (n, positions..., classes).
        Of scores per token (n, tokens, classes): "mean-tokens", "first-token", "last-token", "token-N" (from 0), with
        padding left out where the network is given an `attention_mask`.
        Of scores per box: "best-box", each class's score where it is highest; "mean-boxes", its mean over the boxes
        where it is likelier than not, and its best one where there is none. Behind a colon stands what the axes are,
        as in "best-box:4+classes,boxes" (YOLO 8 and later), "best-box:boxes,5+classes" (YOLO 5 to 7),
        "best-box:boxes,classes" (RT-DETR), "best-box:boxes,classes+1" (DETR: the last class is no object),
        "best-box:boxes,1+classes" (SSD: the first is).
        A function gets what the network returns and gives scores (n, classes), or one number per input (n,).

    Returns
    -------
    Explanation
        Its `remove()`, or the end of a `with` block, lets the network return what it did.

    Raises
    ------
    SettingError
        If the name or its axes are unknown.
    ModelError
        When the network runs, if what it returns has not the shape that the name is for, or its axes are not said.

    Notes
    -----
    Where the scores are probabilities, those before the sigmoid or the softmax are explained. The first pass tells: in
    maps by the operation that makes them, in boxes, where others stand beside them, by their values.
    """
    if not hasattr(network, "register_forward_hook"):
        raise ModelError(f"Expected a network, a torch.nn.Module, not {shown(network)}.{said_foreign(network)}")
    return Explanation(network, checked(explain))


class Explanation:
    """What is explained of a network, until it is removed; a context manager as well."""

    def __init__(self, network: nn.Module, explain: Explain) -> None:
        self._name = explain if isinstance(explain, str) else ""
        self._settled = None if self._name else Explaining(explain)
        self._noting = ExitStack()
        self._hooks = (
            network.register_forward_pre_hook(self._begin),
            network.register_forward_hook(self._end, with_kwargs=True, always_call=True),
        )

    def remove(self) -> None:
        """Let the network return what it did."""
        for hook in self._hooks:
            hook.remove()

    def __enter__(self) -> Explanation:
        """Return itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Remove it."""
        self.remove()

    def _begin(self, module: object, given: object) -> None:
        from idc_core.lrp.endings import Endings

        if self._settled is None:
            self._noting.enter_context(Endings(maps=True))

    def _end(self, module: object, given: object, named: Mapping[str, Tensor], output: object) -> object:
        self._noting.close()
        if output is None:  # the pass has failed
            return None
        if self._settled is None:
            self._settled = settled(self._name, scores_of(output))
        return self._settled(module, given, named, output)


@dataclass(frozen=True)
class Explaining:
    """The hook behind a network; an object, so that copies of the network have it as well. None takes its scores.

    `output` is the name of the output that they are read from, "" for the usual one. `undo` is "sigmoid" or "softmax"
    where that output is of probabilities: the scores are those before it. `axes` are those that were found. `turned` is
    whether it is (time, n, classes), so that its first two axes are exchanged.
    """

    explain: Explain | None
    output: str = ""
    undo: str = ""
    axes: str = ""
    turned: bool = False

    def __call__(self, module: object, given: object, named: Mapping[str, Tensor], output: object) -> object:
        """Return the scores."""
        if isinstance(self.explain, str):
            choice, _ = _read(self.explain)
            if choice.of == "tokens":
                return _of_tokens(self.explain, choice, self._taken(output), named.get(_MASK))
            places = self.of_places(output)
            return choice.scores(places, places)
        if self.output or self.turned or self.explain is None:
            output = self._taken(output)
        if self.explain is None:
            return output
        try:
            return self.explain(output)
        except IdcError:
            raise
        except Exception as error:
            raise ModelError(
                f"The function {_name(self.explain)!r}, given as explain, failed on what the network returns, a "
                f"{type(output).__name__}: {type(error).__name__}: {error}"
            ) from error

    def _taken(self, output: object) -> Any:
        """Return the output that the scores are read from, inputs first."""
        taken: Any = scores_of(output, self.output)
        return taken.transpose(0, 1) if self.turned else taken

    def of_places(self, output: object) -> Tensor:
        """Return the scores of each class in each box or pixel, (n, classes, places), of what the network returns."""
        taken, name = self._taken(output), str(self.explain)
        choice, written = _read(name)
        if choice.of == "tokens":
            raise _other_shape(name, "(n, tokens, classes)", taken)
        shape = tuple(getattr(taken, "shape", ()))
        if choice.of == "boxes" and not (self.axes or written):
            raise ask_axes(name, shape)
        axes = Axes.read(self.axes or written or str(Axes("pixels")), choice.of)
        if axes.classes(shape) < 1:
            expected = "(n, classes, positions...)" if choice.of == "pixels" else f"({axes}), n of them"
            raise _other_shape(name, expected, taken)
        return axes.scores(taken, self.undo)


def settled(explain: str, taken: object, counts: Sequence[int] = (), output: str = "") -> Explaining:
    """Return what makes scores of an output, once one has been seen: its axes, and whether it is of probabilities.

    Parameters
    ----------
    explain : str
    taken : Tensor or object
        The output that the scores are read from, computed under `Endings`.
    counts : sequence of int
        How many classes there may be, the likeliest number first.
    output : str
        The name that it is to be taken by; "" where it is the usual one.

    Raises
    ------
    ModelError
        If its axes are not told and cannot be found.
    """
    from torch import Tensor

    choice, written = _read(explain)
    if choice.of == "tokens":
        return Explaining(explain, output)
    if not isinstance(taken, Tensor):
        raise _other_shape(explain, "(n, ...)", taken)
    axes = Axes.read(written, choice.of) if written else found_axes(choice.of, taken.shape, counts)
    if axes is None and choice.of == "boxes":
        raise ask_axes(explain, taken.shape)
    axes = axes or Axes("pixels")
    return Explaining(explain, output, _ending(taken, axes), str(axes))


def _ending(taken: Tensor, axes: Axes) -> str:
    """Return what made probabilities of scores: in boxes as their values tell, in maps if it was noted as well."""
    from idc_core.lrp.endings import ending_of  # needs torch

    if axes.classes(taken.shape) < 1 or not taken.is_floating_point():
        return ""
    told = axes.ending(taken)
    return told if axes.places == "boxes" or told == (ending_of(taken) or ("",))[0] else ""


def checked(explain: object) -> Explain:
    """Return what is to be explained; SettingError where it is no name and no function."""
    if isinstance(explain, str):
        _read(explain)
    elif not callable(explain):
        raise SettingError(f"explain must be {WAYS}, not {shown(explain)}.")
    return explain


def said_of(explain: Explain) -> str:
    """Say what is explained, for a card."""
    if isinstance(explain, str):
        choice, axes = _read(explain)
        return f"{choice.said} ({axes})" if axes else choice.said
    return f"what the function {_name(explain)!r} makes of its output"


def meaning_of(explain: Explain) -> str:
    """Say what accuracy and coverage mean for what is explained; "" where that is plain, or not known."""
    return _MEANINGS[_read(explain)[0].of] if isinstance(explain, str) else ""


def is_of_boxes(explain: Explain | None) -> bool:
    """Whether scores of boxes are explained."""
    return isinstance(explain, str) and _read(explain)[0].of == "boxes"


def digest_of(explain: Explain) -> str:
    """Return 16 hexadecimal digits that change with what is explained, the code of a function included."""
    return hashlib.sha256(explain.encode()).hexdigest()[:16] if isinstance(explain, str) else reached_digest(explain)


def _name(function: Callable[[object], object]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _read(explain: str) -> tuple[Choice, str]:
    """Return what a name is of, and the axes behind it; SettingError where it is none."""
    name, colon, axes = explain.partition(":")
    choice = EXPLAINED.get(name)
    if choice is None and re.fullmatch(_TOKEN, name):
        number = int(name.removeprefix("token-"))
        choice = Choice(f"the scores of token {number}, counted from 0", "tokens", lambda scores, _: scores[:, number])
    if choice is None or (colon and choice.of == "tokens"):
        raise SettingError(f"explain must be {WAYS}, not {shown(explain)}.")
    if colon and choice.of != "tokens":
        try:
            axes = str(Axes.read(axes, choice.of))
        except SettingError as error:
            raise SettingError(f"explain={explain!r:.80}: {error}") from None
    return choice, axes


def _of_tokens(name: str, choice: Choice, scores: Tensor, mask: Tensor | None) -> Tensor:
    """Return the scores of tokens that a name is for, (n, classes)."""
    shape = tuple(getattr(scores, "shape", ()))
    if len(shape) != 3:
        raise _other_shape(name, "(n, tokens, classes)", scores)
    if mask is None or tuple(mask.shape) != shape[:2]:
        mask = scores.detach().new_ones(shape[:2])
    try:
        return choice.scores(scores, mask != 0)
    except IndexError:
        raise ModelError(f"explain={name!r}: the network returns scores of {shape[1]} tokens, from 0.") from None


def _other_shape(name: str, expected: str, returned: object) -> ModelError:
    shape = tuple(getattr(returned, "shape", ()))
    what = f"an array of shape {shape}" if shape else f"a {type(returned).__name__}"
    return ModelError(f"explain={name!r} takes scores of shape {expected}; the network returns {what}.")
