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

import sys
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from idc_core.errors import SettingError
from idc_core.limits import EPSILON
from idc_core.lrp.affine import Kind, Place, Rule
from idc_core.lrp.layer_rules import ALPHA, GAMMA, Bias, alpha_beta_rule, epsilon_rule, gamma_rule, pass_rule
from idc_core.lrp.places import ChosenLater
from idc_core.lrp.tables import Table, table_of
from idc_core.parameters import Parameter, Value, settle, shown
from idc_core.registry import Registry

FAINT = 1e-30
"""Keeps z / z defined where activations are as small as those of attention over many positions."""

BIAS = Parameter(
    "bias",
    "Biases",
    "Whether a bias keeps its share of the relevance or spreads it over the inputs.",
    "absorb",
    offered=("absorb", "redistribute"),
)
"""Every rule has it; "redistribute" is footnote 1 of [3]: every layer sums to the start score."""

_STABILISER = Parameter(
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
    choose: Callable[..., Rule]  # ``choose(place, bias, **parameters)`` gives the `Rule` for an operation
    holds_weights: bool = False  # whether what a softmax gives inside the network is held constant
    kinds_only: bool = False  # whether it asks of a place for its kind alone
    home: str = ""  # of a table that a person has named: the file


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
    kinds_only: bool = False,
) -> Callable[[Choose], Choose]:
    """Enter a rule into `RULES`.

    The decorated function is called with the `Place` of an operation, "absorb" or "redistribute", and a value for each
    parameter by its name. A place is the kind of the operation as a word ("dense", "convolution", "pooling",
    "sum" or "normalisation"), and knows the `module` it runs in and whether it is the `first` or the `last` dense
    operation or convolution. The function returns the rule for such operations: ``rule(affine, inputs, z,
    relevance_of_z) -> relevance of each input``. With `holds_weights` attention weights are constants, so that
    relevance flows through the values only. With `kinds_only` it asks for the kind alone, which runs a little faster.
    """

    def enter(choose: Choose) -> Choose:
        RULES.enter(name, RuleCard(name, label, help, citation, parameters, choose, holds_weights, kinds_only))
        return choose

    return enter


def composite(
    name: str, table: Mapping[str, Any] | str, *, label: str = "", help: str = "", citation: str = ""
) -> None:
    """Enter a table of rules into `RULES` under a name of its own, for menus, the command line and checks.

    Parameters
    ----------
    name : str
        What it is called wherever a rule is named. A file that is read again replaces its own.
    table : mapping or str
        As `RelevanceSettings` takes it: ``{"first": "flat", "conv": ("gamma", 0.25), "linear": "epsilon"}``.
    label, help, citation : str, optional
        What menus show; by default the name and the table.

    Raises
    ------
    SettingError
        If the name is taken, or the table names no rule or wrong values of one.
    """
    if not isinstance(name, str) or not name:
        raise SettingError(f"A composite needs a name as text, not {shown(name)}.")
    found = Table.of(table)
    home = sys._getframe(1).f_code.co_filename
    if name in RULES and RULES[name].home == home:
        del RULES[name]
    card = RuleCard(name, label or name, help or f"{found}.", citation, (), found.choose)
    RULES.enter(name, replace(card, kinds_only=not found.asks_where, home=home))


def _card_of(rule: str) -> RuleCard:
    """Return the card of a rule by its name, or of a table by its text."""
    if rule not in RULES and ":" in rule:
        table = table_of(rule)
        return RuleCard(rule, rule, f"{rule}.", "", (), table.choose, kinds_only=not table.asks_where)
    return RULES[rule]


@dataclass(frozen=True, init=False)
class RelevanceSettings:
    """How relevance is propagated.

    Parameters
    ----------
    rule : str or mapping
        A name from `RULES`, or a table of rules for single operations (`LAYER_RULES`), such as ``{"features.0": "flat",
        "conv": ("gamma", 0.25), "linear": "epsilon"}`` or the same as text, ``"features.0: flat, conv: gamma 0.25,
        linear: epsilon"``: docs/RULES.md.
    **parameters
        Values of the rule's parameters, such as `epsilon`, `gamma` or `alpha`, and `bias`: "absorb" keeps the bias's
        share of the relevance, "redistribute" spreads it equally over the inputs, so that every layer sums to the
        start score (footnote 1 of [3]). What is not given, or None, has its default. Parameters of other rules are
        checked and not used.

    Attributes
    ----------
    rule : str
        The name, or the table as text.
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

    def __init__(self, rule: str | Mapping[str, Any] = "epsilon", **parameters: Any) -> None:
        if not isinstance(rule, str | Mapping):
            raise SettingError(f"rule must be the name of a rule, a table, or RelevanceSettings, not {shown(rule)}.")
        if isinstance(rule, Mapping) or (rule not in RULES and ":" in rule):
            rule = str(Table.of(rule))
        own = {parameter.name: parameter for parameter in (*_card_of(rule).parameters, BIAS)}
        known = {parameter.name: parameter for card in RULES.values() for parameter in card.parameters} | own
        given = {name: value for name, value in parameters.items() if value is not None}
        values = settle(list(known.values()), given, "a relevance rule")
        object.__setattr__(self, "rule", rule)
        object.__setattr__(self, "bias", values.pop(BIAS.name))
        object.__setattr__(self, "values", tuple((name, value) for name, value in values.items() if name in own))

    @classmethod
    def of(cls, rule: "NamedRule", **parameters: Any) -> "RelevanceSettings":
        """Return the settings of a rule with these parameters, or the settings that are given instead of a rule."""
        if not isinstance(rule, RelevanceSettings):
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
        return _card_of(self.rule).holds_weights

    @property
    def asks_where(self) -> bool:
        """Whether the rule asks more of an operation than its kind."""
        return not _card_of(self.rule).kinds_only

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules that the rule names."""
        table = getattr(_card_of(self.rule).choose, "__self__", None)
        return table.modules if isinstance(table, Table) else ()

    def at(self, module: str, first: bool) -> "RelevanceSettings":
        """Return the same for the operations of one call in a module; `first`: no weights are before it."""
        found = copy(self)
        found.__dict__["_where"] = {"module": module, "first": first}
        return found

    def rule_for(self, kind: Kind, fixed: bool = False) -> Rule:
        """Return the rule that treats operations of this kind, here."""
        place = Place(kind, fixed, **self.__dict__.get("_where", {}))
        choose = partial(_card_of(self.rule).choose, bias=self.bias, **dict(self.values))
        return ChosenLater(place, choose) if self.asks_where else choose(place)


NamedRule = str | Mapping[str, Any] | RelevanceSettings
"""How a rule is named: by its name, as a table, or with its parameters."""


def _normalised(place: Place, bias: Bias) -> Rule:
    """Return what rules that treat signs apart do at a normalisation that no linear operation takes in."""
    return pass_rule if place.fixed else epsilon_rule(0.0, bias)


@relevance_rule(
    "z",
    label="LRP-0 (z)",
    help="Each input's share is exactly its contribution; noisy where a sum nearly cancels.",
    citation="Bach et al. 2015, eq. 56",
    kinds_only=True,
)
def _z(place: Place, bias: Bias) -> Rule:
    return epsilon_rule(0.0, bias)


@relevance_rule(
    "epsilon",
    label="LRP-epsilon",
    help="The paper's rule: contributions, damped by epsilon where a sum nearly cancels.",
    citation="Gerasimou et al. 2020, eq. 1; Bach et al. 2015, eq. 58",
    parameters=(EPSILON,),
    kinds_only=True,
)
def _epsilon(place: Place, bias: Bias, epsilon: float) -> Rule:
    return epsilon_rule(epsilon, bias)


@relevance_rule(
    "gamma",
    label="LRP-gamma",
    help="Favours contributions that support the output; smoother heatmaps.",
    citation="Montavon et al. 2019",
    parameters=(GAMMA,),
    kinds_only=True,
)
def _gamma(place: Place, bias: Bias, gamma: float) -> Rule:
    return _normalised(place, bias) if place == "normalisation" else gamma_rule(gamma, bias)


@relevance_rule(
    "alpha-beta",
    label="LRP-alpha-beta",
    help="Treats supporting and opposing contributions apart, weighted alpha and alpha - 1.",
    citation="Bach et al. 2015, eq. 60",
    parameters=(ALPHA,),
    kinds_only=True,
)
def _alpha_beta(place: Place, bias: Bias, alpha: float) -> Rule:
    return _normalised(place, bias) if place == "normalisation" else alpha_beta_rule(alpha, bias)


@relevance_rule(
    "composite",
    label="LRP composite",
    help="Gamma for convolutions, epsilon for everything else: the usual choice for convolutional networks.",
    citation="Montavon et al. 2019",
    parameters=(EPSILON, GAMMA),
    kinds_only=True,
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
    parameters=(_STABILISER,),
    kinds_only=True,
)
def _attnlrp(place: Place, bias: Bias, epsilon: float) -> Rule:
    return epsilon_rule(epsilon, bias, FAINT)


@relevance_rule(
    "value-path",
    label="LRP value path",
    help="For transformers: attention weights are held constant, and relevance passes through the values only.",
    citation="Ali et al. 2022",
    parameters=(_STABILISER,),
    holds_weights=True,
    kinds_only=True,
)
def _value_path(place: Place, bias: Bias, epsilon: float) -> Rule:
    return epsilon_rule(epsilon, bias, FAINT)
