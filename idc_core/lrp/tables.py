"""Tables of rules: which rule treats which operation, by module, place or kind, as a mapping or as one line of text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from idc_core.base.parameters import Number, is_number, settle, shown
from idc_core.errors import SettingError
from idc_core.lrp.affine import Place, Rule
from idc_core.lrp.layer_rules import LAYER_RULES, Bias, epsilon_rule, pass_rule

_KINDS = {
    "conv": "convolution",
    "convolution": "convolution",
    "linear": "dense",
    "dense": "dense",
    "norm": "normalisation",
    "normalisation": "normalisation",
    "pool": "pooling",
    "pooling": "pooling",
    "sum": "sum",
}
"""Words for kinds of operations."""

_SHORT = {kind: word for word, kind in reversed(_KINDS.items())}

_PLACES = ("first", "last")
_OTHER = "other"

_Spec = tuple[str, tuple[Number, ...]]

_EXAMPLE = "{'features.0': 'flat', 'conv': ('gamma', 0.25), 'linear': 'epsilon'}"


@dataclass(frozen=True)
class Table:
    """Rules by what they are for; of several that apply to an operation, that for its module counts most.

    Keys are names of modules (all operations in it; of several the longest), "first" and "last" (dense operations and
    convolutions with none of these before, or behind them), kinds ("conv", "linear", "norm", "pool", "sum"), and
    "other". What no key is for follows the epsilon rule; normalisations by fixed numbers pass relevance on.
    """

    rules: tuple[tuple[str, _Spec], ...]

    @classmethod
    def of(cls, given: Mapping[str, object] | str) -> Table:
        """Read a table; raises SettingError where it names no rule, or wrong values of one."""
        if not isinstance(given, str | Mapping):
            raise SettingError(f"Expected a table of rules such as {_EXAMPLE}, not {shown(given)}.")
        pairs = _pairs(given) if isinstance(given, str) else list(given.items())
        rules = tuple((_key(key), _spec(str(key), value)) for key, value in pairs)
        keys = [key for key, _ in rules]
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if not rules or twice is not None:
            raise SettingError(
                f"A table of rules {f'names {twice!r} twice' if rules else 'is empty'}; expected {_EXAMPLE}."
            )
        for _, (name, values) in rules:
            _make(name, values, "absorb")
        return cls(rules)

    def __str__(self) -> str:
        """Return the text that `of` reads again."""
        return ", ".join(
            f"{_SHORT.get(key, key)}: {' '.join((name, *map(repr, of)))}" for key, (name, of) in self.rules
        )

    @property
    def modules(self) -> tuple[str, ...]:
        """The names of modules among its keys."""
        return tuple(key for key, _ in self.rules if key not in (*_KINDS.values(), *_PLACES, _OTHER))

    @property
    def asks_where(self) -> bool:
        """Whether it asks more of an operation than its kind."""
        return bool(self.modules) or any(key in _PLACES for key, _ in self.rules)

    def choose(self, place: Place, bias: Bias) -> Rule:
        """Return the rule for an operation."""
        rules = dict(self.rules)
        within = [key for key in self.modules if place.module == key or place.module.startswith(f"{key}.")]
        places = [word for word in _PLACES if getattr(place, word)]
        for key in (*sorted(within, key=len, reverse=True), *places, str(place), _OTHER):
            if key in rules:
                return _make(*rules[key], bias)
        return pass_rule if place.fixed else epsilon_rule(1e-6, bias)


def _pairs(text: str) -> list[tuple[str, object]]:
    pairs: list[tuple[str, object]] = []
    for part in text.split(","):
        key, colon, rule = part.partition(":")
        name, *values = rule.split() or [""]
        if not colon or not key.strip():
            raise SettingError(f"A table of rules reads 'features.0: flat, conv: gamma 0.25', not {shown(text)}.")
        try:
            pairs.append((key.strip(), (name, *map(float, values))))
        except ValueError:
            raise SettingError(f"The rule for {key.strip()!r} has values that are no numbers: {shown(rule)}.") from None
    return pairs


def _key(key: object) -> str:
    if not isinstance(key, str) or not key or any(sign in key for sign in ",:") or key != key.strip():
        raise SettingError(f"A key of a table of rules is a module's name or a kind of operation, not {shown(key)}.")
    return _KINDS.get(key, key)


def _spec(key: str, value: object) -> _Spec:
    name, *values = (value,) if isinstance(value, str) else value if isinstance(value, tuple | list) else (None,)
    if not isinstance(name, str) or not all(is_number(number, -float("inf")) for number in values):
        raise SettingError(
            f"The rule for {key!r} must be a name, or a name and numbers, not {shown(value)}, as in {_EXAMPLE}."
        )
    rule = LAYER_RULES[name]
    if len(values) > len(rule.parameters):
        takes = ", ".join(parameter.name for parameter in rule.parameters) or "no values"
        raise SettingError(f"The rule {name!r} for {key!r} has {len(values)} values; it takes {takes}.")
    return name, tuple(values)


def _make(name: str, values: tuple[Number, ...], bias: Bias) -> Rule:
    rule = LAYER_RULES[name]
    given = {parameter.name: value for parameter, value in zip(rule.parameters, values, strict=False)}
    return rule.make(bias=bias, **settle(rule.parameters, given, f"the rule {name!r}"))
