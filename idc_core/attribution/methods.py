"""Every way to say which part of an input decided, under one name and one call.

The rules of relevance propagation (`RULES`) and gradient methods run through captum share the registry `METHODS` and
the call `attribute`, so that menus, comparisons and the ranking of neurons need not know which is which.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.attribution import grad_cam, gradient_shap, gradients, occlusion, saliency  # noqa: F401 - they enter METHODS
from idc_core.attribution.registry import METHODS, MethodCard, attribution_method
from idc_core.base.parameters import Value
from idc_core.base.progress import Progress
from idc_core.errors import SettingError
from idc_core.lrp.captures import INPUT
from idc_core.tracing.neurons import Neuron, check_neuron

__all__ = ["METHODS", "MethodCard", "attribute", "attribute_layers", "attribution_method"]


def attribute(
    model: nn.Module,
    inputs: object,
    method: str,
    layer: str = INPUT,
    target: str | int | Iterable[int] = "predicted",
    *,
    of: Neuron | None = None,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
    **parameters: Value,
) -> NDArray[np.floating]:
    """Say how much each value of a layer contributed to a score, in the layer's shape (n, ...) and the network's dtype.

    As `idc_core.relevance`, by a `method` of `METHODS`, which describes the parameters of each. `layer` is its output
    after its activation function, or the "input"; of token inputs there is one number per token. With `of`, such as
    ``("fc2", 18)``, the activation of that hidden neuron is explained instead of a score.

    Raises
    ------
    ModelError, UnsupportedOperationError, DataError, SettingError
        If the layer does not exist, the method cannot follow an operation of the network, there are no inputs, or the
        method, a parameter or the target is none.
    """
    by_layer = attribute_layers(
        model, inputs, (layer,), method, target, of=of, batch_size=batch_size, on_progress=on_progress, **parameters
    )
    return by_layer[layer]


def attribute_layers(
    model: nn.Module,
    inputs: object,
    layers: Sequence[str],
    method: str,
    target: str | int | Iterable[int] = "predicted",
    *,
    of: Neuron | None = None,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
    **parameters: Value,
) -> dict[str, NDArray[np.floating]]:
    """Say how much each value of several layers contributed to a score, as `attribute`, in one array a layer."""
    entry = METHODS[method]
    settings: dict[str, object] = {**entry.settings(parameters)}
    if not entry.inside and any(layer != INPUT for layer in layers):
        raise SettingError(
            f"{entry.label} says what parts of the input contribute, and nothing of layers. Ask for {INPUT!r}, or "
            "choose another method."
        )
    if of is not None:
        if not entry.of_neurons:
            raise SettingError(
                f"{entry.label} explains scores, and no hidden neurons. Leave `of` out, or choose another method."
            )
        settings["of"] = check_neuron(of, target)
    return entry.run(model, inputs, tuple(layers), target, batch_size=batch_size, on_progress=on_progress, **settings)
