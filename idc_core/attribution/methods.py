"""Every way to say which part of an input decided, under one name and one call.

The rules of relevance propagation (`RULES`) and gradient methods run through captum share the registry `METHODS` and
the call `attribute`, so that menus, comparisons and the ranking of neurons need not know which is which.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from numpy.typing import NDArray
from torch import nn

from idc_core.attribution import gradients
from idc_core.attribution.relevance import relevance
from idc_core.lrp.interception import INPUT
from idc_core.lrp.rules import RULES
from idc_core.parameters import Parameter, Value, settle
from idc_core.progress import Progress
from idc_core.registry import Registry

PARAMETERS: dict[str, Parameter] = {
    parameter.name: parameter
    for parameter in (
        Parameter(
            "epsilon",
            "Epsilon",
            "Damps sums that nearly cancel; larger values give sparser heatmaps.",
            1e-6,
            offered=(1e-9, 1e-6, 1e-3, 0.01, 0.1, 0.25, 1.0),
        ),
        Parameter(
            "gamma",
            "Gamma",
            "How much contributions of the output's own sign are favoured; 0 is LRP-0.",
            0.25,
            offered=(0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0),
        ),
        Parameter(
            "alpha",
            "Alpha",
            "Weight of supporting contributions; opposing ones weigh alpha - 1.",
            2.0,
            1.0,
            offered=(1.0, 1.5, 2.0, 3.0),
        ),
        Parameter(
            "bias",
            "Biases",
            "Whether a bias keeps its share of the relevance or spreads it over the inputs.",
            "absorb",
            offered=("absorb", "redistribute"),
        ),
        Parameter(
            "baseline",
            "Baseline",
            "Grey level of the picture that inputs are compared with, 0 black to 1 white; "
            "texts are compared with an empty text.",
            0.0,
            0.0,
            1.0,
            offered=(0.0, 0.25, 0.5, 0.75, 1.0),
        ),
        Parameter(
            "steps",
            "Steps",
            "Points on the way from the baseline to the input; more follow the score more closely.",
            50,
            2,
            1000,
            offered=(10, 20, 50, 100, 200),
        ),
    )
}
"""Parameters by name; a method names the ones it has."""

Run = Callable[..., dict[str, NDArray[Any]]]


@dataclass(frozen=True)
class MethodEntry:
    """What the registry knows of a method.

    Attributes
    ----------
    name, label, help : str
    parameters : tuple of str
        Keys of `PARAMETERS`.
    sums_to : str
        What the values of one layer add up to.
    citation : str
    run : callable
        (model, inputs, layers, target, batch_size=, on_progress=, **parameters) to {layer: array}.
    """

    name: str
    label: str
    help: str
    parameters: tuple[str, ...]
    sums_to: str
    citation: str
    run: Run

    def settings(self, given: dict[str, Any]) -> dict[str, Value]:
        """Return a value for each parameter: the given one, or its default.

        Raises
        ------
        SettingError
            If a parameter is not one of this method's, or its value is outside what it may be.
        """
        return settle([PARAMETERS[name] for name in self.parameters], given, self.label)


def _propagated(rule: str, *args: Any, **options: Any) -> dict[str, NDArray[Any]]:
    model, inputs, layers, target = args
    return relevance(model, inputs, layers, rule=rule, target=target, **options)


def _rules() -> Iterable[MethodEntry]:
    for rule in RULES.values():
        yield MethodEntry(
            rule.name,
            rule.label,
            rule.help,
            (*rule.parameters, "bias"),
            "the explained score, less what biases keep; exactly the score where biases are redistributed",
            rule.citation,
            partial(_propagated, rule.name),
        )


def _through_captum() -> Iterable[MethodEntry]:
    for method in gradients.GRADIENT_METHODS.values():
        yield MethodEntry(
            method.name,
            method.label,
            method.help,
            method.parameters,
            method.sums_to,
            method.citation,
            partial(gradients.run, method),
        )


METHODS: Registry[MethodEntry] = Registry(
    "attribution method", {entry.name: entry for entries in (_rules(), _through_captum()) for entry in entries}
)
"""Methods by name: the rules of relevance propagation first."""


def attribute(
    model: nn.Module,
    inputs: Any,
    method: str,
    layer: str = INPUT,
    target: str | int | Iterable[int] = "predicted",
    *,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
    **parameters: Value,
) -> NDArray[Any]:
    """Say how much each value of a layer contributed to a score.

    Parameters
    ----------
    model : Module
        Left as it was found: training flags, ``requires_grad``, hooks.
    inputs : Tensor, array or Dataset, (n, ...)
        What the network reads.
    method : str
        A name from `METHODS`.
    layer : str
        A name from ``named_modules()``, meaning its output after its activation function, or "input".
    target : "predicted", int, or int of shape (n,)
        The class whose score before the softmax is explained.
    batch_size : int, optional
        Inputs at a time; default: chosen from the network's size.
    on_progress : Progress, optional
        Called after every batch.
    **parameters
        The method's own, by their names in `PARAMETERS`.

    Returns
    -------
    ndarray, (n, ...)
        In the layer's shape and the network's dtype, in the unit of a score; of token inputs one number a token.

    Raises
    ------
    ModelError
        If the layer does not exist, or the network does not return scores.
    UnsupportedOperationError
        If the method cannot follow an operation of the network.
    DataError
        If there are no inputs.
    SettingError
        If the method, a parameter or the target is none.
    """
    found = attribute_layers(
        model, inputs, (layer,), method, target, batch_size=batch_size, on_progress=on_progress, **parameters
    )
    return found[layer]


def attribute_layers(
    model: nn.Module,
    inputs: Any,
    layers: Sequence[str],
    method: str,
    target: str | int | Iterable[int] = "predicted",
    *,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
    **parameters: Value,
) -> dict[str, NDArray[Any]]:
    """Say how much each value of several layers contributed to a score.

    Parameters
    ----------
    layers : sequence of str
        Names of layers, as in `attribute`. Relevance propagation serves all of them in one backward pass; the other
        methods take one pass a layer.
    model, inputs, method, target, batch_size, on_progress, **parameters
        As in `attribute`.

    Returns
    -------
    dict of str to ndarray, (n, ...)

    Raises
    ------
    ModelError, UnsupportedOperationError, DataError, SettingError
        As `attribute`.
    """
    entry = METHODS[method]
    settings = entry.settings(parameters)
    return entry.run(model, inputs, tuple(layers), target, batch_size=batch_size, on_progress=on_progress, **settings)
