"""Random numbers that a network draws while it is evaluated: no two passes agree then, so that they are refused.

A draw is refused where its numbers are used. Some networks draw before they look whether they are being trained
(LayerDrop of speech encoders); a number that nothing reads changes nothing.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from idc_core.errors import UnsupportedOperationError
from idc_core.lrp.calls import Args, Kwargs
from idc_core.lrp.unseen import in_module

_allowed: ContextVar[bool] = ContextVar("idc_randomness_allowed", default=False)

_Default = TypeVar("_Default")

_Draws = Callable[[Args, Kwargs], bool]
"""Whether a call draws random numbers, from its arguments."""


def _given(position: int, names: tuple[str, ...], default: _Default) -> Callable[[Args, Kwargs], _Default]:
    """Return what reads an argument that may come by place or by name."""

    def read(args: Args, kwargs: Kwargs) -> _Default:
        named = (kwargs[name] for name in names if name in kwargs)
        given: _Default = args[position] if len(args) > position else next(named, default)
        return given

    return read


def _drops(training: bool) -> _Draws:
    """Return whether a dropout draws whose training mode is this by default."""
    share, active = _given(1, ("p",), 0.5), _given(2, ("training", "train"), training)
    return lambda args, kwargs: bool(active(args, kwargs)) and share(args, kwargs) != 0


def _recurrent(args: Args, kwargs: Kwargs) -> bool:
    """Return whether layers of an LSTM and its like have dropout between them; packed ones begin with two tensors."""
    first = 5 if isinstance(args[3], bool) else 6
    return bool(args[first + 1]) and args[first] > 0


def _always(args: Args, kwargs: Kwargs) -> bool:
    return True


_slope = _given(3, ("training",), False)
_samples: Callable[[Args, Kwargs], object] = _given(5, ("_random_samples",), None)
_dropped, _attends = _given(4, ("dropout_p",), 0.0), _given(13, ("training",), True)
_dropped_of_heads = _given(10, ("dropout_p",), 0.0)

_MADE = """
rand rand_like randn randn_like randint randint_like randperm normal_ uniform_ random_ exponential_ cauchy_
geometric_ log_normal_ bernoulli_ kaiming_uniform_
"""
_CHANGED = (
    "normal bernoulli multinomial poisson binomial _standard_gamma _sample_dirichlet gumbel_softmax native_dropout"
)
_RANDOM = frozenset(_MADE.split())
"""Operations that give random numbers whatever they are given."""

_DROPPING: dict[str, _Draws] = {
    "scaled_dot_product_attention": lambda args, kwargs: _dropped(args, kwargs) > 0,
    "multi_head_attention_forward": lambda args, kwargs: (
        _dropped_of_heads(args, kwargs) > 0 and bool(_attends(args, kwargs))
    ),
    **dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), _recurrent),
}
"""Operations that have dropout within."""

DRAWING: dict[str, _Draws] = {
    **dict.fromkeys((*_RANDOM, *_CHANGED.split()), _always),
    **{name + end: _drops(True) for name in ("dropout", "dropout1d", "dropout2d", "dropout3d") for end in ("", "_")},
    **{
        name + end: _drops(False)
        for name in ("alpha_dropout", "feature_alpha_dropout", "feature_dropout")
        for end in ("", "_")
    },
    **{name: lambda args, kwargs: bool(_slope(args, kwargs)) for name in ("rrelu", "rrelu_")},
    **{f"fractional_max_pool{n}d": lambda args, kwargs: _samples(args, kwargs) is None for n in (2, 3)},
    **_DROPPING,
}
"""Operations that may draw random numbers, by name."""


class Randomness:
    """The random numbers of one pass that nothing has used yet."""

    def __init__(self) -> None:
        self.unused: dict[int, tuple[Tensor, str, str]] = {}
        self._seeded: dict[int, torch.Generator] = {}

    def meet(self, name: str, args: Args, kwargs: Kwargs, place: str) -> bool:
        """Hear of an operation of `DRAWING` in a module before it runs; return whether `keep` is to have its result.

        Raises UnsupportedOperationError where it draws at random what becomes of its arguments.
        """
        if _allowed.get() or not DRAWING[name](args, kwargs) or self._is_seeded(kwargs.get("generator")):
            return False
        if name not in _RANDOM:
            raise _refusal(name, place)
        return True

    def _is_seeded(self, generator: torch.Generator | None) -> bool:
        """Return whether a generator of the network's own has been seeded since the last pass drew from it."""
        if generator is None:
            return False
        if id(generator) not in self._seeded:
            fresh = torch.Generator(generator.device).manual_seed(generator.initial_seed())
            if not torch.equal(generator.get_state(), fresh.get_state()):
                return False
            self._seeded[id(generator)] = generator
        return True

    def keep(self, name: str, result: object, place: str) -> None:
        """Keep what was drawn until something uses it."""
        if isinstance(result, Tensor):
            for tensor in (result, result._base):
                if tensor is not None:
                    self.unused[id(tensor)] = tensor, name, place

    def check(self, tensors: list[Tensor]) -> None:
        """Raise UnsupportedOperationError where one of these was drawn."""
        for tensor in tensors:
            if id(tensor) in self.unused:
                raise _refusal(*self.unused[id(tensor)][1:])


def generators() -> tuple[object, ...]:
    """Return the states of the global generators of Python and NumPy, whose draws PyTorch does not show."""
    _, keys, *rest = np.random.get_state(legacy=True)
    return random.getstate(), np.asarray(keys).tobytes(), *rest


def check_outside(run: Callable[[], Tensor], network: str) -> None:
    """Refuse a network that gives an input other scores when it runs again; for one beside which somebody has drawn."""
    if not _allowed.get() and not torch.equal(run(), run()):
        raise UnsupportedOperationError(
            f"Random numbers of Python or NumPy are drawn in {network}: the same input gives other scores at every "
            "call. Draw only where self.training is set, or draw once in __init__ and keep the numbers as a buffer."
        )


def _refusal(name: str, place: str) -> UnsupportedOperationError:
    if "dropout" in name or name in _DROPPING:
        what = f"{name} stays active" if "dropout" in name else f"the dropout of {name} stays active"
        advice = "Use nn.Dropout, or give it training=self.training."
    else:
        what = f"{name} draws random numbers"
        advice = (
            "Draw only where self.training is set, draw once in __init__ and keep the numbers as a buffer, or draw "
            "from a generator that forward seeds."
        )
    return UnsupportedOperationError(
        f"The network cannot be analysed: {what} in evaluation{in_module(place)}, so that no two passes agree. {advice}"
    )


def is_allowed() -> bool:
    """Return whether networks may draw, since somebody looks whether they do."""
    return _allowed.get()


@contextmanager
def randomness_allowed() -> Iterator[None]:
    """Let networks draw within the block, for those who look whether they do."""
    token = _allowed.set(True)
    try:
        yield
    finally:
        _allowed.reset(token)
