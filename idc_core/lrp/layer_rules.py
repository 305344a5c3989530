"""Rules for single operations: how the relevance R_j of z_j = sum_i x_i w_ij + b_j is shared among the inputs.

Each is a few lines on `Affine`. Rules of whole networks (`rules`) and tables (`tables`) are made of them.

References
----------
.. [1] S. Bach, A. Binder, G. Montavon, F. Klauschen, K.-R. Müller, W. Samek, "On pixel-wise explanations for
   non-linear classifier decisions by layer-wise relevance propagation", PLoS ONE 10(7), 2015.
.. [2] G. Montavon, A. Binder, S. Lapuschkin, W. Samek, K.-R. Müller, "Layer-wise relevance propagation: an
   overview", in Explainable AI, Springer LNCS 11700, 2019.
.. [3] S. Gerasimou, H. F. Eniser, A. Sen, A. Cakan, "Importance-driven deep learning system testing", ICSE 2020.
.. [4] A. Andéol, Y. Kawakami, Y. Wada, T. Kanamori, K.-R. Müller, G. Montavon, "Learning domain invariant
   representations by joint Wasserstein distance minimization", Neural Networks 167, 2023 (gamma for any sign).
.. [5] G. Montavon, S. Lapuschkin, A. Binder, W. Samek, K.-R. Müller, "Explaining nonlinear classification decisions
   with deep Taylor decomposition", Pattern Recognition 65, 2017.
.. [6] S. Lapuschkin, S. Wäldchen, A. Binder, G. Montavon, W. Samek, K.-R. Müller, "Unmasking Clever Hans predictors
   and assessing what machines really learn", Nature Communications 10, 2019 (flat).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeVar

import torch
from torch import Tensor

from idc_core.base.parameters import Parameter
from idc_core.base.ranges import EPSILON
from idc_core.base.registry import Registry
from idc_core.errors import SettingError
from idc_core.lrp.affine import Affine, Rule, pull_back
from idc_core.lrp.contributions import add, quotient, signed, spread_equally

_TINY = 1e-16
"""Keeps z / z defined at z = 0; the stabiliser that the original program uses for its plain rule."""

_ROUNDING = 4
"""How many times the rounding of its parts a sum is that they have cancelled."""

Bias = Literal["absorb", "redistribute"]


GAMMA = Parameter(
    "gamma",
    "Gamma",
    "How much contributions of the output's own sign are favoured; 0 is LRP-0.",
    0.25,
    offered=(0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0),
)

ALPHA = Parameter(
    "alpha",
    "Alpha",
    "Weight of supporting contributions; opposing ones weigh alpha - 1.",
    2.0,
    1.0,
    offered=(1.0, 1.5, 2.0, 3.0),
)

LOW = Parameter(
    "low",
    "Lowest input",
    "The smallest value that inputs of the first layer can have.",
    0.0,
    -1e6,
    1e6,
    offered=(0.0, -1.0, -2.0, -3.0),
)

HIGH = Parameter(
    "high",
    "Highest input",
    "The largest value that inputs of the first layer can have.",
    1.0,
    -1e6,
    1e6,
    offered=(1.0, 2.0, 3.0),
)


@dataclass(frozen=True)
class _LayerRule:
    """What tables and the command line know of a rule for single operations."""

    name: str
    label: str
    help: str
    citation: str
    parameters: tuple[Parameter, ...]
    make: Callable[..., Rule]  # ``make(bias=bias, **parameters)`` gives the `Rule`


LAYER_RULES: Registry[_LayerRule] = Registry("rule for a layer")
"""Rules for single operations by name, entered by `layer_rule`: what a table names."""

_Make = TypeVar("_Make", bound=Callable[..., Rule])


def layer_rule(
    name: str, *, label: str, help: str, citation: str, parameters: tuple[Parameter, ...] = ()
) -> Callable[[_Make], _Make]:
    """Enter a rule for single operations into `LAYER_RULES`.

    The decorated function is called with `bias`, "absorb" or "redistribute", and a value for each parameter, all by
    name. It returns the rule: ``rule(affine, inputs, z, relevance_of_z) -> relevance of each input``.
    """

    def enter(make: _Make) -> _Make:
        LAYER_RULES.enter(name, _LayerRule(name, label, help, citation, parameters, make))
        return make

    return enter


@layer_rule(
    "epsilon",
    label="LRP-epsilon",
    help="Contributions, damped by epsilon where a sum nearly cancels.",
    citation="Bach et al. 2015, eq. 58",
    parameters=(EPSILON,),
)
def epsilon_rule(epsilon: float, bias: Bias, least: float = _TINY) -> Rule:
    """R_i = sum_j x_i w_ij R_j / (z_j + epsilon sign z_j), with sign 0 = +1 (equation 1 of [3], eq. 58 of [1])."""
    size = max(epsilon, least)

    def rule(affine: Affine, inputs: tuple[Tensor, ...], z: Tensor, relevance: Tensor) -> tuple[Tensor, ...]:
        if affine.pointwise and bias == "absorb":
            share, (*others, last) = quotient(relevance, z, size, affine.weight), inputs
            return (*(x.detach() * share for x in others), share.mul_(last.detach()))
        if affine.pointwise and bias == "redistribute" and len(inputs) == 1:
            return (relevance,)  # all of it; shares of an input and a bias that cancel would lose their digits
        if bias == "absorb":
            return _contributions(affine, inputs, z, quotient(relevance, z, size, affine.factor), multiplied=True)
        share = quotient(relevance, z, size)
        amount = share * (signed(size, z) + _or_zero(affine.offset))
        if affine.weight is None:
            cancelled = _cancelled(affine, inputs, z)
            share, amount = share.masked_fill_(cancelled, 0.0), torch.where(cancelled, relevance, amount)
        return add(_contributions(affine, inputs, z, share), spread_equally(affine, inputs, amount))

    return rule


layer_rule("z", label="LRP-0 (z)", help="Contributions as they are.", citation="Bach et al. 2015, eq. 56")(
    partial(epsilon_rule, 0.0)
)


@layer_rule(
    "gamma",
    label="LRP-gamma",
    help="Favours contributions that support the output.",
    citation="Montavon et al. 2019",
    parameters=(GAMMA,),
)
def gamma_rule(gamma: float, bias: Bias) -> Rule:
    """R_i = sum_j (x_i w_ij + gamma c_ij) R_j / (their sum), c_ij what of x_i w_ij has the sign of z_j ([2], [4])."""

    def rule(affine: Affine, inputs: tuple[Tensor, ...], z: Tensor, relevance: Tensor) -> tuple[Tensor, ...]:
        shares: tuple[Tensor, ...] = tuple(torch.zeros_like(x) for x in inputs)
        above = z.detach() >= 0
        if bias == "redistribute" and affine.weight is None:
            above |= _cancelled(affine, inputs, z)  # whose sign is that of rounding
        for positive in (True, False):
            chosen = above if positive else ~above
            part = _SignedContributions(affine, inputs, positive)
            denominator = z.detach() + gamma * part.total
            stabiliser = signed(_TINY, denominator)
            share = torch.where(chosen, relevance / (denominator + stabiliser), 0.0)
            shares = add(shares, _contributions(affine, inputs, z, share), part.contributions(gamma * share))
            if bias == "redistribute":
                lost = stabiliser + gamma * part.offset
                shares = add(shares, spread_equally(affine, inputs, share * (lost + _or_zero(affine.offset))))
        return shares

    return rule


@layer_rule(
    "alpha-beta",
    label="LRP-alpha-beta",
    help="Treats supporting and opposing contributions apart, weighted alpha and alpha - 1.",
    citation="Bach et al. 2015, eq. 60",
    parameters=(ALPHA,),
)
def alpha_beta_rule(alpha: float, bias: Bias) -> Rule:
    """R_i = sum_j (alpha z+_ij / z+_j - beta z-_ij / z-_j) R_j with beta = alpha - 1 (equation 60 of [1]).

    An output that has contributions of one sign only would gain or lose relevance under the equation. Where no bias
    takes part (the operation has none, or its share is redistributed), the sign that exists takes all of it.
    """

    def rule(affine: Affine, inputs: tuple[Tensor, ...], z: Tensor, relevance: Tensor) -> tuple[Tensor, ...]:
        parts = _SignedContributions(affine, inputs, True), _SignedContributions(affine, inputs, False)
        free = True if bias == "redistribute" or affine.offset is None else affine.offset == 0
        empty = [(part.total == 0) & free for part in parts]
        weights = [torch.where(empty[1], 1.0, alpha) * ~empty[0], torch.where(empty[0], 1.0, 1.0 - alpha) * ~empty[1]]
        shares: tuple[Tensor, ...] = tuple(torch.zeros_like(x) for x in inputs)
        for part, weight, sign in zip(parts, weights, (1.0, -1.0), strict=True):
            share = weight * relevance / (part.total + sign * _TINY)
            shares = add(shares, part.contributions(share))
            if bias == "redistribute":
                shares = add(shares, spread_equally(affine, inputs, share * (part.offset + sign * _TINY)))
        if bias == "redistribute":
            nothing = (parts[0].total == 0) & (parts[1].total == 0)
            if bool(nothing.any()):
                shares = add(shares, spread_equally(affine, inputs, torch.where(nothing, relevance, 0.0)))
        return shares

    return rule


layer_rule("z-plus", label="z+", help="Supporting contributions alone.", citation="Montavon et al. 2017")(
    partial(alpha_beta_rule, 1.0)
)


@layer_rule("flat", label="Flat", help="Equal shares for all inputs.", citation="Lapuschkin et al. 2019")
def flat_rule(bias: Bias) -> Rule:
    """R_i = sum_j R_j / (number of inputs that feed z_j): the first layer alone has no say where it looks ([6])."""
    return lambda affine, inputs, z, relevance: spread_equally(affine, inputs, relevance)


@layer_rule("w2", label="w²", help="Shares by the squared weights alone.", citation="Montavon et al. 2017, eq. 12")
def _squares_rule(bias: Bias) -> Rule:
    """R_i = sum_j w_ij^2 R_j / sum_i w_ij^2 ([5], for inputs of any value); no bias takes part."""

    def rule(affine: Affine, inputs: tuple[Tensor, ...], z: Tensor, relevance: Tensor) -> tuple[Tensor, ...]:
        if affine.weight is None:
            return spread_equally(affine, inputs, relevance)
        with torch.enable_grad():
            ones = tuple(torch.ones_like(x).requires_grad_() for x in inputs)
            total = affine.function(ones, affine.weight.square(), None)
        return _shared(affine, inputs, ones, total, relevance)

    return rule


@layer_rule(
    "box",
    label="z^B (box)",
    help="For a layer of inputs with a lowest and a highest value, as pixels have.",
    citation="Montavon et al. 2017, eq. 14",
    parameters=(LOW, HIGH),
)
def box_rule(low: float, high: float, bias: Bias) -> Rule:
    """R_i = sum_j z_ij R_j / sum_i z_ij with z_ij = x_i w_ij - low w+_ij - high w-_ij ([5]); no bias takes part."""
    if low >= high:
        raise SettingError(f"The box rule needs low < high, bounds of the layer's inputs; found {low:g} and {high:g}.")

    def rule(affine: Affine, inputs: tuple[Tensor, ...], z: Tensor, relevance: Tensor) -> tuple[Tensor, ...]:
        weight = affine.weight
        least, most = (None, None) if weight is None else (weight.clamp(min=0), weight.clamp(max=0))
        with torch.enable_grad():
            given = tuple(x.detach().requires_grad_() for x in inputs)
            lows = tuple(torch.full_like(x, low).requires_grad_() for x in inputs)
            highs = tuple(torch.full_like(x, high).requires_grad_() for x in inputs)
            total = affine.function(given, weight, None) - affine.function(lows, least, None)
            if weight is not None:  # an operation without weights has positive ones alone
                total = total - affine.function(highs, most, None)
        parts = (given, lows) if weight is None else (given, lows, highs)
        shares = _shared(affine, inputs, tuple(x for part in parts for x in part), total, relevance)
        return add(*(shares[i : i + len(inputs)] for i in range(0, len(shares), len(inputs))))

    return rule


def _shared(
    affine: Affine, inputs: tuple[Tensor, ...], parts: tuple[Tensor, ...], total: Tensor, relevance: Tensor
) -> tuple[Tensor, ...]:
    """Share among what a total is linear in, by what each adds to it; outputs of nothing but zeros share equally."""
    nothing = total.detach() == 0
    gradients = pull_back(total, parts, torch.where(nothing, 0.0, relevance / total.detach()))
    shares = tuple(part.detach() * gradient for part, gradient in zip(parts, gradients, strict=True))
    if not bool(nothing.any()):
        return shares
    equal = spread_equally(affine, inputs, torch.where(nothing, relevance, 0.0))
    return (*add(shares[: len(inputs)], equal), *shares[len(inputs) :])


def pass_rule(affine: Affine, inputs: tuple[Tensor, ...], z: Tensor, relevance: Tensor) -> tuple[Tensor, ...]:
    """R_i = R_j with i = j: the relevance of an operation with one input of its result's shape passes unchanged."""
    if len(inputs) != 1 or inputs[0].shape != relevance.shape:
        raise SettingError(
            f"The rule 'pass' is for operations whose result has the shape of their one input, not for a {affine.kind} "
            "operation. Give that one a rule of its own."
        )
    return (relevance,)


@layer_rule("pass", label="Pass", help="Passes relevance on, for normalisations.", citation="Anders et al. 2021")
def _pass(bias: Bias) -> Rule:
    return pass_rule


def _cancelled(affine: Affine, inputs: tuple[Tensor, ...], z: Tensor) -> Tensor:
    """Return where rounding alone is left of a sum without weights, as of x and max(x), or of what has a mean of 0."""
    parts = affine.equally(tuple(x.detach().abs() for x in inputs))
    return z.detach().abs() <= _ROUNDING * torch.finfo(z.dtype).eps * parts


class _SignedContributions:
    """The contributions of one sign: x+ w+ and x- w- (positive), or x+ w- and x- w+ (negative), with that bias."""

    def __init__(self, affine: Affine, inputs: tuple[Tensor, ...], positive: bool) -> None:
        keep = _positive if positive else _negative
        weight, bias = affine.weight, None if affine.bias is None else keep(affine.bias)
        with torch.enable_grad():
            self._inputs = tuple(x.detach().requires_grad_() for x in inputs)
            upper = tuple(_positive(x) for x in self._inputs)
            lower = tuple(_negative(x) for x in self._inputs)
            if weight is None:
                self._sum = affine.function(upper if positive else lower, None, bias)
            else:
                other = _negative(weight) if positive else _positive(weight)
                self._sum = affine.function(upper, keep(weight), bias) + affine.function(lower, other, None)
        self.total = self._sum.detach()
        self.offset = 0.0 if affine.offset is None else keep(affine.offset)

    def contributions(self, share: Tensor) -> tuple[Tensor, ...]:
        """Return sum_j c_ij share_j for every input i."""
        gradients = pull_back(self._sum, self._inputs, share, retain=True)
        return tuple(x.detach() * g for x, g in zip(self._inputs, gradients, strict=True))


def _positive(x: Tensor) -> Tensor:
    return x.clamp(min=0)


def _negative(x: Tensor) -> Tensor:
    return x.clamp(max=0)


def _or_zero(x: Tensor | None) -> Tensor | float:
    """Return a tensor; 0 where there is none."""
    return 0.0 if x is None else x


def _contributions(
    affine: Affine, inputs: tuple[Tensor, ...], z: Tensor, share: Tensor, *, multiplied: bool = False
) -> tuple[Tensor, ...]:
    """Return inputs times gradients; those of an operation with weights are new numbers, which can be overwritten."""
    gradients, weighted = affine.pull_back(inputs, z, share, multiplied=multiplied), affine.weighs
    return tuple(
        g.mul_(x.detach()) if weighted and _dense(g) else x.detach() * g for x, g in zip(inputs, gradients, strict=True)
    )


def _dense(x: Tensor) -> bool:
    """Return whether every number of a tensor has a place of its own."""
    return x.is_contiguous() or (x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last))
