"""The registry of relevance rules: one decorated function adds a rule; menus, command line and docs list them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from idc_core.base.parameters import Parameter
from idc_core.base.registry import Registry
from idc_core.lrp.affine import Rule


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
    gradient_at_zero: bool = False  # whether its limit for an epsilon of 0 is what it does at 0
    kinds_only: bool = False  # whether it asks of a place for its kind alone


RULES: Registry[RuleCard] = Registry("relevance rule")
"""Rules by name, entered by `relevance_rule`."""

_Choose = TypeVar("_Choose", bound=Callable[..., Rule])


def relevance_rule(
    name: str,
    *,
    label: str,
    help: str,
    citation: str,
    parameters: tuple[Parameter, ...] = (),
    holds_weights: bool = False,
    gradient_at_zero: bool = False,
    kinds_only: bool = False,
) -> Callable[[_Choose], _Choose]:
    """Enter a rule into `RULES`.

    The decorated function is called with the `Place` of an operation, "absorb" or "redistribute", and a value for each
    parameter by its name. A place is the kind of the operation as a word ("dense", "convolution", "pooling",
    "sum" or "normalisation"), and knows the `module` it runs in and whether it is the `first` or the `last` dense
    operation or convolution. The function returns the rule for such operations: ``rule(affine, inputs, z,
    relevance_of_z) -> relevance of each input``. With `holds_weights` attention weights are constants, so that
    relevance flows through the values only. With `gradient_at_zero` it is the epsilon rule at every
    operation, and its limit with an `epsilon` of 0, in which relevance is a value times a gradient. With `kinds_only`
    it asks for the kind alone, which runs a little faster.
    """

    def enter(choose: _Choose) -> _Choose:
        traits = holds_weights, gradient_at_zero, kinds_only
        RULES.enter(name, RuleCard(name, label, help, citation, parameters, choose, *traits))
        return choose

    return enter
