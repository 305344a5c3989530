"""Which scores of a network are explained, where it gives more than one row of them per input. Needs no torch."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from idc_core.base.foreign import said_foreign
from idc_core.base.own_code import code_digest
from idc_core.base.parameters import shown
from idc_core.errors import IdcError, ModelError, SettingError
from idc_core.lrp.scores import scores_of

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.utils.hooks import RemovableHandle

Explain = str | Callable[..., "Tensor"]
"""A name of `EXPLAINED`, "token-N", or a function from what a network returns to scores (n, classes)."""

_LEAST = 1e-7
"""The smallest probability whose score is told from that of 0, in float32."""

_MASK = "attention_mask"
"""The input that says which tokens are read (1) and which are padding (0)."""


@dataclass(frozen=True)
class Choice:
    """One way from many rows of scores per input to one: what it is for people, the shape it takes, what it does."""

    said: str
    shape: str
    scores: Callable[[Tensor, Tensor], Tensor]
    """From scores and what is no padding, bool (n, tokens), to scores (n, classes)."""


def _mean_of_tokens(scores: Tensor, present: Tensor) -> Tensor:
    share = present.to(scores.dtype) / present.sum(1, keepdim=True).clamp(min=1)
    return (scores * share[..., None]).sum(1)


def _first_token(scores: Tensor, present: Tensor) -> Tensor:
    return scores[range(len(scores)), present.int().argmax(1)]


def _last_token(scores: Tensor, present: Tensor) -> Tensor:
    last = present.shape[1] - 1 - present.flip(1).int().argmax(1)
    return scores[range(len(scores)), last]


_MAPS, _TOKENS = "(n, classes, positions...)", "(n, tokens, classes)"

EXPLAINED: dict[str, Choice] = {
    "mean-pixels": Choice("the mean of the scores over all pixels", _MAPS, lambda scores, _: scores.flatten(2).mean(2)),
    "mean-tokens": Choice("the mean of the scores over all tokens, padding left out", _TOKENS, _mean_of_tokens),
    "first-token": Choice("the scores of the first token", _TOKENS, _first_token),
    "last-token": Choice("the scores of the last token that is no padding", _TOKENS, _last_token),
}
"""What can be explained, by name; beside them "token-0", "token-1" and so on."""

LAYOUTS = ("time-first", "batch-first")
"""Layouts of scores that are one row per step: (time, n, classes), and (n, time, classes)."""

TOKEN = r"token-[0-9]{1,6}"
"""The form of the names of single tokens."""

WAYS = f"{', '.join(map(repr, EXPLAINED))}, 'token-N' or a function of what the network returns"


def explaining(network: nn.Module, explain: Explain) -> RemovableHandle:
    """Let a network return the scores that are explained, for all that is done with it from here on.

    For networks that return more than one row of scores per input: of segmentation, detection, or one row per token.

    >>> with explaining(network, "mean-pixels"):
    ...     analyze(network, train, tests, layer="layer4", m=6)

    Parameters
    ----------
    network : Module
    explain : str or callable
        "mean-pixels": mean over all positions of scores (n, classes, positions...). "mean-tokens", "first-token",
        "last-token", "token-N" (from 0): of scores (n, tokens, classes), with padding left out where the network is
        given an `attention_mask`. A function gets what the network returns and gives scores (n, classes), or one
        number per input (n,).

    Returns
    -------
    RemovableHandle
        A hook of PyTorch: its `remove()`, or the end of a `with` block, lets the network return what it did.

    Raises
    ------
    SettingError
        If the name is unknown.
    ModelError
        When the network runs, if what it returns has not the shape that the name is for.
    """
    if not hasattr(network, "register_forward_hook"):
        raise ModelError(f"Expected a network, a torch.nn.Module, not {shown(network)}.{said_foreign(network)}")
    return network.register_forward_hook(Explaining(checked(explain)), with_kwargs=True)


@dataclass(frozen=True)
class Explaining:
    """The hook behind a network; an object, so that copies of the network have it as well. None takes its scores.

    `output` is the name of the output that they are read from, "" for the usual one. `undo` is "sigmoid" where that
    output is a map of probabilities: the scores of a pixel are those before it. `turned` is whether it is (time, n,
    classes), so that its first two axes are exchanged.
    """

    explain: Explain | None
    output: str = ""
    undo: str = ""
    turned: bool = False

    def __call__(self, module: object, given: object, named: Mapping[str, Tensor], output: object) -> object:
        """Return the scores."""
        if self.output:
            output = scores_of(output, self.output)
        if self.turned:
            output = scores_of(output).transpose(0, 1)
        if self.explain is None:
            return scores_of(output)
        if isinstance(self.explain, str):
            scores = scores_of(output)
            return _named(self.explain, _undone(scores) if self.undo else scores, named.get(_MASK))
        try:
            return self.explain(output)
        except IdcError:
            raise
        except Exception as error:
            raise ModelError(
                f"The function {_name(self.explain)!r}, given as explain, failed on what the network returns, a "
                f"{type(output).__name__}: {type(error).__name__}: {error}"
            ) from error


def checked(explain: object) -> Explain:
    """Return what is to be explained; SettingError where it is no name and no function."""
    if isinstance(explain, str):
        _choice(explain)
    elif not callable(explain):
        raise SettingError(f"explain must be {WAYS}, not {shown(explain)}.")
    return explain


def said_of(explain: Explain) -> str:
    """Say what is explained, for a card."""
    if isinstance(explain, str):
        return _choice(explain).said
    return f"what the function {_name(explain)!r} makes of its output"


def digest_of(explain: Explain) -> str:
    """Return 16 hexadecimal digits that change with what is explained, the code of a function included."""
    if isinstance(explain, str):
        text = explain
    else:
        code = getattr(explain, "__code__", None)
        text = f"{code_digest(explain)} {code.co_code, code.co_consts, code.co_names}" if code else repr(explain)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _undone(probabilities: Tensor) -> Tensor:
    """Return the scores before a sigmoid: those that it was computed from, where that was noted."""
    from idc_core.lrp.endings import ending_of  # needs torch

    found = ending_of(probabilities)
    noted = found is not None and found[0] == "sigmoid" and found[1].shape == probabilities.shape
    return found[1] if found is not None and noted else probabilities.logit(_LEAST)


def _name(function: Callable[[object], object]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _choice(name: str) -> Choice:
    choice = EXPLAINED.get(name)
    if choice is None and re.fullmatch(TOKEN, name):
        number = int(name.removeprefix("token-"))
        choice = Choice(f"the scores of token {number}, counted from 0", _TOKENS, lambda scores, _: scores[:, number])
    if choice is None:
        raise SettingError(f"explain must be {WAYS}, not {shown(name)}.")
    return choice


def _named(name: str, scores: Tensor, mask: Tensor | None) -> Tensor:
    """Return the scores that a name is for, (n, classes)."""
    choice, shape = _choice(name), tuple(getattr(scores, "shape", ()))
    fits = len(shape) > 2 if choice.shape == _MAPS else len(shape) == 3
    if not fits:
        returned = f"an array of shape {shape}" if shape else f"a {type(scores).__name__}"
        raise ModelError(f"explain={name!r} takes scores of shape {choice.shape}; the network returns {returned}.")
    if mask is None or tuple(mask.shape) != shape[:2]:
        mask = scores.detach().new_ones(shape[:2])
    try:
        return choice.scores(scores, mask != 0)
    except IndexError:
        raise ModelError(f"explain={name!r}: the network returns scores of {shape[1]} tokens, from 0.") from None
