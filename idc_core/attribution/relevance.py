"""Layer-wise relevance of inputs: which neurons, pixels and words a decision came from."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.lrp.rules import RelevanceSettings
from idc_core.progress import Progress
from idc_core.tracing.batching import Inputs
from idc_core.tracing.trace import trace


def relevance(
    model: nn.Module,
    inputs: Inputs,
    layers: Sequence[str],
    rule: str | RelevanceSettings = "epsilon",
    epsilon: float | None = None,
    target: str | int | Iterable[int] = "predicted",
    *,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
    **parameters: Any,
) -> dict[str, NDArray[Any]]:
    """Layer-wise relevance of inputs, in each layer's own shape.

    Parameters
    ----------
    model : Module
        Any network that returns scores of shape (n, classes), before or after a softmax.
    inputs : Tensor, array, Dataset or iterable of batches, (n, ...)
        What the network reads.
    layers : sequence of str
        Names from ``named_modules()``; "input" gives the heatmap. Token inputs: one number per token.
    rule : str or RelevanceSettings
        How an output's relevance is shared among its inputs: "z", "epsilon", "gamma", "alpha-beta", "composite" or
        another name from `RULES`, which describes each.
    epsilon : float, optional
        Stabiliser of the epsilon rule and the composite; default 1e-6.
    target : "predicted", int, or int of shape (n,)
        The class whose score before the softmax is explained.
    batch_size : int, optional
        Default: chosen from the network's size.
    on_progress : Progress, optional
        Called after every batch.
    **parameters
        The rule's others, such as `gamma` (default 0.25) or `alpha` (2), and `bias`: "absorb" (default) or
        "redistribute", with which every layer sums to the start score. See `RelevanceSettings`.

    Returns
    -------
    dict of str to ndarray, (n, ...)
        In the network's dtype. The unit is that of a score. A layer's relevance is that of its output; activation
        functions pass it on unchanged, so before and after them are the same.

    Raises
    ------
    ModelError, UnsupportedOperationError, DataError, SettingError
        As `idc_core.tracing.trace.trace`; each says what was expected and what came.

    Notes
    -----
    Equation 1 of Gerasimou et al. (ICSE 2020); one backward pass serves all layers and ends at the earliest of them.
    Where a max pooling ties, the winners share equally. A layer that runs several times gets the sum over its uses.
    An output that the network also uses without its activation function is taken before that function.
    """
    settings = RelevanceSettings.of(rule, epsilon=epsilon, **parameters)
    layers = (layers,) if isinstance(layers, str) else tuple(layers)
    found: dict[str, list[NDArray[Any]]] = {layer: [] for layer in layers}
    batches = trace(model, inputs, layers, settings, target=target, batch_size=batch_size, on_progress=on_progress)
    for batch in batches:
        for layer, value in batch.relevance.items():
            found[layer].append(value.cpu().numpy())
    return {layer: np.concatenate(parts) for layer, parts in found.items()}
