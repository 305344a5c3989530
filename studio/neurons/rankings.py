"""All rankings of a layer's neurons, each computed once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idc_core.base.progress import Progress
from idc_core.errors import CancelledError, IdcError
from studio.jobs.jobs import JobKind, Waiting
from studio.jobs.results import View
from studio.text import literal

if TYPE_CHECKING:
    from idc_core.importance.ranking import Ranking

_RANKINGS = JobKind("rankings", kept=48)

SAMPLE = 300
"""Training inputs that a method runs on."""


@dataclass(frozen=True, eq=False)
class Ranked:
    """Rankings of a layer's neurons by the relevance of the training inputs.

    `rankings` are by name: every priority, the chosen classes together, and every class. `classes` names those of one
    class, or one range of answers, each; `labels` are of all. `by_class` (neurons, classes) is the mean relevance over
    the training inputs of each class, `activations` (neurons,) the mean over all.
    """

    rankings: dict[str, Ranking]
    classes: tuple[str, ...]
    labels: tuple[str, ...]
    by_class: NDArray[np.float64]
    activations: NDArray[np.float64]


def ranked(view: View) -> Ranked:
    """Return every ranking that needs no further pass through the network."""
    layer, chosen = view.setup.layer, view.setup.classes if view.is_comparable else ()

    def work(report: Progress) -> Ranked:
        from idc_core.importance.ranking import Ranking, by_group, by_relevance, group_inputs, group_means

        relevance = view.train_traces.relevance[layer]
        groups, labels = group_inputs(view.train)
        called = [f"Class {label}" if view.train.class_names else f"Target {label}" for label in labels]
        rankings = {ranking.name: ranking for ranking in by_relevance(relevance)}
        if len(chosen) > 1:
            inside = np.isin(groups, [labels.index(name) for name in chosen])
            values = relevance[inside].mean(axis=0, dtype=np.float64)
            rankings["chosen"] = Ranking("chosen", f"Classes {', '.join(chosen)}", values, int(inside.sum()))
        classes = {ranking.name: ranking for ranking in by_group(relevance, groups, called)}
        return Ranked(
            rankings | classes,
            tuple(classes),
            labels,
            group_means(relevance, groups, len(labels)),
            view.train_traces.activations[layer].mean(axis=0, dtype=np.float64),
        )

    key = (*view.learnt_key, layer, chosen)
    return Waiting(1).get(_RANKINGS, key, "ranking the neurons", work)


def by_methods(view: View, names: list[str]) -> tuple[dict[str, Ranking], list[str]]:
    """Return rankings by attribution methods on a sample of training inputs, and a sentence for each that cannot."""
    waiting = Waiting(len(names))
    answers = {name: _by_method(waiting, view, name) for name in names}
    return (
        {name: answer for name, answer in answers.items() if not isinstance(answer, str)},
        [answer for answer in answers.values() if isinstance(answer, str)],
    )


def _by_method(waiting: Waiting, view: View, name: str) -> Ranking | str:
    from idc_core.attribution.methods import METHODS

    def work(report: Progress) -> Ranking | str:
        from idc_core.importance.ranking import by_method, sample_inputs

        try:
            inputs = view.train.inputs[sample_inputs(view.train, SAMPLE)]
            return by_method(view.model, inputs, view.setup.layer, name, on_progress=report)
        except CancelledError:
            raise
        except IdcError as error:
            # Kept like a result: it would be the same the next time.
            return f"{METHODS[name].label} is left out. {literal(error)}"

    key = (*view.learnt_key, view.setup.layer, name)
    return waiting.get(_RANKINGS, key, f"ranking by {METHODS[name].label}", work)
