"""RQ1 of the DeepImportance paper: whether important neurons move more than others when relevant pixels change."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from idc_core.datasets import Dataset
from idc_core.errors import DataError, SettingError
from idc_core.experiments.random_neurons import Seeds, check_neurons, check_seeds, shuffled_others
from idc_core.lrp.interception import INPUT
from idc_core.lrp.rules import RelevanceSettings
from idc_core.perturbation.guided import relevant_pixels
from idc_core.perturbation.inputs import SHARE, largest_weights, share_of
from idc_core.progress import Progress
from idc_core.tracing.trace import neuron_activation, neuron_axes, trace

UNKNOWN = 1
"""Token of a word outside the vocabulary, which stands in for the words that are taken out; 0 is padding."""


@dataclass(frozen=True, eq=False)
class Changes:
    """How every neuron of a layer changed when the most relevant part of each input was.

    Attributes
    ----------
    layer : str
    before, after : ndarray, float32 (n, neurons)
        Activations for the inputs as they are, and as they were changed.
    changed : ndarray, int64 (n,)
        How many pixels, or words, of each input were changed.
    settings : dict
        Share, rule and its parameters, by name.
    """

    layer: str
    before: NDArray[np.float32]
    after: NDArray[np.float32]
    changed: NDArray[np.int64]
    settings: dict[str, Any]


@dataclass(frozen=True)
class Summary:
    """Distances of many inputs in a few numbers; `low` and `high` are the 5th and the 95th percentile."""

    mean: float
    deviation: float
    low: float
    q1: float
    median: float
    q3: float
    high: float


@dataclass(frozen=True)
class Comparison:
    """Important against random neurons.

    Attributes
    ----------
    important, random : Summary
        Distances over the inputs; of random neurons over inputs and seeds.
    ratio : float
        Mean distance of the important neurons over that of the random ones; infinite where random ones never move.
    share_more : float
        Share of pairs of an input and a seed in which the important neurons move more, 0..1.
    effect : float
        Paired effect size: mean over the inputs of the important neurons' distance less that of the random ones
        (averaged over the seeds), divided by the standard deviation of that difference. 0 where nothing differs.
    seeds_won : int
        For how many seeds the important neurons' mean is the larger one.
    """

    important: Summary
    random: Summary
    ratio: float
    share_more: float
    effect: float
    seeds_won: int


@dataclass(frozen=True, eq=False)
class RQ1:
    """Distances by which neurons moved, an input and a seed.

    Attributes
    ----------
    layer : str
    important : ndarray, int64 (m,)
    random_neurons : ndarray, int64 (seeds, m)
    seeds : tuple of int
    distance : ndarray, float64 (n,)
        L2 distance between the important neurons' activations before and after, in units of activation.
    random_distance : ndarray, float64 (seeds, n)
        The same of the random neurons.
    scaled, random_scaled : ndarray, float64 (n,) and (seeds, n)
        The same with each neuron's change divided by its standard deviation over the inputs as they are. Neurons that
        do not vary over them have no scale: they are left out, and the distance of the v others is multiplied by
        ``sqrt(m / v)``, so that dead neurons make no side smaller.
    constant : int
        How many neurons of the layer do not vary over the inputs (most of them never fire).
    changed : ndarray, int64 (n,)
        How many pixels, or words, of each input were changed.
    settings : dict
        As in `Changes`.
    """

    layer: str
    important: NDArray[np.int64]
    random_neurons: NDArray[np.int64]
    seeds: tuple[int, ...]
    distance: NDArray[np.float64]
    random_distance: NDArray[np.float64]
    scaled: NDArray[np.float64]
    random_scaled: NDArray[np.float64]
    constant: int
    changed: NDArray[np.int64]
    settings: dict[str, Any]

    def distances(self, scaled: bool = False) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the distances of the important (n,) and of the random neurons (seeds, n), scaled or as they are."""
        return (self.scaled, self.random_scaled) if scaled else (self.distance, self.random_distance)

    def summary(self, scaled: bool = False) -> Comparison:
        """Compare important and random neurons over all inputs and seeds."""
        own, others = self.distances(scaled)
        difference = own - others.mean(0)
        spread = float(difference.std())
        mean = float(others.mean())
        return Comparison(
            summarise(own),
            summarise(others),
            ratio=float(own.mean()) / mean if mean else float("inf"),
            share_more=float((own > others).mean()),
            effect=float(difference.mean()) / spread if spread else 0.0,
            seeds_won=int((own.mean() > others.mean(1)).sum()),
        )


def summarise(distances: NDArray[np.float64]) -> Summary:
    """Return what a box plot shows of distances of any shape."""
    low, q1, median, q3, high = (float(v) for v in np.quantile(distances, [0.05, 0.25, 0.5, 0.75, 0.95]))
    return Summary(float(distances.mean()), float(distances.std()), low, q1, median, q3, high)


def rq1(
    model: nn.Module,
    test: Dataset,
    layer: str,
    important: ArrayLike,
    *,
    share: float = SHARE,
    rule: str | RelevanceSettings = "epsilon",
    seeds: Seeds = 5,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
    **parameters: Any,
) -> RQ1:
    """Change the most relevant pixels of every input and measure how far neurons move: `measure`, then `compare`.

    Parameters
    ----------
    model, test, layer, share, rule, batch_size, on_progress, **parameters
        As in `measure`.
    important, seeds
        As in `compare`.

    Returns
    -------
    RQ1

    Raises
    ------
    IdcError
        As `measure` and `compare`.
    """
    found = measure(
        model, test, layer, share=share, rule=rule, batch_size=batch_size, on_progress=on_progress, **parameters
    )
    return compare(found, important, seeds)


def measure(
    model: nn.Module,
    test: Dataset,
    layer: str,
    *,
    share: float = SHARE,
    rule: str | RelevanceSettings = "epsilon",
    batch_size: int | None = None,
    on_progress: Progress | None = None,
    **parameters: Any,
) -> Changes:
    """Change the most relevant part of every input and record all neurons of a layer before and after.

    Parameters
    ----------
    model : Module
        Left as it was found.
    test : Dataset
        Images in 0..1, or texts.
    layer : str
        A name from ``named_modules()``; a convolution's neuron is a channel, its activation the mean over positions.
    share : float
        Share of an input's pixels, or of a text's words, that is changed, in 0..1; rounded down, at least one.
    rule, **parameters
        How relevance is propagated from the predicted class to the input, as in `idc_core.relevance`.
    batch_size : int, optional
        Default: chosen from the network's size.
    on_progress : Progress, optional
        Called after every batch.

    Returns
    -------
    Changes

    Raises
    ------
    DataError
        If pixels lie outside 0..1.
    SettingError
        If the share is outside 0..1, or the rule or its parameters are not as described.
    ModelError, UnsupportedOperationError, CancelledError
        As `idc_core.tracing.trace.trace`.

    Notes
    -----
    S. Gerasimou et al., "Importance-Driven Deep Learning System Testing", ICSE 2020, RQ1. What the paper's text leaves
    open follows the program published with it: pixels are ranked by the absolute value of their relevance, those
    without relevance are left alone, and a chosen pixel is flipped: each of its colours becomes 0 if it is above one
    half, and 1 otherwise. A pixel is a position here, with relevance summed over its colours; the program
    ranks colours one by one. Of equally relevant pixels the one further up, then further left, comes first. Texts,
    which the paper has none of, lose their most relevant words to the token of unknown words.
    """
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise SettingError(f"share must be a number above 0 and at most 1, not {share!r}.")
    text = bool(test.vocabulary)
    if not text and len(test) and not (test.inputs.min() >= 0 and test.inputs.max() <= 1):
        low, high = test.inputs.min(), test.inputs.max()
        raise DataError(f"RQ1 flips pixels in 0..1; those of {test.name!r} reach from {low:.3g} to {high:.3g}.")
    settings = RelevanceSettings.of(rule, **parameters)
    axis = neuron_axes(model, [layer])[layer]
    before: list[NDArray[np.float32]] = []
    counts: list[NDArray[np.int64]] = []

    def changed() -> Iterator[Tensor]:
        watched = trace(model, test, [INPUT, layer], settings, batch_size=batch_size, on_progress=on_progress)
        for batch in watched:
            before.append(_per_neuron(batch.activations[layer], axis))
            inputs, relevance = batch.activations[INPUT], batch.relevance[INPUT]
            perturbed, chosen = (replace_words if text else flip_pixels)(inputs, relevance, share)
            counts.append(chosen.cpu().numpy())
            yield perturbed

    after = [
        _per_neuron(batch.activations[layer], axis) for batch in trace(model, changed(), [layer], batch_size=batch_size)
    ]
    return Changes(
        layer,
        np.concatenate(before),
        np.concatenate(after),
        np.concatenate(counts),
        {"share": share, **settings.as_dict()},
    )


def _per_neuron(value: Tensor, axis: int) -> NDArray[np.float32]:
    return np.asarray(neuron_activation(value, axis).float().cpu().numpy(), np.float32)


def flip_pixels(images: Tensor, relevance: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """Flip the most relevant pixels of images: dark becomes light and light dark, in every colour.

    Parameters
    ----------
    images, relevance : Tensor, float (n, C, H, W)
        Pixels in 0..1, and their relevance.
    share : float
        Share of the H x W pixels that is flipped, at most; rounded down, at least one.

    Returns
    -------
    images : Tensor, (n, C, H, W)
    flipped : Tensor, int64 (n,)
        How many pixels of each image were flipped: fewer where fewer have any relevance.
    """
    chosen = relevant_pixels(relevance, share_of(relevance[0, 0].numel(), share))
    flat = images.flatten(2)
    flipped = torch.where(chosen[:, None], (flat <= 0.5).to(flat.dtype), flat)
    return flipped.reshape(images.shape), chosen.sum(1)


def replace_words(tokens: Tensor, relevance: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """Replace the most relevant words of texts by the token of unknown words.

    Parameters
    ----------
    tokens : Tensor, int64 (n, length)
        0 is padding, 1 a word outside the vocabulary; neither is replaced.
    relevance : Tensor, float (n, length)
    share : float
        Share of a text's words that is replaced, at most; rounded down, at least one.

    Returns
    -------
    tokens : Tensor, int64 (n, length)
    replaced : Tensor, int64 (n,)
        How many words of each text were replaced.
    """
    words = (tokens > UNKNOWN).sum(1)
    weight = torch.where(tokens > UNKNOWN, relevance.abs(), 0)
    chosen = largest_weights(
        weight, torch.tensor([share_of(int(count), share) for count in words], device=tokens.device)
    )
    return torch.where(chosen, UNKNOWN, tokens), chosen.sum(1)


def compare(changes: Changes, important: ArrayLike, seeds: Seeds = 5) -> RQ1:
    """Compare how far important neurons moved with as many random ones of the same layer.

    Parameters
    ----------
    changes : Changes
        From `measure`.
    important : int (m,)
        At most half of the layer's neurons.
    seeds : int or sequence of int
        Draws of m random neurons from those that are not important.

    Returns
    -------
    RQ1

    Raises
    ------
    SettingError
        If the layer has not m other neurons, or neurons or seeds are not as described.
    """
    neurons = changes.before.shape[1]
    chosen, listed = check_neurons(important, neurons), check_seeds(seeds)
    m = len(chosen)
    if 2 * m > neurons:
        raise SettingError(
            f"Layer {changes.layer!r} has {neurons} neurons, so that there are no {m} random ones beside the {m} "
            f"important ones; choose m of at most {neurons // 2}."
        )
    drawn = np.stack([shuffled_others(chosen, neurons, seed)[:m] for seed in listed])
    # Not by the deviation, which in floating point is not exactly 0 for a constant neuron.
    varying = changes.before.max(0) > changes.before.min(0)
    plain = np.stack([_distance(changes, of, np.ones(m)) for of in (chosen, *drawn)])
    scaled = np.stack([_distance(changes, of, _scale(changes, of, varying)) for of in (chosen, *drawn)])
    return RQ1(
        changes.layer,
        chosen,
        drawn,
        listed,
        plain[0],
        plain[1:],
        scaled[0],
        scaled[1:],
        int((~varying).sum()),
        changes.changed,
        changes.settings,
    )


def _scale(changes: Changes, of: NDArray[np.int64], varying: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the factor of each neuron's change, float64 (m,): 0 for those that do not vary, others stand in."""
    alive = varying[of]
    if not alive.any():
        return np.zeros(len(of))
    spread = changes.before[:, of].std(0, dtype=np.float64)
    return np.where(alive, np.sqrt(len(of) / alive.sum()) / np.where(alive, spread, 1.0), 0.0)


def _distance(changes: Changes, of: NDArray[np.int64], factor: NDArray[np.float64]) -> NDArray[np.float64]:
    moved = (changes.after[:, of].astype(np.float64) - changes.before[:, of]) * factor
    return np.asarray(np.sqrt(np.square(moved).sum(1)), np.float64)
