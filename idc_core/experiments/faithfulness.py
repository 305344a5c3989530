"""Faithfulness of attribution methods: how fast a score falls when the parts said to matter are removed first.

References
----------
.. [1] W. Samek, A. Binder, G. Montavon, S. Lapuschkin, K.-R. Müller, "Evaluating the visualization of what a deep
   neural network has learned", IEEE Transactions on Neural Networks and Learning Systems 28 (11), 2017.
.. [2] R. Achtibat et al., "AttnLRP: Attention-aware layer-wise relevance propagation for transformers", ICML 2024.
.. [3] A. Ali et al., "XAI for transformers: better explanations through conservative propagation", ICML 2022.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.attribution.methods import METHODS, attribute
from idc_core.attribution.rollout import attention_rollout
from idc_core.base.arrays import Floats
from idc_core.base.parameters import whole_number
from idc_core.base.progress import Progress, part_of, report
from idc_core.datasets import Dataset
from idc_core.errors import SettingError, UnsupportedOperationError
from idc_core.experiments.random_neurons import Seeds, check_seeds
from idc_core.perturbation.removal import Parts, parts_of, with_parts
from idc_core.tracing.trace import collect

_RANDOM, _ROLLOUT = "random", "attention-rollout"

COMPARED = ("attnlrp", "gamma", "value-path", "gradient-x-input", "integrated-gradients", _ROLLOUT, _RANDOM)
"""Methods that are compared unless others are named: of `METHODS`, attention rollout, and a random order."""

_SETTINGS: Mapping[str, Mapping[str, Any]] = {"integrated-gradients": {"baseline": 0.5}}
"""Parameters that are not a method's default: the baseline of pictures is grey, near the colour of removed parts."""

_ORDERS = ("most relevant first", "least relevant first")

_AT_ONCE = 512


@dataclass(frozen=True, eq=False)
class Faithfulness:
    """Perturbation curves: what is left of the predicted class's score when parts are removed.

    `removed` are the shares of an input's parts that are removed, from 0 to 1, (steps + 1,). `probability` and `logit`
    are means over the inputs of a seed, (methods, 2, seeds, steps + 1), the second axis as in `_ORDERS`; the logit is
    the score before the softmax.
    """

    methods: tuple[str, ...]
    refused: dict[str, str]
    """Methods that cannot explain the network, and why; the curves are of the others."""
    seeds: tuple[int, ...]
    inputs: int
    parts: float
    """Mean number of parts of an input."""
    removed: Floats
    probability: Floats
    logit: Floats

    def areas(self, measure: str = "probability") -> Floats:
        """Return the area under each curve, (methods, 2, seeds), in the unit of "probability" or "logit".

        Most relevant first, a smaller area is better; least relevant first, a larger one.
        """
        if measure not in ("probability", "logit"):
            raise SettingError(f"measure must be 'probability' or 'logit', not {measure!r}.")
        curves: Floats = getattr(self, measure)
        return np.asarray(np.trapezoid(curves, self.removed, axis=-1), np.float64)

    def between(self, measure: str = "probability") -> Floats:
        """Return the area between each method's two curves, (methods, seeds): larger is better, random is near 0."""
        most, least = self.areas(measure).transpose(1, 0, 2)
        return np.asarray(least - most, np.float64)


def faithfulness(
    model: nn.Module,
    data: Dataset,
    methods: Sequence[str] = COMPARED,
    *,
    inputs: int = 50,
    seeds: Seeds = 5,
    steps: int = 8,
    side: int = 4,
    colour: NDArray[np.generic] | None = None,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
) -> Faithfulness:
    """Remove parts of inputs in the order of their relevance, and measure the score of the predicted class.

    Parameters
    ----------
    model : Module
        A classifier.
    data : Dataset
        Pictures, cut into squares of `side` pixels, or texts, cut into words; empty texts are left out. A seed draws
        `inputs` of them, and the random order.
    methods : sequence of str
        Names of `METHODS`, "attention-rollout" or "random". A part's relevance is the sum over its pixels and colours.
    steps : int
        How many equal shares of the parts are removed one after the other, until nothing is left.
    colour : ndarray, (C,), optional
        Of what is removed from pictures; default the mean of `data`. Words become the token of unknown words.

    Raises
    ------
    SettingError, DataError, ModelError
        If a setting is out of range, the data cannot be cut, or the network cannot be run.

    Notes
    -----
    Pixel flipping ([1]): relevance is computed once, on the whole input, and for the class that the whole input is
    classified as, whether or not it is the true one. The area between the curves of both orders is the measure of [2];
    [3] removes nodes and words in the same way.
    """
    unknown = [name for name in methods if name not in (*METHODS, _RANDOM, _ROLLOUT)]
    if unknown or data.task != "classification":
        raise SettingError(
            f"Expected a classifier's data and methods among {', '.join((*METHODS, _ROLLOUT, _RANDOM))}, not "
            f"{unknown[0] if unknown else f'{data.name}, a {data.task}'}."
        )
    whole_number("inputs", inputs, 1)
    whole_number("steps", steps, 2)
    listed, data = check_seeds(seeds), with_parts(data)
    if colour is None and data.inputs.ndim == 4:
        colour = _mean_colour(data.inputs)
    refused = _refusals(model, parts_of(data.sample(1), side, colour), methods)
    names = tuple(name for name in methods if name not in refused)
    curves, parts, done = [], [], 0
    for seed in listed:
        drawn = data.sample(inputs, seed=seed)
        cut = parts_of(drawn, side, colour)
        parts.append(cut.counts.mean())
        progress = part_of(on_progress, done, len(listed) * len(names))
        curves.append(_curves(model, cut, names, seed, steps, batch_size, progress))
        done += len(names)
    # (seeds, measures, methods, orders, steps + 1), the measure first and the seed behind the order.
    probability, logit = np.stack(curves).transpose(1, 2, 3, 0, 4)
    removed = np.linspace(0, 1, steps + 1)
    count = min(inputs, len(data))
    return Faithfulness(names, refused, listed, count, float(np.mean(parts)), removed, probability, logit)


def _mean_colour(pictures: NDArray[np.generic]) -> Floats:
    """Return the mean of pictures (n, C, H, W), (C,), of which not all need be in memory at once."""
    starts = range(0, len(pictures), _AT_ONCE)
    means = [np.asarray(pictures[start : start + _AT_ONCE]).mean((2, 3), dtype=np.float64) for start in starts]
    return np.asarray(np.concatenate(means).mean(0), np.float64)


def _refusals(model: nn.Module, one: Parts, methods: Sequence[str]) -> dict[str, str]:
    """Try every method on one input, so that what cannot explain the network is known before any work."""
    refusals = {}
    for name in methods:
        try:
            _relevance(model, one, name, 0, np.zeros(1, np.int64), None)
        except UnsupportedOperationError as error:
            refusals[name] = str(error)
    return refusals


def _curves(
    model: nn.Module,
    cut: Parts,
    methods: tuple[str, ...],
    seed: int,
    steps: int,
    batch_size: int | None,
    on_progress: Progress | None,
) -> Floats:
    """Return the curves of one sample, means over its inputs, (2 measures, methods, 2 orders, steps + 1)."""
    whole = collect(model, cut.inputs, [], batch_size=batch_size)
    classes = whole.predictions
    curves = np.empty((2, len(methods), len(_ORDERS), steps + 1))
    # Both ends are the same in every order.
    for place, scores in ((0, whole.scores), (-1, _scores(model, [cut.without(cut.removable)], batch_size))):
        curves[..., place] = _measures(scores, classes)[:, None, None]
    for row, name in enumerate(methods):
        places = cut.places(_relevance(model, cut, name, seed, classes, batch_size))
        backwards = np.where(cut.removable, cut.counts[:, None] - 1 - places, places)
        for column, ranked in enumerate((places, backwards)):
            left = _scores(model, _with_less(cut, ranked, steps), batch_size).reshape(steps - 1, len(classes), -1)
            curves[:, row, column, 1:-1] = np.stack([_measures(scores, classes) for scores in left], axis=1)
        report(on_progress, row + 1, len(methods), "methods")
    return curves


def _relevance(
    model: nn.Module, cut: Parts, name: str, seed: int, classes: NDArray[np.int64], batch_size: int | None
) -> Floats:
    """Return the relevance of each part by one method, (n, parts)."""
    if name == _RANDOM:
        return np.random.default_rng(seed).random(cut.removable.shape)
    if name == _ROLLOUT:
        return cut.relevance(attention_rollout(model, cut.inputs, batch_size=batch_size))
    settings = _SETTINGS.get(name, {})
    return cut.relevance(attribute(model, cut.inputs, name, target=classes, batch_size=batch_size, **settings))


def _with_less(cut: Parts, places: NDArray[np.int64], steps: int) -> Iterator[NDArray[np.generic]]:
    """Yield the inputs without the first part, two parts, ... of `steps` equal parts of their order; never all."""
    for step in range(1, steps):
        share = np.floor(cut.counts * step / steps + 0.5)
        yield cut.without(places < share[:, None])


def _scores(model: nn.Module, batches: Iterable[NDArray[np.generic]], batch_size: int | None) -> NDArray[np.float32]:
    return collect(model, batches, [], batch_size=batch_size).scores


def _measures(scores: NDArray[np.float32], classes: NDArray[np.int64]) -> Floats:
    """Return the mean probability and logit of each input's class, (2,), from scores (n, classes)."""
    logits = scores.astype(np.float64)
    logits -= logits.max(1, keepdims=True)
    chosen = np.take_along_axis(logits, classes[:, None], axis=1)[:, 0]
    raw = np.take_along_axis(scores, classes[:, None], axis=1)[:, 0]
    return np.array([(np.exp(chosen) / np.exp(logits).sum(1)).mean(), raw.mean(dtype=np.float64)])
