"""How relevance is propagated: a rule by its name, or a table of rules for single operations, with its parameters."""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache, partial

from torch import Tensor

from idc_core.base.parameters import Parameter, Value, settle, shown
from idc_core.errors import SettingError
from idc_core.lrp import basic_rules, composites  # noqa: F401 - they enter their rules, in the order of menus
from idc_core.lrp.affine import Affine, Kind, Place, Rule
from idc_core.lrp.layer_rules import Bias
from idc_core.lrp.rule_registry import RULES as RULES
from idc_core.lrp.rule_registry import RuleCard as RuleCard
from idc_core.lrp.rule_registry import relevance_rule as relevance_rule
from idc_core.lrp.tables import Table

BIAS = Parameter(
    "bias",
    "Biases",
    "Whether a bias keeps its share of the relevance or spreads it over the inputs, as IDC's paper does (footnote 1).",
    "absorb",
    offered=("absorb", "redistribute"),
)
"""Every rule has it; "redistribute" is footnote 1 of the paper: every layer sums to the start score."""


def composite(
    name: str, table: Mapping[str, object] | str, *, label: str = "", help: str = "", citation: str = ""
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
    rules = Table.of(table)
    card = RuleCard(name, label or name, help or f"{rules}.", citation, (), rules.choose)
    RULES.enter(name, replace(card, kinds_only=not rules.asks_where))


@cache
def _table_of(text: str) -> Table:
    """Return the table that a text says."""
    return Table.of(text)


def _card_of(rule: str) -> RuleCard:
    """Return the card of a rule by its name, or of a table by its text."""
    if rule not in RULES and ":" in rule:
        table = _table_of(rule)
        return RuleCard(rule, rule, f"{rule}.", "", (), table.choose, kinds_only=not table.asks_where)
    return RULES[rule]


@lru_cache(64)
def _chosen(
    choose: Callable[..., Rule], kind: Kind, fixed: bool, bias: Bias, values: tuple[tuple[str, Value], ...]
) -> Rule:
    """Return the rule for all operations of a kind."""
    return choose(Place(kind, fixed), bias=bias, **dict(values))


class _ChosenLater:
    """A rule that is chosen on the way back, when it is known what is behind the operation."""

    def __init__(self, place: Place, choose: Callable[[Place], Rule]) -> None:
        self.place, self._choose = place, choose

    def __call__(self, affine: Affine, inputs: tuple[Tensor, ...], z: Tensor, relevance: Tensor) -> tuple[Tensor, ...]:
        """Share the relevance by the rule for the place."""
        return self._choose(self.place)(affine, inputs, z, relevance)


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
        start score (the paper's footnote 1). What is not given, or None, has its default. Parameters of other rules are
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

    def __init__(self, rule: str | Mapping[str, object] = "epsilon", **parameters: object) -> None:
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
    def of(cls, rule: "NamedRule", **parameters: object) -> "RelevanceSettings":
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

    @cached_property
    def as_gradient(self) -> bool:
        """Whether the relevance of a value is the value times a gradient.

        So it is where nothing is damped and no bias is spread: what goes back through the network then is relevance /
        value, and neither is divided by the output nor multiplied by the input at every operation.
        """
        undamped = _card_of(self.rule).gradient_at_zero and dict(self.values)["epsilon"] == 0
        return undamped and self.bias == "absorb"

    def for_pass(self) -> "RelevanceSettings":
        """Return the same with a list of its own for what one pass loses as a gradient."""
        settings = copy(self)
        settings.__dict__["_lost"] = []
        return settings

    @property
    def lost(self) -> list[Tensor]:
        """Of each function that a pass met, whether it was given a 0 and made another number of it, bool ().

        Such a value times a gradient is 0, whatever relevance came to it. Outside of a pass nothing is kept.
        """
        lost: list[Tensor] = self.__dict__.get("_lost", [])
        return lost

    def by_relevance(self) -> "RelevanceSettings":
        """Return the same for a network whose values and relevances cannot be told from each other by a gradient."""
        settings = copy(self)
        settings.__dict__["as_gradient"] = False
        return settings

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
        settings = copy(self)
        settings.__dict__["_where"] = {"module": module, "first": first}
        return settings

    def rule_for(self, kind: Kind, fixed: bool = False) -> Rule:
        """Return the rule that treats operations of this kind, here."""
        card = _card_of(self.rule)
        if card.kinds_only:
            return _chosen(card.choose, kind, fixed, self.bias, self.values)
        place = Place(kind, fixed, **self.__dict__.get("_where", {}))
        return _ChosenLater(place, partial(card.choose, bias=self.bias, **dict(self.values)))


NamedRule = str | Mapping[str, object] | RelevanceSettings
"""How a rule is named: by its name, as a table, or with its parameters."""
