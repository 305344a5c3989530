"""Layer-wise relevance of inputs: which neurons, pixels and words a decision came from."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.attribution.digits import said_lost
from idc_core.base.progress import Progress
from idc_core.errors import DataError
from idc_core.lrp.explained import Explain, explaining
from idc_core.lrp.rules import NamedRule, RelevanceSettings
from idc_core.lrp.session import layer_names, lock_of
from idc_core.tracing.neurons import Neuron, first_unsound
from idc_core.tracing.sources import Inputs, is_array, whole
from idc_core.tracing.trace import trace
from idc_core.tracing.transfers import brought_back


def relevance(
    model: nn.Module,
    inputs: Inputs,
    layers: Sequence[str],
    rule: NamedRule = "epsilon",
    epsilon: float | None = None,
    target: str | int | Iterable[int] = "predicted",
    *,
    explain: Explain | None = None,
    of: Neuron | None = None,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
    **parameters: object,
) -> dict[str, NDArray[np.floating]]:
    """Layer-wise relevance of inputs, in each layer's own shape.

    Parameters
    ----------
    model : Module
        Any network that returns scores of shape (n, classes), before or after a softmax, alone or in a dictionary,
        record or tuple (under a name such as "logits", else the first tensor); of other shapes see `explain`.
    inputs : Tensor, array, Dataset or iterable of batches, (n, ...)
        What the network reads. Of several inputs a mapping from their names to arrays with equal rows, the main one
        first: relevance of "input" is that of the first, the others are constants.
    layers : sequence of str
        Names from ``named_modules()``; "input" gives the heatmap. Token inputs: one number per token.
    rule : str, mapping or RelevanceSettings
        How an output's relevance is shared among its inputs: "z", "epsilon", "gamma", "alpha-beta", "composite",
        "attnlrp", "value-path" or another name from `RULES`, which describes each; or a table of rules for layers, such
        as ``{"features.0": "flat", "conv": ("gamma", 0.25), "linear": "epsilon"}`` (docs/RULES.md).
    epsilon : float, optional
        Stabiliser of the epsilon rule and the composite, default 1e-6, and of the rules for transformers, default 0.
    target : "predicted", int, or int of shape (n,)
        The class whose score before the softmax is explained.
    explain : str or callable, optional
        For a network that returns more than one row of scores per input: "mean-pixels", "mean-tokens", "first-token",
        "last-token", "token-N", or a function from what it returns to scores (n, classes). See
        `idc_core.lrp.explained.explaining`, with which every other function of the engine takes it.
    of : (str, int), optional
        A layer and one of its neurons, such as ``("fc2", 18)``: relevance starts from the activation of that neuron
        instead of a score, and `layers` are those before it. A channel's activation is its mean over positions, and
        relevance starts from each position's part of it. The network needs no scores then.
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
        As `idc_core.tracing.trace.trace`; each says what was expected and what came. DataError also where relevance
        is not finite.

    Notes
    -----
    Equation 1 of Gerasimou et al. (ICSE 2020); one backward pass serves all layers and ends at the earliest of them.
    Where a max pooling ties, the winners share equally. A layer that runs several times gets the sum over its uses.
    In deep networks shares may nearly cancel and grow until no digit counts: `idc_core.attribution.digits.said_lost`
    tells the layer where that begins, and a rule that holds.
    An output that the network also uses without its activation function is taken before that function. A batch
    normalisation, or a scale and a shift per channel written by hand, directly behind or before a convolution or a
    dense layer is one operation with it, as in the folded network.

    Inside a network every rule treats a softmax and products of two activations as AttnLRP does (Achtibat et al., ICML
    2024): the softmax is expanded to first order, R_i = x_i (R_i - s_i sum R), and the factors of a product, such as
    attention weights and values, queries and keys, or a gate and what it lets through, take half of the relevance each.
    What the expansion leaves over is a bias: it is lost with "absorb" and spread over the row with "redistribute". With
    "value-path" (Ali et al., ICML 2022) the softmax's output is constant. Deviations of normalisations are constants,
    also where a network writes the normalisation itself, and so is every divisor; element-wise functions of one value,
    ``x * sigmoid(x)`` among them, hand relevance on unchanged. The weights that `nn.MultiheadAttention` returns beside
    its output are constants.
    """
    settings = RelevanceSettings.of(rule, epsilon=epsilon, **parameters)
    layers = layer_names(layers)
    by_layer: dict[str, list[NDArray[np.floating]]] = {layer: [] for layer in layers}
    batches = trace(
        model, inputs, layers, settings, target=target, of=of, batch_size=batch_size, on_progress=on_progress
    )
    with ExitStack() as whole:
        if explain is not None:
            whole.enter_context(lock_of(model))  # nobody else's pass is to see what is explained here
            whole.enter_context(explaining(model, explain))
        for start, arrays in brought_back(map(attrgetter("start", "relevance"), batches)):
            for layer, array in arrays.items():
                if (row := first_unsound(array)) is not None:
                    raise _unsound(model, inputs, start + row, layer, settings, target, of)
                by_layer[layer].append(array)
    joined: dict[str, NDArray[np.floating]] = {}
    for layer, parts in by_layer.items():
        # What came in one batch is not copied, unless layers share their numbers, as one and its dropout do.
        alone = len(parts) == 1 and not any(np.may_share_memory(parts[0], other) for other in joined.values())
        joined[layer] = parts[0] if alone else np.concatenate(parts)
    return joined


def _unsound(
    model: nn.Module,
    inputs: Inputs,
    row: int,
    layer: str,
    settings: RelevanceSettings,
    target: str | int | Iterable[int],
    of: Neuron | None,
) -> DataError:
    """Return the error for relevance that is not finite: where that begins, and which rule holds."""
    given = whole(inputs)
    said = ""
    if is_array(given):
        own = target if isinstance(target, str | int) else int(np.asarray(list(target))[row])
        said = said_lost(model, given[row : row + 1], settings, own, of)
    advice = said or (
        "Check the values of this input and the network's weights, or choose a rule with a damping such as epsilon."
    )
    return DataError(f"Input {row:,} gives relevance of layer {layer!r} that is not finite. {advice}")
