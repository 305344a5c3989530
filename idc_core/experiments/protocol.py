"""Whose settings an experiment of the DeepImportance paper follows: the paper's, its program's, or the studio's.

S. Gerasimou, H. F. Eniser, A. Sen, A. Cakan, "Importance-Driven Deep Learning System Testing", ICSE 2020. What differs
is declared here once; everything that an experiment does otherwise follows from these fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from idc_core.base.registry import Registry
from idc_core.coverage.idc_settings import IdcSettings
from idc_core.datasets import Dataset
from idc_core.lrp.rules import RelevanceSettings
from idc_core.models.entry import Recipe
from idc_core.models.network import Network
from idc_core.suites.responses import predict
from idc_core.tracing.trace import collect

_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Protocol:
    """One way to run RQ1 to RQ6; the defaults are the studio's."""

    name: str
    help: str
    rule: str = "epsilon"
    """How relevance of neurons is propagated."""
    bias: str = "absorb"
    """Whether biases keep their share of the relevance; "redistribute" is footnote 1 of the paper."""
    pixels: Mapping[str, Any] = field(default_factory=lambda: {"rule": "epsilon"})
    """How relevance of pixels is propagated."""
    flipped: float = 0.02
    """RQ1: share of the pixels that are changed."""
    copies: int = 1
    """RQ2: noisy copies of each test, all in one suite."""
    layer_noise: Mapping[str, float] = field(default_factory=lambda: {"share": 0.02, "deviation": 0.75})
    """RQ5: the noise."""
    layer_ms: tuple[int, ...] = (4, 6)
    """RQ5: numbers of important neurons, unless others are asked for."""
    by_class: tuple[str, ...] = ()
    """Experiments that are made class by class, with the neurons, clusters and tests of that class, and averaged."""
    correct_only: bool = False
    """Whether only training inputs that are classified correctly take part."""
    drop_zeros: bool = False
    clipped: bool = True
    """Whether what FGSM and BIM make is cut off at the range of a pixel."""
    criteria: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Parameters of other criteria, by name."""
    recipes: Mapping[str, Recipe] = field(default_factory=dict)
    """How networks are trained anew, by data set; others by their own recipe."""
    models: tuple[str, ...] = ()
    """Networks unless others are named; none: the experiment's own."""

    @property
    def settings(self) -> IdcSettings:
        """How IDC is measured."""
        return IdcSettings.of(self.rule, bias=self.bias, drop_zeros=self.drop_zeros)

    @property
    def relevance(self) -> RelevanceSettings:
        """How relevance of neurons is propagated."""
        return self.settings.relevance

    @property
    def key(self) -> dict[str, Any]:
        """What kept runs are told apart by: nothing of the studio's own, so that earlier runs are found again."""
        if self == STUDIO:
            return {}
        left_out = ("help", "recipes", "models")
        return {"protocol": {name: value for name, value in asdict(self).items() if name not in left_out}}

    def learnt_from(self, model: Network, train: Dataset) -> Dataset:
        """Return the training inputs that take part."""
        if not self.correct_only or train.task != "classification":
            return train
        answers = predict(collect(model, train, ()).scores, train.targets, train.task)
        return train.only(np.flatnonzero(answers.classes == train.targets))

    def parts(self, experiment: str, train: Dataset, test: Dataset) -> Iterator[tuple[Dataset, Dataset]]:
        """Yield training inputs and tests that belong together: of every class that has both, or all."""
        if experiment not in self.by_class or train.task != "classification":
            yield train, test
            return
        for number in np.intersect1d(train.targets, test.targets):
            mine = [one.only(np.flatnonzero(one.targets == number)) for one in (train, test)]
            yield mine[0], mine[1]


_ADADELTA = Recipe("adadelta", 1.0, batch=256, epochs=10, schedule="constant", note="The paper's web page.")
_RECIPES = {
    "mnist": _ADADELTA,
    "udacity": _ADADELTA,
    "cifar10": Recipe("rmsprop", 1e-4, batch=32, epochs=40, schedule="constant", note="The paper's web page."),
}
"""The published recipes, but for the decay of 1e-6 a step of CIFAR-10's learning rate: 6 % by the end."""

_BY_CLASS = ("rq2", "rq3", "rq4", "rq5")
_SCALED = {"nc": {"scale": "layer"}}
"""Neuron coverage of activations that are scaled to 0..1, input by input and layer by layer; the program scales at
every position of a channel, here the means of channels are scaled."""

STUDIO = Protocol("studio", "the studio's own settings, the same in all experiments")

PAPER = Protocol(
    "paper",
    "what the paper and its web page say; where they are silent, its program",
    bias="redistribute",
    pixels={"rule": "epsilon", "bias": "redistribute"},
    flipped=0.10,
    layer_ms=(4,),
    by_class=_BY_CLASS,  # the text of RQ1 says all classes
    correct_only=True,
    clipped=False,
    criteria=_SCALED,
    recipes=_RECIPES,
)

PROGRAM = Protocol(
    "program",
    "the published program's scripts, but for centroids that it rounds and rankings that it does not sum",
    rule="z",
    pixels={"rule": "alpha-beta", "alpha": 3.0},
    copies=10,
    layer_noise={"share": 0.10, "deviation": 0.3},
    layer_ms=(4,),
    by_class=("rq1", *_BY_CLASS),
    correct_only=True,
    drop_zeros=True,
    clipped=False,
    criteria=_SCALED,
    recipes=_RECIPES,
    models=("deepimportance-lenet1", "deepimportance-lenet4", "deepimportance-lenet5"),
)

PROTOCOLS: Registry[Protocol] = Registry("protocol", {one.name: one for one in (PAPER, PROGRAM, STUDIO)})
"""Protocols by name."""
