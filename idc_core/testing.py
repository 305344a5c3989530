"""For a person's own test suite: an assertion that fails where tests leave too many cells uncovered."""

from __future__ import annotations

from typing import Any

from torch import nn

from idc_core.base.parameters import Parameter, whole_number
from idc_core.coverage.idc import IDC
from idc_core.coverage.idc_settings import IdcSettings
from idc_core.coverage.uncovered import find_uncovered
from idc_core.datasets import DATASETS, load_dataset
from idc_core.errors import SettingError
from idc_core.importance.training_pass import RankedLayer
from idc_core.lrp.rules import NamedRule
from idc_core.tracing.sources import Inputs
from idc_core.tracing.trace import collect

_AT_LEAST = Parameter("at_least", "Minimum", "IDC below which the assertion fails.", 0.4, 0, 1)


def assert_coverage(
    model: nn.Module,
    tests: Inputs,
    layer: str,
    at_least: float = 0.4,
    *,
    train: Inputs | None = None,
    m: int | None = None,
    rule: NamedRule | IdcSettings = "epsilon",
    cells: int = 5,
    closest_tests: int = 3,
    **parameters: Any,
) -> None:
    """Fail unless the tests reach a share of the cells of a layer.

    Parameters
    ----------
    model : Module
        Any network that returns scores; left as it was found.
    tests : Tensor, array, Dataset or iterable of batches, (n, ...)
    layer : str
        A name from ``named_modules()``.
    at_least : float
        The smallest IDC that passes, 0..1, itself included.
    train : Tensor, array, Dataset or iterable of batches, (n, ...), optional
        The clusters are learnt from it. It may be left out for a network of the registry: then it is the training
        split of the network's own data.
    m, rule, **parameters
        As in `idc_core.IDC`.
    cells, closest_tests : int
        How many uncovered cells the failure names, and how many tests for each.

    Raises
    ------
    AssertionError
        If IDC is below `at_least`: how many cells are uncovered, the first of them, and the tests closest to each, by
        their positions.
    IdcError
        As `idc_core.analyze`; SettingError also where there are no training inputs.
    """
    __tracebackhide__ = True
    _AT_LEAST.check(at_least)
    whole_number("cells", cells, 1)
    whole_number("closest_tests", closest_tests, 1)
    criterion = IDC(model, layer, m, rule, **parameters)
    settings = criterion.idc
    train = _training(model) if train is None else train
    learnt = collect(model, train, [layer], settings.relevance)
    used = learnt.predictions == _targets(train) if settings.original else None
    m = criterion.m_of(learnt.activations[layer].shape[1])
    ranked = RankedLayer.of(learnt, layer, m, settings.priority, used)
    criterion.cluster(ranked)
    activations = collect(model, tests, [layer]).activations[layer][:, criterion.important]
    assignments = criterion.count(activations)
    if criterion.score >= at_least:
        return
    missing = find_uncovered(
        activations, assignments, criterion.centroids, criterion.important, ranked.activations, cells, closest_tests
    )
    told = "\n".join(missing.lines())
    raise AssertionError(f"IDC of {layer} is {criterion.score:.6g}, below at_least={at_least:g}.\n{told}")


def _training(model: nn.Module) -> Inputs:
    """Return the training inputs of a network of the registry."""
    card = getattr(model, "card", None)
    name = getattr(card, "dataset", "")
    if name not in DATASETS:
        raise SettingError("The clusters are learnt from training inputs, and none are known: pass train=...")
    return load_dataset(name, "train")


def _targets(train: Inputs) -> Any:
    targets = getattr(train, "targets", None)
    if targets is None:
        raise SettingError("original=True learns from correctly classified inputs only: pass train as a Dataset.")
    return targets
