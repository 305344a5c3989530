"""All that ranks the tests of a pool, measured on one network: criteria, surprise, uncertainty and diversity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idc_core.base.progress import Progress
from idc_core.coverage import CRITERIA
from idc_core.coverage.agreement import CriterionResult, evaluate_criteria
from idc_core.coverage.mc_dropout import dropout_layers, dropout_scores
from idc_core.coverage.prioritisation import UNCERTAINTIES
from idc_core.coverage.registry import Criterion
from idc_core.coverage.streamed import StreamedCriterion
from idc_core.datasets import Dataset
from idc_core.errors import DataError, IdcError
from idc_core.models.network import Network
from idc_core.tracing.trace import collect
from idc_core.worth.rankings import Ranking, rank_by_diversity, rank_by_profiles, rank_by_values
from idc_core.worth.yardstick import Yardstick

SURPRISES = {"lsc": "lsa", "dsc": "dsa", "mdsc": "mdsa"}
"""What rankings by surprise are called, by the coverage criterion that is made of it."""

UNSURE = ("deepgini", "margin", "mutual-information")
"""Uncertainties that criteria are compared with; the last one only in networks with dropout."""

_FEATURES = 64
"""Components of the inputs in which diversity is measured."""


def rank_pool(
    model: Network, train: Dataset, pool: Dataset, names: Sequence[str], *, on_progress: Progress | None = None
) -> tuple[list[Ranking], dict[str, str]]:
    """Return the rankings of a pool of tests by criteria, by name, and why others have none, by name.

    Criteria have their default settings and look at the default layer, or at all layers of the network's card, as each
    says.
    """
    traces = collect(model, pool, tuple(model.card.layers), on_progress=on_progress)
    rankings, missing = [], {}
    for name in names:
        try:
            criterion = usual_criterion(model, name)
            tests = traces if isinstance(criterion, StreamedCriterion) else pool
            (result,) = evaluate_criteria([criterion], train, tests, {}, on_progress=on_progress)
            rankings += _of_criterion(name, result)
        except IdcError as error:
            missing[name] = str(error)
    return rankings, missing


def usual_criterion(model: Network, name: str) -> Criterion:
    """Return a criterion by its name with its default settings, for the layers that it usually looks at."""
    make: Callable[..., Criterion] = CRITERIA[name]  # each has a constructor of its own
    one_layer = name == "idc" or CRITERIA[name].card.one_layer
    return make(model, model.card.default_layer if one_layer else tuple(model.card.layers))


def rank_by_rivals(
    model: Network, train: Dataset, pool: Dataset, *, on_progress: Progress | None = None
) -> tuple[list[Ranking], dict[str, str]]:
    """Return the rankings of a pool by what criteria are compared with, and why others have none, by name.

    These are uncertainty and the diversity of the inputs.
    """
    scores, missing = collect(model, pool, (), on_progress=on_progress).scores, {}
    rankings = [rank_by_values(name, UNCERTAINTIES[name](scores)) for name in UNSURE[:-1]]
    if dropout_layers(model):
        dropped = dropout_scores(model, pool, on_progress=on_progress)
        rankings.append(rank_by_values(UNSURE[-1], UNCERTAINTIES[UNSURE[-1]](dropped)))
    else:
        missing[UNSURE[-1]] = "The network has no dropout."
    if pool.inputs.dtype.kind == "f":
        rankings.append(rank_by_diversity(_components(train.inputs, pool.inputs)))
    else:
        missing["diversity"] = "Texts have no features but the network's own."
    return rankings, missing


def _of_criterion(name: str, result: CriterionResult) -> list[Ranking]:
    """Return the ranking by a criterion, and by the numbers behind its targets, such as surprise."""

    def score(tests: NDArray[np.int64]) -> float:
        return float(result.of_suites(tests[None])[0])

    rankings = [rank_by_profiles(name, result.profiles, score)]
    if result.profiles.total != 0 and result.profiles.values is not None:
        rankings.append(rank_by_values(SURPRISES.get(name, f"{name}-value"), result.profiles.values))
    return rankings


def _components(train: NDArray[Any], pool: NDArray[Any]) -> NDArray[np.float64]:
    """Return the pool's inputs in the principal components of training inputs, float64 (n, at most 64)."""
    flat = train[:5000].reshape(len(train[:5000]), -1).astype(np.float64)
    centre = flat.mean(0)
    _, _, directions = np.linalg.svd(flat - centre, full_matrices=False)
    return np.asarray((pool.reshape(len(pool), -1) - centre) @ directions[:_FEATURES].T)


def kinds_of_mistakes(predictions: NDArray[np.int64], labels: NDArray[np.int64]) -> Yardstick:
    """Return the yardstick whose targets are the pairs of a true and a predicted class that are confused.

    Parameters
    ----------
    predictions, labels : int (n,)

    Raises
    ------
    DataError
        If no test is misclassified.
    """
    wrong = predictions != labels
    if not wrong.any():
        raise DataError("The network is right on all tests of the pool: there are no mistakes to find.")
    pairs = np.stack([labels, predictions], 1)
    kinds = np.unique(pairs[wrong], axis=0)
    return Yardstick("kinds of mistakes", wrong[:, None] & (pairs[:, None] == kinds).all(2))
