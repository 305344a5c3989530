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
.. [5] R. Achtibat, S. M. V. Hatefi, M. Dreyer, A. Jain, T. Wiegand, S. Lapuschkin, W. Samek, "AttnLRP:
   Attention-aware layer-wise relevance propagation for transformers", ICML 2024.
.. [6] A. Ali, T. Schnake, O. Eberle, G. Montavon, K.-R. Müller, L. Wolf, "XAI for transformers: better explanations
   through conservative propagation", ICML 2022.

Notes
-----
Rules differ at operations that are affine in the input. What transformers have beside those is the same for every rule
and as in [5]: products of two activations divide their relevance equally between the factors, a softmax is expanded to
first order, element-wise functions hand their relevance on. `value-path` alone takes softmax weights as constants [6].
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor

from idc_core.errors import SettingError
from idc_core.limits import EPSILON
from idc_core.lrp.affine import Affine, Kind, Place, Rule
from idc_core.lrp.contributions import SignedContributions, add, contributions, or_zero, spread_equally
from idc_core.lrp.quotients import point_by_point, quotient, signed
from idc_core.parameters import Parameter, Value, settle
from idc_core.registry import Registry

TINY = 1e-16
"""Keeps z / z defined at z = 0; the stabiliser that the original program uses for its plain rule."""

FAINT = 1e-30
"""The same where activations are as small as those of attention over many positions."""

Bias = Literal["absorb", "redistribute"]


BIAS = Parameter(
    "bias",
    "Biases",
    "Whether a bias keeps its share of the relevance or spreads it over the inputs.",
    "absorb",
    offered=("absorb", "redistribute"),
)
"""Every rule has it; "redistribute" is footnote 1 of [3]: every layer sums to the start score."""

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


STABILISER = Parameter(
    "epsilon",
    "Epsilon",
    "Damps sums that nearly cancel; 0 is the published rule, gradient times input in its limit.",
    0.0,
    offered=(0.0, 1e-9, 1e-6, 1e-3, 0.01, 0.1),
)


@dataclass(frozen=True)
class RuleCard:
    """What menus, the command line and the propagation know of a rule."""

    name: str
    label: str
    help: str
    citation: str
    parameters: tuple[Parameter, ...]  # its own; `BIAS` comes with every rule
    choose: Callable[..., Rule]  # ``choose(kind, bias, **parameters)`` gives the `Rule` for a kind of operation
    holds_weights: bool = False  # whether what a softmax gives inside the network is held constant


RULES: Registry[RuleCard] = Registry("relevance rule")
"""Rules by name, entered by `relevance_rule`."""

Choose = TypeVar("Choose", bound=Callable[..., Rule])


def relevance_rule(
    name: str,
    *,
    label: str,
    help: str,
    citation: str,
    parameters: tuple[Parameter, ...] = (),
    holds_weights: bool = False,
) -> Callable[[Choose], Choose]:
    """Enter a rule into `RULES`.

    The decorated function is called with the kind of an operation ("dense", "convolution", "pooling", "sum" or
    "normalisation"), with "absorb" or "redistribute", and with a value for each parameter by its name. It returns the
    rule for such operations: ``rule(affine, inputs, z, relevance_of_z) -> relevance of each input``. With
    `holds_weights` attention weights are constants, so that relevance flows through the values only.
    """

    def enter(choose: Choose) -> Choose:
        RULES.enter(name, RuleCard(name, label, help, citation, parameters, choose, holds_weights))
        return choose

    return enter


@dataclass(frozen=True, init=False)
class RelevanceSettings:
    """How relevance is propagated.

    Parameters
    ----------
    rule : str
        A name from `RULES`.
    **parameters
        Values of the rule's parameters, such as `epsilon`, `gamma` or `alpha`, and `bias`: "absorb" keeps the bias's
        share of the relevance, "redistribute" spreads it equally over the inputs, so that every layer sums to the
        start score (footnote 1 of [3]). What is not given, or None, has its default. Parameters of other rules are
        checked and not used.

    Attributes
    ----------
    rule : str
    values : tuple of (str, value)
        A value for each parameter of the rule, by name.
    bias : {"absorb", "redistribute"}

    Raises
    ------
    SettingError
        If the rule is unknown, no rule has such a parameter, or a value is outside its range.
    """

    rule: str
    values: tuple[tuple[str, Value], ...]
    bias: Bias

    def __init__(self, rule: str = "epsilon", **parameters: Any) -> None:
        own = {parameter.name: parameter for parameter in (*RULES[rule].parameters, BIAS)}
        known = {parameter.name: parameter for card in RULES.values() for parameter in card.parameters} | own
        given = {name: value for name, value in parameters.items() if value is not None}
        values = settle(list(known.values()), given, "a relevance rule")
        object.__setattr__(self, "rule", rule)
        object.__setattr__(self, "bias", values.pop(BIAS.name))
        object.__setattr__(self, "values", tuple((name, value) for name, value in values.items() if name in own))

    @classmethod
    def of(cls, rule: "str | RelevanceSettings", **parameters: Any) -> "RelevanceSettings":
        """Return the settings of a rule with these parameters, or the settings that are given instead of a rule."""
        if isinstance(rule, str):
            return cls(rule, **parameters)
        given = [name for name, value in parameters.items() if value is not None]
        if given:
            raise SettingError(f"{given[0]} belongs into the RelevanceSettings that are given as the rule.")
        return rule

    def as_dict(self) -> dict[str, Value]:
        """Return rule, parameters and bias by name."""
        return {"rule": self.rule, **dict(self.values), "bias": self.bias}

    @property
    def holds_weights(self) -> bool:
        """Whether attention weights are constants."""
        return RULES[self.rule].holds_weights

    def rule_for(self, kind: Kind, fixed: bool = False) -> Rule:
        """Return the rule that treats operations of this kind."""
        return RULES[self.rule].choose(Place(kind, fixed), self.bias, **dict(self.values))


def epsilon_rule(epsilon: float, bias: Bias, least: float = TINY) -> Rule:
    """R_i = sum_j x_i w_ij R_j / (z_j + epsilon sign z_j), with sign 0 = +1 (equation 1 of [3], eq. 58 of [1])."""
    size = max(epsilon, least)

    def rule(affine: Affine, inputs: tuple[Tensor, ...], z: Tensor, relevance: Tensor) -> tuple[Tensor, ...]:
        if affine.pointwise and bias == "absorb":
            return point_by_point(inputs, affine.weight, z.detach(), relevance, size)
        share = quotient(relevance, z.detach(), size)
        shares = contributions(affine, inputs, z, share)
        if bias == "redistribute":
            lost = signed(size, z) + or_zero(affine.offset)
            shares = add(shares, spread_equally(affine, inputs, share * lost))
        return shares

    return rule


def gamma_rule(gamma: float, bias: Bias) -> Rule:
    """R_i = sum_j (x_i w_ij + gamma c_ij) R_j / (their sum), c_ij what of x_i w_ij has the sign of z_j ([2], [4])."""

    def rule(affine: Affine, inputs: tuple[Tensor, ...], z: Tensor, relevance: Tensor) -> tuple[Tensor, ...]:
        shares: tuple[Tensor, ...] = tuple(torch.zeros_like(x) for x in inputs)
        for positive in (True, False):
            chosen = z.detach() >= 0 if positive else z.detach() < 0
            part = SignedContributions(affine, inputs, positive)
            denominator = z.detach() + gamma * part.total
            stabiliser = signed(TINY, denominator)
            share = torch.where(chosen, relevance / (denominator + stabiliser), 0.0)
            shares = add(shares, contributions(affine, inputs, z, share), part.contributions(gamma * share))
            if bias == "redistribute":
                lost = stabiliser + gamma * part.offset
                shares = add(shares, spread_equally(affine, inputs, share * (lost + or_zero(affine.offset))))
        return shares

    return rule


def alpha_beta_rule(alpha: float, bias: Bias) -> Rule:
    """R_i = sum_j (alpha z+_ij / z+_j - beta z-_ij / z-_j) R_j with beta = alpha - 1 (equation 60 of [1]).

    An output that has contributions of one sign only would gain or lose relevance under the equation. Where no bias
    takes part (the operation has none, or its share is redistributed), the sign that exists takes all of it.
    """

    def rule(affine: Affine, inputs: tuple[Tensor, ...], z: Tensor, relevance: Tensor) -> tuple[Tensor, ...]:
        parts = SignedContributions(affine, inputs, True), SignedContributions(affine, inputs, False)
        free = True if bias == "redistribute" or affine.offset is None else affine.offset == 0
        empty = [(part.total == 0) & free for part in parts]
        weights = [torch.where(empty[1], 1.0, alpha) * ~empty[0], torch.where(empty[0], 1.0, 1.0 - alpha) * ~empty[1]]
        shares: tuple[Tensor, ...] = tuple(torch.zeros_like(x) for x in inputs)
        for part, weight, sign in zip(parts, weights, (1.0, -1.0), strict=True):
            share = weight * relevance / (part.total + sign * TINY)
            shares = add(shares, part.contributions(share))
            if bias == "redistribute":
                shares = add(shares, spread_equally(affine, inputs, share * part.offset))
        if bias == "redistribute":
            nothing = (parts[0].total == 0) & (parts[1].total == 0)
            if bool(nothing.any()):
                shares = add(shares, spread_equally(affine, inputs, torch.where(nothing, relevance, 0.0)))
        return shares

    return rule


def pass_rule(affine: Affine, inputs: tuple[Tensor, ...], z: Tensor, relevance: Tensor) -> tuple[Tensor, ...]:
    """R_i = R_j with i = j: the relevance of an operation with one input of its result's shape passes unchanged."""
    return (relevance,)


def _normalised(place: Place, bias: Bias) -> Rule:
    """Return what rules that treat signs apart do at a normalisation that no linear operation takes in."""
    return pass_rule if place.fixed else epsilon_rule(0.0, bias)


@relevance_rule(
    "z",
    label="LRP-0 (z)",
    help="Each input's share is exactly its contribution; noisy where a sum nearly cancels.",
    citation="Bach et al. 2015, eq. 56",
)
def _z(place: Place, bias: Bias) -> Rule:
    return epsilon_rule(0.0, bias)


@relevance_rule(
    "epsilon",
    label="LRP-epsilon",
    help="The paper's rule: contributions, damped by epsilon where a sum nearly cancels.",
    citation="Gerasimou et al. 2020, eq. 1; Bach et al. 2015, eq. 58",
    parameters=(EPSILON,),
)
def _epsilon(place: Place, bias: Bias, epsilon: float) -> Rule:
    return epsilon_rule(epsilon, bias)


@relevance_rule(
    "gamma",
    label="LRP-gamma",
    help="Favours contributions that support the output; smoother heatmaps.",
    citation="Montavon et al. 2019",
    parameters=(GAMMA,),
)
def _gamma(place: Place, bias: Bias, gamma: float) -> Rule:
    return _normalised(place, bias) if place == "normalisation" else gamma_rule(gamma, bias)


@relevance_rule(
    "alpha-beta",
    label="LRP-alpha-beta",
    help="Treats supporting and opposing contributions apart, weighted alpha and alpha - 1.",
    citation="Bach et al. 2015, eq. 60",
    parameters=(ALPHA,),
)
def _alpha_beta(place: Place, bias: Bias, alpha: float) -> Rule:
    return _normalised(place, bias) if place == "normalisation" else alpha_beta_rule(alpha, bias)


@relevance_rule(
    "composite",
    label="LRP composite",
    help="Gamma for convolutions, epsilon for everything else: the usual choice for convolutional networks.",
    citation="Montavon et al. 2019",
    parameters=(EPSILON, GAMMA),
)
def _composite(place: Place, bias: Bias, epsilon: float, gamma: float) -> Rule:
    if place == "convolution":
        return gamma_rule(gamma, bias)
    return pass_rule if place.fixed else epsilon_rule(epsilon, bias)


@relevance_rule(
    "attnlrp",
    label="AttnLRP",
    help="The usual rule for transformers: contributions, with attention followed through queries, keys and values.",
    citation="Achtibat et al. 2024",
    parameters=(STABILISER,),
)
def _attnlrp(place: Place, bias: Bias, epsilon: float) -> Rule:
    return epsilon_rule(epsilon, bias, FAINT)


@relevance_rule(
    "value-path",
    label="LRP value path",
    help="For transformers: attention weights are held constant, and relevance passes through the values only.",
    citation="Ali et al. 2022",
    parameters=(STABILISER,),
    holds_weights=True,
)
def _value_path(place: Place, bias: Bias, epsilon: float) -> Rule:
    return epsilon_rule(epsilon, bias, FAINT)
