"""Criteria that guide a search, made for each of its models by one name."""

from collections.abc import Sequence
from typing import Any

from torch import nn

from idc_core.coverage import CRITERIA
from idc_core.coverage.registry import Criterion
from idc_core.coverage.streamed import StreamedCriterion
from idc_core.errors import SettingError, UnsupportedOperationError
from idc_core.generation.guidance import AIMS
from idc_core.generation.networks import neuron_layers
from idc_core.progress import Progress
from idc_core.trace import collect

GUIDES: tuple[str, ...] = (*(one.card.name for one in AIMS), "idc")
"""Names of the criteria that can guide a search; one is chosen for all of its models."""


def make_guidance(
    name: str,
    models: Sequence[nn.Module],
    train: Any,
    covered: Any = None,
    *,
    layers: Sequence[str] | None = None,
    m: int = 6,
    on_progress: Progress | None = None,
) -> list[Criterion]:
    """Make and fit one criterion a model for `differential_search` to aim at.

    Parameters
    ----------
    name : str
        One of `GUIDES`.
    models : sequence of Module
    train : Tensor, array or Dataset, (n, ...)
        What criteria learn from; neuron coverage and its k most active neurons learn nothing.
    covered : the same, optional
        What counts as covered before the search; without it nothing does.
    layers : sequence of str, optional
        For IDC: the layer of each model. Default: the one on its card, else its last hidden layer.
    m : int
        For IDC: important neurons; fewer where a layer has fewer.
    on_progress : Progress, optional

    Returns
    -------
    list of Criterion
        In the order of the models; a model that comes twice has one.

    Raises
    ------
    SettingError
        If nothing of this name can guide a search.
    UnsupportedOperationError
        If a model has no layer with neurons.
    ModelError, DataError
        As the criteria's `fit` and `update`.
    """
    if name not in GUIDES:
        raise SettingError(f"Expected a criterion that can guide a search, one of {', '.join(GUIDES)}, got {name!r}.")
    kind: Any = CRITERIA[name]
    found: list[Criterion] = []
    for number, model in enumerate(models):
        if any(model is earlier for earlier in models[:number]):
            continue
        hidden = neuron_layers(model)
        if not hidden:
            raise UnsupportedOperationError(
                f"Model {number + 1} has no convolution or dense layer whose neurons a search could aim at; search "
                "without guidance."
            )
        if name == "idc":
            layer = layers[number] if layers is not None else _usual_layer(model, hidden)
            neurons = collect(model, getattr(train, "inputs", train)[:1], [layer]).activations[layer].shape[1]
            one: Criterion = kind(model, layer, m=min(m, neurons))
        else:
            one = kind(model, hidden)
        learns = not isinstance(one, StreamedCriterion) or one.learns
        if learns or covered is not None:
            one.fit(train, on_progress=on_progress)
        found.append(one if covered is None else one.update(covered, on_progress=on_progress))
    return found


def _usual_layer(model: nn.Module, hidden: Sequence[str]) -> str:
    card = getattr(model, "card", None)
    return str(card.default_layer) if card is not None else hidden[max(0, len(hidden) - 2)]
