"""Scores of all criteria on one suite: what the experiments on suites, criteria and layers are made of.

One pass over the training inputs, one over the original tests and one over each suite serve IDC of every layer, for
every number of important neurons, and all other criteria.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idc_core.analysis.layer_sweep import LayerClusters, cluster_layer
from idc_core.base.progress import Progress, report
from idc_core.base.threads import number
from idc_core.coverage import CRITERIA
from idc_core.coverage.agreement import evaluate_criteria, evaluate_profiles, random_subsets
from idc_core.coverage.cells import Codes, assign, encode, total
from idc_core.coverage.profiles import Profiles
from idc_core.coverage.streamed import StreamedCriterion, fit_all, update_all
from idc_core.datasets import Dataset
from idc_core.experiments.protocol import STUDIO, Protocol
from idc_core.experiments.unclipped import unclipped
from idc_core.importance.training_pass import RankedLayer
from idc_core.models.network import Network
from idc_core.perturbation import ATTACKS, guided_noise
from idc_core.store.cache import Record, stored
from idc_core.suites import original, perturbed, select_tests, union
from idc_core.suites.responses import predict
from idc_core.suites.suite import Positions, Suite, SuitePart, content_address
from idc_core.tracing.trace import collect
from idc_core.tracing.traces import Traces

FORMAT = 1
"""Goes up when the numbers of a record change."""

MOST = 12
"""IDC is read for every number of important neurons up to this one, or a larger one that is asked for."""


def other_criteria() -> list[str]:
    """Return the criteria that are measured beside IDC: those that share a pass and do not depend on tests' order."""
    return [
        name for name, kind in CRITERIA.items() if issubclass(kind, StreamedCriterion) and not kind.card.order_matters
    ]


@dataclass(frozen=True)
class SuiteSpec:
    """A suite to score: the first tests, and what is made of each of them."""

    name: str
    """In tables."""
    kind: str
    """A key of `idc_core.suites.SUITES`, or "train": as many training inputs, instead of tests changed."""
    tests: int
    """Number of tests, from the first one."""
    seed: int = 0
    copies: int = 1
    """Number made of each test, with this seed and the next ones."""
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def attacked(self) -> bool:
        """Whether only classifiers can be tested so."""
        return self.kind in ATTACKS


@dataclass(frozen=True)
class _Original:
    """The first original tests: the cells they reach, and the criteria after them."""

    cells: dict[str, list[Codes]]
    criteria: dict[str, StreamedCriterion]


class CriterionScores:
    """The scores of suites on one network: from disk where they are finished, else made and kept.

    IDC is scored for 1 to `most` important neurons, of a smaller layer for all of its neurons, as `protocol` says, and
    without `others` nothing else is. `fresh` makes finished scores again. Training inputs are traced when the first
    score is missing.
    """

    def __init__(
        self,
        model: Network,
        train: Dataset,
        test: Dataset,
        *,
        protocol: Protocol = STUDIO,
        others: bool = True,
        most: int = MOST,
        fresh: bool = False,
        on_progress: Progress | None = None,
    ) -> None:
        self.model, self.train, self.test = model, train, test
        self.protocol, self.most, self.fresh, self.on_progress = protocol, most, fresh, on_progress
        self.layers = tuple(model.card.layers)
        self.layer = model.card.default_layer
        classifier = test.task == "classification"
        possible = [name for name in other_criteria() if classifier or not CRITERIA[name].card.needs_classes]
        self.names = possible if others else []
        self._bases: dict[int, _Original] = {}

    def of(self, spec: SuiteSpec) -> Record:
        """Return the scores of a suite by all criteria.

        Keys: "inputs" (int); "accuracy" or "rmse" (the other is None); "cells": a dict of layers to one list for each
        number of important neurons, from 1: neurons used, cells there are, cells that the suite reaches, cells that it
        reaches together with the original tests it was made of, cells that these reach; "scores": a dict of other
        criteria to two scores, of the suite and together with those tests.
        """
        key = self._key() | {
            "kind": spec.kind,
            "tests": spec.tests,
            "seed": spec.seed,
            "copies": spec.copies,
            "settings": dict(spec.settings),
        }
        return stored("reading", key, lambda: self._score(spec), fresh=self.fresh)

    def growth(self, ms: Sequence[int], orders: int = 20, sizes: int = 12, seed: int = 0) -> Record:
        """Return the scores of growing random subsets of the original tests, as in `random_subsets`.

        "sizes" are numbers of tests, "scores" a dict of criteria to lists (orders, sizes); IDC of the default layer is
        "idc6" for 6 important neurons.
        """
        key = self._key() | {"ms": list(ms), "orders": orders, "sizes": sizes, "seed": seed}
        return stored("growth", key, lambda: self._growth(ms, orders, sizes, seed), fresh=self.fresh)

    def _key(self) -> Record:
        return {
            "format": FORMAT,
            "threads": number(),
            "network": self.model.card.fingerprint,
            "train": self.train.fingerprint,
            "test": self.test.fingerprint,
            "rule": self.protocol.rule,
            "most": self.most,
            **self.protocol.key,
            # Left out where there are others, so that runs from before there was a choice are found again.
            **({} if self.names else {"others": False}),
        }

    def _suite(self, spec: SuiteSpec) -> Suite:
        source = select_tests(original(self.test), range(spec.tests))
        if spec.kind == "original":
            return source
        if spec.kind == "train":
            return select_tests(original(self.train), range(spec.tests))
        seeds = range(spec.seed, spec.seed + spec.copies)
        return union([self._made(source, spec, seed) for seed in seeds])

    def _made(self, source: Suite, spec: SuiteSpec, seed: int) -> Suite:
        """Return what is made of the tests: by the protocol attacks may leave the range, relevance follows its rule."""
        made = perturbed(source, spec.kind, self.model, seed=seed, **spec.settings)
        attacked = spec.kind in ("fgsm", "bim") and not self.protocol.clipped
        if not attacked and (spec.kind != "guided" or self.protocol.pixels == STUDIO.pixels):
            return made

        def make(positions: Positions, on_progress: Progress | None) -> NDArray[np.float32]:
            inputs, tell = np.asarray(source.take(positions), np.float32), on_progress
            if attacked:
                return unclipped(self.model, inputs, source.targets[positions], on_progress=tell, **spec.settings)
            numbers, how = source.origin[positions], {**spec.settings, **self.protocol.pixels}
            return guided_noise(self.model, inputs, seed=seed, numbers=numbers, on_progress=tell, **how)

        content = content_address(made.fingerprint, self.protocol.key)
        return replace(made, parts=(SuitePart(content, len(made), make, made.at_a_time),))

    def _score(self, spec: SuiteSpec) -> Record:
        base, suite = self._base(spec.tests), self._suite(spec)
        if spec.kind == "original":
            traces = self._originals.only(np.arange(spec.tests))
        else:
            inputs = (block for _, block in suite.blocks(on_progress=self._telling(spec)))
            traces = collect(self.model, inputs, self.layers, on_progress=self._telling(spec))
        scores = {}
        for name, criterion in self._measured(traces, spec.name).items():
            alone = criterion.score
            scores[name] = [alone, criterion.merge(base.criteria[name]).score]
        cells = {layer: self._counts(layer, codes, base) for layer, codes in self._cells(traces).items()}
        accuracy, rmse = predict(traces.scores, suite.targets, suite.task).quality(suite.targets, suite.task)
        return {"inputs": len(suite), "accuracy": accuracy, "rmse": rmse, "cells": cells, "scores": scores}

    def _telling(self, spec: SuiteSpec) -> Progress | None:
        if self.on_progress is None:
            return None
        tell = self.on_progress
        return lambda done, total, label: tell(done, max(total, spec.tests), f"{spec.name}, seed {spec.seed}: {label}")

    def _counts(self, layer: str, codes: list[Codes], base: _Original) -> list[list[int]]:
        sizes = [neuron.k for neuron in self._learnt[layer].clusters]
        counts = []
        for used, (mine, theirs) in enumerate(zip(codes, base.cells[layer], strict=True), start=1):
            together = np.union1d(mine, theirs)
            counts.append([used, total(sizes[:used]), len(mine), len(together), len(theirs)])
        return counts

    def _cells(self, traces: Traces) -> dict[str, list[Codes]]:
        """Return the cells reached, by layer, for each number of important neurons from 1."""
        reached = {}
        for layer, states in self._learnt.items():
            codes = self._codes(states, traces, range(1, len(states.important) + 1))
            reached[layer] = [np.unique(cells) for cells in codes]
        return reached

    def _codes(self, states: LayerClusters, traces: Traces, ms: Sequence[int]) -> list[Codes]:
        assignments = assign(
            traces.activations[states.layer][:, states.important],
            [neuron.centroids for neuron in states.clusters],
            [neuron.boundaries for neuron in states.clusters],
        )
        sizes = [neuron.k for neuron in states.clusters]
        return [encode(assignments[:, :m], sizes[:m]) for m in ms]

    def _measured(self, traces: Traces, label: str) -> dict[str, StreamedCriterion]:
        """Return the criteria after these tests alone."""
        measured = {}
        for done, (name, learnt) in enumerate(self._fitted.items()):
            report(self.on_progress, done, len(self._fitted), f"criteria on {label}")
            measured[name] = learnt.fresh()
            update_all([measured[name]], traces)
        return measured

    def _base(self, tests: int) -> _Original:
        if tests not in self._bases:
            traces = self._originals.only(np.arange(tests))
            self._bases[tests] = _Original(self._cells(traces), self._measured(traces, f"{tests:,} original tests"))
        return self._bases[tests]

    @cached_property
    def _originals(self) -> Traces:
        return collect(self.model, self.test, self.layers, on_progress=self.on_progress)

    @cached_property
    def _trained(self) -> Traces:
        return collect(self.model, self.train, self.layers, self.protocol.relevance, on_progress=self.on_progress)

    @cached_property
    def _learnt(self) -> dict[str, LayerClusters]:
        """The important neurons of each layer and their clusters."""
        clusters = {}
        for layer in self.layers:
            neurons = self._trained.relevance[layer].shape[1]
            ranked = RankedLayer.of(self._trained, layer, min(self.most, neurons))
            clusters[layer] = cluster_layer(self.model, ranked, self.protocol.settings)
        return clusters

    @cached_property
    def _fitted(self) -> dict[str, StreamedCriterion]:
        """The other criteria, with nothing covered."""
        criteria = self._unfitted()
        fit_all(list(criteria.values()), self._trained, on_progress=self.on_progress)
        return criteria

    def _unfitted(self) -> dict[str, StreamedCriterion]:
        criteria = {}
        for name in self.names:
            make: Callable[..., Any] = CRITERIA[name]  # each has a constructor of its own
            layers = (self.layer,) if CRITERIA[name].card.one_layer else self.layers
            criteria[name] = make(self.model, layers, **self.protocol.criteria.get(name, {}))
        return criteria

    def _growth(self, ms: Sequence[int], orders: int, sizes: int, seed: int) -> Record:
        subsets = random_subsets(len(self.test), sizes, orders, seed)
        states = self._learnt[self.layer]
        growth: dict[str, NDArray[np.float64]] = {}
        for m, codes in zip(ms, self._codes(states, self._originals, ms), strict=True):
            cells = total([one.k for one in states.clusters[:m]])
            growth[f"idc{m}"] = evaluate_profiles(Profiles.of_names(codes, cells), {}).growth(subsets)
        criteria = self._unfitted()
        results = evaluate_criteria(
            list(criteria.values()), self._trained, self._originals, {}, on_progress=self.on_progress
        )
        for name, one in zip(criteria, results, strict=True):
            growth[name] = one.growth(subsets, on_progress=self.on_progress)
        return {"sizes": subsets.sizes.tolist(), "scores": {name: rows_.tolist() for name, rows_ in growth.items()}}
