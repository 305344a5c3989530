"""The rules of layer-wise relevance propagation.

A rule says how the relevance R_j of an output z_j = sum_i x_i w_ij + b_j is shared among the inputs x_i. Each is a
few lines on `Affine`; the registry `RULES` carries what menus, the command line and the docs show.

References
----------
.. [1] S. Bach, A. Binder, G. Montavon, F. Klauschen, K.-R. Müller, W. Samek, "On pixel-wise explanations for
   non-linear classifier decisions by layer-wise relevance propagation", PLoS ONE 10(7), 2015.
.. [2] G. Montavon, A. Binder, S. Lapuschkin, W. Samek, K.-R. Müller, "Layer-wise relevance propagation: an
   overview", in Explainable AI, Springer LNCS 11700, 2019.
.. [3] S. Gerasimou, H. F. Eniser, A. Sen, A. Cakan, "Importance-driven deep learning system testing", ICSE 2020.
.. [4] A. Andéol, Y. Kawakami, Y. Wada, T. Kanamori, K.-R. Müller, G. Montavon, "Learning domain invariant
   representations by joint Wasserstein distance minimization", Neural Networks 167, 2023 (gamma for any sign).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Literal

import torch
from torch import Tensor

from idc_core.errors import SettingError
from idc_core.lrp.affine import Affine, Kind, Rule, pull_back

TINY = 1e-16
"""Keeps z / z defined at z = 0; the stabiliser that the original program uses for its plain rule."""

Bias = Literal["absorb", "redistribute"]


@dataclass(frozen=True)
class RelevanceSettings:
    """How relevance is propagated.

    Parameters
    ----------
    rule : str
        A name from `RULES`.
    epsilon : float
        Stabiliser of the epsilon rule, in the unit of a pre-activation; also used by the composite.
    gamma : float
        How much the gamma rule favours contributions of the output's own sign.
    alpha : float
        Weight of the positive contributions in the alpha-beta rule; beta = alpha - 1 weighs the negative ones.
    bias : {"absorb", "redistribute"}
        Whether the bias keeps its share of the relevance or spreads it equally over the inputs (footnote 1 of
        the DeepImportance paper), which makes every layer sum to the start score.

    Raises
    ------
    SettingError
        If a value is outside what the rule defines.
    """

    rule: str = "epsilon"
    epsilon: float = 1e-6
    gamma: float = 0.25
    alpha: float = 2.0
    bias: Bias = "absorb"

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise SettingError(f"Unknown relevance rule {self.rule!r}: expected one of {', '.join(RULES)}.")
        if self.bias not in ("absorb", "redistribute"):
            raise SettingError(f"Unknown bias mode {self.bias!r}: expected 'absorb' or 'redistribute'.")
        for name, least in (("epsilon", 0.0), ("gamma", 0.0), ("alpha", 1.0)):
            value = getattr(self, name)
            if not least <= value < float("inf"):
                raise SettingError(f"{name} of a relevance rule must be a number of at least {least:g}, not {value!r}.")

    def rule_for(self, kind: Kind) -> Rule:
        """Return the rule that treats operations of this kind."""
        return RULES[self.rule].choose(self, kind)


@dataclass(frozen=True)
class RuleEntry:
    """What the registry knows of a rule: how to show it, and which rule treats which kind of operation."""

    name: str
    label: str
    help: str
    parameters: tuple[str, ...]
    citation: str
    choose: Callable[[RelevanceSettings, Kind], Rule]


RULES: dict[str, RuleEntry] = {}


def register_rule(
    name: str, label: str, help: str, parameters: tuple[str, ...], citation: str
) -> Callable[[Callable[[RelevanceSettings, Kind], Rule]], Callable[[RelevanceSettings, Kind], Rule]]:
    """Enter a rule into `RULES` under a name; the decorated function picks the rule for a kind of operation."""

    def enter(choose: Callable[[RelevanceSettings, Kind], Rule]) -> Callable[[RelevanceSettings, Kind], Rule]:
        RULES[name] = RuleEntry(name, label, help, parameters, citation, choose)
        return choose

    return enter


def epsilon_rule(epsilon: float, bias: Bias) -> Rule:
    """R_i = sum_j x_i w_ij R_j / (z_j + epsilon sign z_j), with sign 0 = +1 (equation 1 of [3], eq. 58 of [1])."""

    def rule(affine: Affine, inputs: tuple[Tensor, ...], z: Tensor, relevance: Tensor) -> tuple[Tensor, ...]:
        denominator = _signed(max(epsilon, TINY), z).add_(z.detach())
        share = torch.div(relevance, denominator, out=denominator)
        shares = _contributions(inputs, z, share)
        if bias == "redistribute":
            lost = _signed(max(epsilon, TINY), z) + _or_zero(affine.offset)
            shares = _add(shares, _spread_equally(affine, inputs, share * lost))
        return shares

    return rule


def gamma_rule(gamma: float, bias: Bias) -> Rule:
    """R_i = sum_j (x_i w_ij + gamma c_ij) R_j / (their sum), c_ij what of x_i w_ij has the sign of z_j ([2], [4])."""

    def rule(affine: Affine, inputs: tuple[Tensor, ...], z: Tensor, relevance: Tensor) -> tuple[Tensor, ...]:
        shares: tuple[Tensor, ...] = tuple(torch.zeros_like(x) for x in inputs)
        for positive in (True, False):
            chosen = z.detach() >= 0 if positive else z.detach() < 0
            part = _Part(affine, inputs, positive)
            denominator = z.detach() + gamma * part.total
            stabiliser = _signed(TINY, denominator)
            share = torch.where(chosen, relevance / (denominator + stabiliser), 0.0)
            shares = _add(shares, _contributions(inputs, z, share), part.contributions(gamma * share))
            if bias == "redistribute":
                lost = stabiliser + gamma * part.offset
                shares = _add(shares, _spread_equally(affine, inputs, share * (lost + _or_zero(affine.offset))))
        return shares

    return rule


def alpha_beta_rule(alpha: float, bias: Bias) -> Rule:
    """R_i = sum_j (alpha z+_ij / z+_j - beta z-_ij / z-_j) R_j with beta = alpha - 1 (equation 60 of [1]).

    Notes
    -----
    An output that has contributions of one sign only would gain or lose relevance under the equation. Where no bias
    takes part (the operation has none, or its share is redistributed), the sign that exists takes all of it.
    """

    def rule(affine: Affine, inputs: tuple[Tensor, ...], z: Tensor, relevance: Tensor) -> tuple[Tensor, ...]:
        parts = _Part(affine, inputs, True), _Part(affine, inputs, False)
        free = True if bias == "redistribute" or affine.offset is None else affine.offset == 0
        empty = [(part.total == 0) & free for part in parts]
        weights = [torch.where(empty[1], 1.0, alpha) * ~empty[0], torch.where(empty[0], 1.0, 1.0 - alpha) * ~empty[1]]
        shares: tuple[Tensor, ...] = tuple(torch.zeros_like(x) for x in inputs)
        for part, weight, sign in zip(parts, weights, (1.0, -1.0), strict=True):
            share = weight * relevance / (part.total + sign * TINY)
            shares = _add(shares, part.contributions(share))
            if bias == "redistribute":
                shares = _add(shares, _spread_equally(affine, inputs, share * part.offset))
        if bias == "redistribute":
            nothing = (parts[0].total == 0) & (parts[1].total == 0)
            if bool(nothing.any()):
                shares = _add(shares, _spread_equally(affine, inputs, torch.where(nothing, relevance, 0.0)))
        return shares

    return rule


@register_rule(
    "z",
    "LRP-0 (z)",
    "Each input's share is exactly its contribution; noisy where a sum nearly cancels.",
    (),
    "Bach et al. 2015, eq. 56",
)
def _z(settings: RelevanceSettings, kind: Kind) -> Rule:
    return epsilon_rule(0.0, settings.bias)


@register_rule(
    "epsilon",
    "LRP-epsilon",
    "The paper's rule: contributions, damped by epsilon where a sum nearly cancels.",
    ("epsilon",),
    "Gerasimou et al. 2020, eq. 1; Bach et al. 2015, eq. 58",
)
def _epsilon(settings: RelevanceSettings, kind: Kind) -> Rule:
    return epsilon_rule(settings.epsilon, settings.bias)


@register_rule(
    "gamma",
    "LRP-gamma",
    "Favours contributions that support the output; smoother heatmaps.",
    ("gamma",),
    "Montavon et al. 2019",
)
def _gamma(settings: RelevanceSettings, kind: Kind) -> Rule:
    if kind == "normalisation":
        return epsilon_rule(0.0, settings.bias)
    return gamma_rule(settings.gamma, settings.bias)


@register_rule(
    "alpha-beta",
    "LRP-alpha-beta",
    "Treats supporting and opposing contributions apart, weighted alpha and alpha - 1.",
    ("alpha",),
    "Bach et al. 2015, eq. 60",
)
def _alpha_beta(settings: RelevanceSettings, kind: Kind) -> Rule:
    if kind == "normalisation":
        return epsilon_rule(0.0, settings.bias)
    return alpha_beta_rule(settings.alpha, settings.bias)


@register_rule(
    "composite",
    "LRP composite",
    "Gamma for convolutions, epsilon for everything else: the usual choice for convolutional networks.",
    ("epsilon", "gamma"),
    "Montavon et al. 2019",
)
def _composite(settings: RelevanceSettings, kind: Kind) -> Rule:
    return (_gamma if kind == "convolution" else _epsilon)(settings, kind)


class _Part:
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
        return _contributions(self._inputs, self._sum, share)


def _positive(x: Tensor) -> Tensor:
    return x.clamp(min=0)


def _negative(x: Tensor) -> Tensor:
    return x.clamp(max=0)


def _or_zero(x: Tensor | None) -> Tensor | float:
    return 0.0 if x is None else x


def _signed(size: float, z: Tensor) -> Tensor:
    """Return `size` with the sign of z, + at zero."""
    return torch.copysign(torch.full((), size, dtype=z.dtype, device=z.device), z.detach())


def _contributions(inputs: tuple[Tensor, ...], z: Tensor, share: Tensor) -> tuple[Tensor, ...]:
    gradients = pull_back(z, inputs, share, retain=True)
    return tuple(x.detach() * g for x, g in zip(inputs, gradients, strict=True))


def _spread_equally(affine: Affine, inputs: tuple[Tensor, ...], amount: Tensor) -> tuple[Tensor, ...]:
    """Divide an amount at every output equally among the inputs that feed it (padding is no input).

    An output that no input feeds, such as a window of padding alone, divides its amount among all inputs of its row.
    """
    with torch.enable_grad():
        ones = tuple(torch.ones_like(x).requires_grad_() for x in inputs)
        fan_in = affine.equally(ones)
    fed = fan_in.detach() != 0
    shares = pull_back(fan_in, ones, torch.where(fed, amount / fan_in.detach(), 0.0))
    if bool(fed.all()):
        return shares
    unfed = torch.where(fed, 0.0, amount).flatten(1).sum(1) / sum(x[0].numel() for x in inputs)
    return tuple(share + unfed.reshape(-1, *[1] * (share.dim() - 1)) for share in shares)


def _add(*terms: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(reduce(torch.add, parts) for parts in zip(*terms, strict=True))
