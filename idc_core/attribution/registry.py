"""The registry of attribution methods: the rules of relevance propagation, and what `attribution_method` enters."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.attribution.relevance import relevance
from idc_core.base.parameters import Parameter, Value, settle
from idc_core.base.registry import Registry
from idc_core.errors import SettingError
from idc_core.lrp.rules import BIAS, RULES, RuleCard


@dataclass(frozen=True)
class MethodCard:
    """What is known of an attribution method."""

    name: str
    label: str
    help: str
    parameters: tuple[Parameter, ...]
    sums_to: str  # what the values of one layer add up to
    citation: str
    run: Callable[..., dict[str, NDArray[np.floating]]]
    """``run(model, inputs, layers, target, batch_size=, on_progress=, **parameters) -> {layer: array}``."""
    inside: bool = True  # whether layers of the network get values, not its input alone
    of_neurons: bool = False  # whether `run` takes ``of=(layer, neuron)``, explained instead of a score

    def settings(self, given: Mapping[str, object]) -> dict[str, Value]:
        """Return a value for each parameter: the given one, checked, or its default."""
        return settle(self.parameters, given, self.label)


class _Methods(Mapping[str, MethodCard]):
    """Attribution methods by name; a rule is one as soon as it is in `RULES`. An unknown name raises `SettingError`."""

    def __init__(self) -> None:
        self.entered: Registry[MethodCard] = Registry("attribution method")

    def __getitem__(self, name: str) -> MethodCard:
        if name in RULES:
            return _propagation(RULES[name])
        if name in self.entered:
            return self.entered[name]
        raise SettingError(f"Unknown attribution method {name!r}: expected one of {', '.join(self)}.")

    def __contains__(self, name: object) -> bool:
        return name in RULES or name in self.entered

    def __iter__(self) -> Iterator[str]:
        return chain(RULES, self.entered)

    def __len__(self) -> int:
        return len(RULES) + len(self.entered)


METHODS = _Methods()
"""Methods by name: the rules of relevance propagation first."""

_Run = TypeVar("_Run", bound=Callable[..., dict[str, NDArray[np.floating]]])


def attribution_method(
    name: str,
    *,
    label: str,
    help: str,
    sums_to: str,
    citation: str,
    parameters: tuple[Parameter, ...] = (),
    inside: bool = True,
    of_neurons: bool = False,
) -> Callable[[_Run], _Run]:
    """Enter a method into `METHODS`; the decorated function is `MethodCard.run`."""

    def enter(run: _Run) -> _Run:
        card = MethodCard(name, label, help, parameters, sums_to, citation, run, inside, of_neurons)
        METHODS.entered.enter(name, card)
        return run

    return enter


@cache
def _propagation(rule: RuleCard) -> MethodCard:
    return MethodCard(
        rule.name,
        rule.label,
        rule.help,
        (*rule.parameters, BIAS),
        "the explained score minus what biases absorb; exactly the score where biases are redistributed",
        rule.citation,
        partial(_propagate, rule.name),
        of_neurons=True,
    )


def _propagate(
    rule: str,
    model: nn.Module,
    inputs: object,
    layers: Sequence[str],
    target: str | int | Iterable[int],
    **options: Any,
) -> dict[str, NDArray[np.floating]]:
    return relevance(model, inputs, layers, rule=rule, target=target, **options)
