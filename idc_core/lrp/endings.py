"""A softmax, log-softmax or sigmoid at the end of a network, also where it is written out, and the scores before it.

JAX, TensorFlow and many a forward write a softmax as the operations that it is made of: the maximum subtracted, the
exponential, the sum, the quotient. It is known by that algebra, of which `Term` is one value; operations of PyTorch are
noted while they run (`note`), those of an ONNX file lie in its graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor
from torch._C import DisableTorchFunction
from torch.overrides import TorchFunctionMode, handle_torch_function, has_torch_function_unary

from idc_core.lrp.calls import Args, Kwargs, Operation, is_transformed, name_of, plain_name

Ending = Literal["softmax", "log-softmax", "sigmoid"]

DEEPEST = 24
"""Operations, one behind the other, that are kept of how a value was computed; a written softmax has ten."""

_TINY = 1e-3
"""The largest number that is added to probabilities for their logarithms' sake."""

_ALIKE = 8
"""Operations, one behind the other, in which two values may be computed apart and still be the same."""


@dataclass(frozen=True, eq=False)
class Term:
    """A value: by which operation it was computed, of what, and what it is (a tensor, or the name of a value).

    Operations are "exp", "log", "neg", "tanh", "reciprocal", "add", "sub", "mul", "div", "move" (the same numbers, seen
    in another form), "bound" (clamped, or without what is no number), "sum", "max" and "logsumexp" over the classes,
    "softmax", "log-softmax", "sigmoid"; "number" of a constant, whose `value` is a float; and "" for all others.
    """

    operation: str
    given: tuple[Term, ...] = ()
    value: object = None
    depth: int = 0  # how many operations are kept of it, one behind the other
    again: Callable[[Tensor], Tensor] | None = None  # does what a move did to another value


def before(end: Term) -> tuple[Ending, Term] | None:
    """Return what a value is the result of, and the scores that it was computed from; None where it is no ending."""
    core, logarithms, _ = _peeled(end)
    for kind, find, number in (("softmax", _softmax, 0), ("log-softmax", _log_softmax, 1), ("sigmoid", _sigmoid, 0)):
        if (scores := find(core)) is not None:
            kinds: dict[int, Ending] = {0: "softmax", 1: "log-softmax"} if kind != "sigmoid" else {0: "sigmoid"}
            ending = kinds.get(number + logarithms)
            return None if ending is None else (ending, scores)
    return None


def _peeled(term: Term) -> tuple[Term, int, list[Term]]:
    """Return a value without what an ending may have behind it, the logarithms among that, and the moves, last first.

    Behind it are moves, bounds, a tiny number that keeps logarithms finite, logarithms (1 each) and exponentials (-1).
    """
    logarithms, moves = 0, []
    while True:
        if term.operation == "move":
            moves.append(term)
        elif term.operation in ("log", "exp"):
            logarithms += 1 if term.operation == "log" else -1
        elif term.operation == "add" and any(map(_is_tiny, term.given)):
            term = replace(term, given=tuple(part for part in term.given if not _is_tiny(part)))
        elif term.operation != "bound":
            return term, logarithms, moves
        if not term.given:
            return term, logarithms, moves
        term = term.given[0]


def _is_tiny(term: Term) -> bool:
    return term.operation == "number" and isinstance(term.value, float) and abs(term.value) < _TINY


def _softmax(end: Term) -> Term | None:
    if end.operation == "softmax":
        return end.given[0]
    for numerator, denominator in _quotients(end):
        top, bottom = _bare(numerator), _bare(denominator)
        if top.operation == "exp" and bottom.operation == "sum" and _same(bottom.given[0], top):
            return _unshifted(top.given[0])
    return None


def _log_softmax(end: Term) -> Term | None:
    if end.operation == "log-softmax":
        return end.given[0]
    for scores, less in _differences(end):
        if _is_log_sum(_bare(less), scores):
            return _unshifted(scores)
    return None


def _is_log_sum(term: Term, scores: Term) -> bool:
    """Whether a value is the logarithm of the sum of the exponentials of some scores."""
    own = _log_sum(term)
    if own is not None:
        return _same(own, scores)
    if term.operation != "add":
        return False
    for high, rest in (term.given, term.given[::-1]):  # the maximum, taken out before and added again
        inner = _log_sum(_bare(rest))
        pairs = () if inner is None else _differences(_bare(inner))
        if any(_same(own, scores) and _same(less, high) for own, less in pairs):
            return True
    return False


def _log_sum(term: Term) -> Term | None:
    """Return what the logarithm of the sum of whose exponentials a value is."""
    if term.operation == "logsumexp":
        return term.given[0]
    total = _bare(term.given[0]) if term.operation == "log" else Term("")
    inner = _bare(total.given[0]) if total.operation == "sum" else Term("")
    return inner.given[0] if inner.operation == "exp" else None


def _sigmoid(end: Term) -> Term | None:
    if end.operation == "sigmoid":
        return end.given[0]
    for numerator, denominator in _quotients(end):
        top, bottom = _bare(numerator), _bare(denominator)
        if bottom.operation != "add":
            continue
        others = [_bare(part) for part in bottom.given if not _is_number(part, 1)]
        if len(others) != 1 or others[0].operation != "exp":
            continue
        if _same(others[0], top):  # exp(x) / (1 + exp(x))
            return others[0].given[0]
        inside = _negated(_bare(others[0].given[0]))
        if _is_number(top, 1) and inside is not None:
            return inside
    return _half_of_tanh(end)


def _half_of_tanh(end: Term) -> Term | None:
    """Return x of (1 + tanh(x / 2)) / 2, which is its sigmoid; the half may stand before the sum or within it."""
    if end.operation == "add":
        inner = next((_halved(_bare(part)) for part in end.given if not _is_number(part, 0.5)), None)
        fits = any(_is_number(part, 0.5) for part in end.given)
    else:
        whole = _halved(end)
        end = _bare(whole) if whole is not None else end
        fits = end.operation == "add" and any(_is_number(part, 1) for part in end.given)
        inner = next((part for part in end.given if not _is_number(part, 1)), None) if fits else None
    curve = _bare(inner) if fits and inner is not None else Term("")
    return _halved(_bare(curve.given[0])) if curve.operation == "tanh" else None


def _quotients(term: Term) -> Iterator[tuple[Term, Term]]:
    """Yield numerator and denominator of a value that is a quotient, in every way in which it is one."""
    if term.operation == "div":
        yield term.given[0], term.given[1]
    if term.operation == "reciprocal":
        yield Term("number", (), 1.0), term.given[0]
    if term.operation == "mul":
        for one, other in (term.given, term.given[::-1]):
            if (inverse := _bare(other)).operation == "reciprocal":
                yield one, inverse.given[0]
            elif inverse.operation == "div" and _is_number(inverse.given[0], 1):
                yield one, inverse.given[1]


def _differences(term: Term) -> Iterator[tuple[Term, Term]]:
    """Yield what is taken from what, of a value that is a difference."""
    if term.operation == "sub":
        yield term.given[0], term.given[1]
    if term.operation == "add":
        for one, other in (term.given, term.given[::-1]):
            if (taken := _negated(_bare(other))) is not None:
                yield one, taken


def _unshifted(scores: Term) -> Term:
    """Return scores without what was taken from all classes alike, such as their maximum."""
    while pairs := [own for own, less in _differences(_bare(scores)) if _is_alike(_bare(less))]:
        scores = pairs[0]
    return scores


def _is_alike(term: Term) -> bool:
    """Whether a value is the same for all classes of an input."""
    return term.operation in ("max", "sum", "logsumexp", "number") or (
        term.operation in ("log", "neg") and _is_alike(_bare(term.given[0]))
    )


def _negated(term: Term) -> Term | None:
    if term.operation == "neg":
        return term.given[0]
    if term.operation == "mul":
        return next((one for one, other in (term.given, term.given[::-1]) if _is_number(other, -1)), None)
    return term.given[1] if term.operation == "sub" and _is_number(term.given[0], 0) else None


def _halved(term: Term) -> Term | None:
    if term.operation == "mul":
        return next((one for one, other in (term.given, term.given[::-1]) if _is_number(other, 0.5)), None)
    return term.given[0] if term.operation == "div" and _is_number(term.given[1], 2) else None


def _is_number(term: Term, number: float) -> bool:
    term = _bare(term)
    return term.operation == "number" and term.value == number


def _bare(term: Term) -> Term:
    """Return a value without what only moves it."""
    while term.operation == "move":
        term = term.given[0]
    return term


def _same(one: Term, other: Term, depth: int = _ALIKE) -> bool:
    """Whether two values are computed alike from the same."""
    one, other = _bare(one), _bare(other)
    if one is other or (one.value is not None and _is_one(one.value, other.value)):
        return True
    alike = one.operation == other.operation and one.operation and len(one.given) == len(other.given)
    return bool(alike and one.given and depth) and all(
        _same(*pair, depth - 1) for pair in zip(one.given, other.given, strict=True)
    )


def _is_one(value: object, other: object) -> bool:
    return value is other if isinstance(value, Tensor) or isinstance(other, Tensor) else value == other


_NAMES = {
    "exp": ("exp",),
    "log": ("log",),
    "neg": ("neg", "negative", "__neg__"),
    "tanh": ("tanh",),
    "sigmoid": ("sigmoid", "special_expit"),
    "reciprocal": ("reciprocal",),
    "add": ("add", "__add__", "__radd__"),
    "sub": ("sub", "subtract", "__sub__"),
    "rsub": ("rsub", "__rsub__"),
    "mul": ("mul", "multiply", "__mul__", "__rmul__"),
    "div": ("div", "divide", "true_divide", "__truediv__"),
    "rdiv": ("__rtruediv__", "__rdiv__"),
    "sum": ("sum",),
    "max": ("amax", "max"),
    "logsumexp": ("logsumexp",),
    "softmax": ("softmax", "special_softmax"),
    "log-softmax": ("log_softmax", "special_log_softmax"),
    "move": (
        *("detach", ".data", "clone", "contiguous", "to", "type_as", "float", "double", "unsqueeze", "squeeze"),
        *("reshape", "view", "expand", "expand_as", "broadcast_to", "__getitem__", "keepdim", "alias", "positive"),
        *("flatten", "unflatten", "ravel", "view_as", "reshape_as", "select", "permute", "transpose", "swapaxes"),
        *("swapdims", "movedim", "moveaxis", "t", ".T", ".mT", "half", "bfloat16", "cpu", "atleast_2d"),
        *("index_select", "narrow"),
    ),
    "bound": ("clamp", "clip", "clamp_min", "clamp_max", "nan_to_num", "round"),
}
_FORMLESS = """
detach .data clone contiguous to type_as float double half bfloat16 cpu keepdim
"""
_ALIKE_MOVES = frozenset(_FORMLESS.split())
"""Moves that leave the form as it is."""

_MEANT = {name: operation for operation, names in _NAMES.items() for name in names}
_TURNED = {"rsub": "sub", "rdiv": "div"}
_OF_TWO = ("add", "sub", "rsub", "mul", "div", "rdiv")
_SOFTMAX = ("softmax", "log-softmax")
_BEHIND = ("move", "bound", "log", "exp")
"""What may be behind an ending."""
_OVER_CLASSES = ("sum", "max", "logsumexp", *_SOFTMAX)


def note(name: str, args: Args, kwargs: Kwargs, result: object, *, maps: bool = False) -> None:
    """Note on a result (n, classes), or one number per input, how it was computed; `name` is that of PyTorch.

    So on maps of one class, with `maps` on those of several, (n, classes, positions...), and of any a softmax over the
    classes, which may be the last axis. What an operation writes into is another value afterwards.
    """
    plain, in_place = plain_name(name, kwargs)
    operation = _MEANT.get(plain)
    if operation is None or (in_place and operation not in _BEHIND):
        if name == "pick_outputs":
            result._idc_picked = args  # type: ignore[attr-defined]
        elif in_place and hasattr(result, "_idc_ending"):
            del result._idc_ending
        return
    result = result[0] if name == "max" and isinstance(result, tuple) else result
    given = [*args[:2], *(kwargs[key] for key in ("input", "other") if key in kwargs)]
    if operation not in _OF_TWO:
        given = given[:1]
    known = operation in _SOFTMAX or (operation in _BEHIND and hasattr(given[0], "_idc_ending"))
    if not isinstance(result, Tensor) or not (known or _is_noted(result, maps)):
        return
    written = any(x is result for x in given)
    if (written and not in_place) or not _is_meant(operation, given, args, kwargs, result):
        return
    terms = tuple(map(_term, given))
    if written:  # its numbers are no longer what they were
        terms = tuple(replace(term, value=None) for term in terms)
    terms = terms[::-1] if operation in _TURNED else terms
    depth = 1 + max(term.depth for term in terms)
    if depth <= DEEPEST:  # what is kept holds memory
        again = partial(_moved, plain, args[1:], kwargs) if operation == "move" and plain not in _ALIKE_MOVES else None
        result._idc_ending = Term(  # type: ignore[attr-defined]
            _TURNED.get(operation, operation), terms, depth=depth, again=again
        )


def _moved(name: str, args: Args, kwargs: Kwargs, value: Tensor) -> Tensor:
    """Move other numbers as an operation did."""
    result: Tensor = getattr(value, name[1:]) if name.startswith(".") else getattr(value, name)(*args, **kwargs)
    return result


def _is_noted(result: Tensor, maps: bool) -> bool:
    """Whether a result may be, or lead to, the scores of a network: what is noted of others would hold memory."""
    if result.dim() < 3:
        return result.dim() > 0
    return maps or result.shape[1] == 1 or result.numel() == len(result) * max(result.shape[1:])


def _is_meant(operation: str, given: list[Any], args: Args, kwargs: Kwargs, result: Tensor) -> bool:
    """Whether an operation is the one of its name in the algebra, as it was called."""
    x = given[0] if given else None
    if operation in _OF_TWO:
        return len(given) == 2 and kwargs.get("alpha", 1) == 1 and kwargs.get("rounding_mode") is None
    if not isinstance(x, Tensor):
        return False
    if operation in _OVER_CLASSES:
        dim = kwargs.get("dim", kwargs.get("axis", args[1] if len(args) > 1 else None))
        own = [1] if dim is None and operation in _SOFTMAX else dim
        of_classes = [[1], [1 - x.dim()] if x.dim() > 1 else [1]]
        maps = x.dim() > 3 and x.shape[-1] >= x.shape[-2] and x.numel() > len(x) * max(x.shape[1:])
        if operation in _SOFTMAX and not maps:  # of attention
            own = own if isinstance(own, int) else 1
            return -x.dim() <= own < x.dim()
        if isinstance(own, Tensor):  # the larger one of two
            return False
        return bool(x.dim() > 1) and (list(own) if isinstance(own, tuple | list) else [own]) in of_classes
    if operation != "move":
        return True
    return x.numel() == result.numel() or (x.dim() > 0 < result.dim() and len(result) == len(x) == x.numel())


def _term(value: object) -> Term:
    """Return what was noted of an argument."""
    if isinstance(value, int | float):
        return Term("number", (), float(value))
    if not isinstance(value, Tensor):
        return Term("")
    known = getattr(value, "_idc_ending", None)
    if known is not None:
        return replace(known, value=value)  # type: ignore[no-any-return]
    if value.numel() == 1 and value.dim() < 2 and not is_transformed(value):
        return Term("number", (), float(value.detach()))
    return Term("", (), value)


def ending_of(output: Tensor) -> tuple[Ending, Tensor] | None:
    """Return what a network's output is the result of, and the scores before it; None where it is no ending.

    The scores have the form of the output. Of (n, classes) it is an ending where the classes are axis 1.
    """
    end = _term(output)
    found = before(end)
    if found is None or not isinstance(found[1].value, Tensor):
        return None
    (kind, term), (core, _, moves) = found, _peeled(end)
    first: Tensor = term.value  # type: ignore[assignment]
    scores = first
    made = core.value if isinstance(core.value, Tensor) else None
    if made is not None and made.shape != scores.shape and made.numel() == scores.numel():
        scores = scores.reshape(made.shape)
    for move in reversed(moves):
        if move.again is not None:
            scores, made = move.again(scores), None if made is None else move.again(made)
    # Within torch.vmap no values can be looked at: silenced networks that run so are compared with single runs.
    seen = output.dim() == 2 and not is_transformed(output)
    if seen and not _is_of_classes(kind, scores, made, output):
        return None
    if scores is not first:
        scores._idc_unmoved = first  # type: ignore[attr-defined]
    return kind, scores


def _is_of_classes(kind: Ending, scores: Tensor, made: Tensor | None, output: Tensor) -> bool:
    """Whether an ending over axis 1 makes of scores what it made; without that, nearly what the network returns."""
    if scores.shape != output.shape:
        return False
    with torch.no_grad(), DisableTorchFunction():
        scores = scores.float()
        logarithm = scores.log_softmax(1) if kind != "sigmoid" else torch.nn.functional.logsigmoid(scores)
        ways = (logarithm.exp(), logarithm)
        near = 1e-2 if made is None else 1e-3
        return any(torch.allclose(way, (output if made is None else made).float(), near, near, True) for way in ways)


def is_plain(output: Tensor) -> bool:
    """Whether an output is what one softmax gave, or one log-softmax."""
    return _term(output).operation in ("softmax", "log-softmax")


def pick_outputs(scores: Tensor, order: Tensor) -> Tensor:
    """Return some columns of scores (n, outputs), in this order; one operation, which an ending in front is seen by."""
    if has_torch_function_unary(scores):
        result: Tensor = handle_torch_function(pick_outputs, (scores,), scores, order)
        return result
    return scores.index_select(1, order.to(scores.device))


def scores_before(output: Tensor) -> Tensor:
    """Return the scores before a softmax, log-softmax or several sigmoids; an output that ends in none as it is."""
    whole, order = getattr(output, "_idc_picked", (output, None))
    kind, scores = ending_of(whole) or ("", whole)
    several = scores.dim() == 2 and scores.shape == whole.shape and (kind != "sigmoid" or scores.shape[1] > 1)
    if not kind or not several:
        return output
    return scores if order is None else pick_outputs(scores, order)


class Endings(TorchFunctionMode):
    """One run of a network in which it is noted how its output is computed; with `maps` also one of many rows."""

    def __init__(self, maps: bool = False) -> None:
        super().__init__()
        self._maps = maps

    def __torch_function__(
        self, func: Operation, types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> object:
        """Run one operation."""
        result = func(*args, **(kwargs or {}))
        note(name_of(func), args, kwargs or {}, result, maps=self._maps)
        return result
