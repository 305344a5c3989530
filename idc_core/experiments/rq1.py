"""RQ1 of the DeepImportance paper: whether important neurons move more than others when relevant pixels change."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from idc_core.base.progress import Progress
from idc_core.datasets import Dataset
from idc_core.datasets.dataset import PLAIN
from idc_core.errors import DataError, SettingError
from idc_core.evidence.draws import against_draws
from idc_core.evidence.finding import Finding
from idc_core.experiments.random_neurons import Seeds, check_neurons, check_seeds, distinct_draws
from idc_core.lrp.captures import INPUT
from idc_core.lrp.rules import NamedRule, RelevanceSettings
from idc_core.perturbation.guided import relevant_pixels
from idc_core.perturbation.inputs import SHARE, largest_weights, share_of
from idc_core.tracing.neurons import neuron_activation, neuron_axes
from idc_core.tracing.trace import TraceBatch, trace


@dataclass(frozen=True, eq=False)
class Changes:
    """Activations of all neurons of a layer before and after the most relevant part of each input was changed."""

    layer: str
    before: NDArray[np.float32]
    """(n, neurons)."""
    after: NDArray[np.float32]
    changed: NDArray[np.int64]
    """Number of pixels, or words, changed in each input, (n,)."""
    settings: dict[str, object]
    """Share, rule and its parameters, by name."""


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
class _Comparison:
    """Important against random neurons."""

    important: Summary
    random: Summary
    """Over inputs and seeds."""
    ratio: float
    """Mean distance of the important neurons over that of the random ones; infinite where random ones never move."""
    share_more: float
    """Share of pairs of an input and a seed in which the important neurons move more, 0..1."""
    effect: float
    """Paired effect size: mean over the inputs of the important neurons' distance less that of the random ones
    (averaged over the seeds), divided by the standard deviation of that difference. 0 where nothing differs."""
    seeds_won: int
    """Seeds for which the important neurons' mean is the larger one."""


@dataclass(frozen=True, eq=False)
class RQ1:
    """Distances by which neurons moved, per input and seed.

    `distance` (n,) and `random_distance` (seeds, n) are L2 distances between activations before and after, in units of
    activation. In `scaled` and `random_scaled` each neuron's change is divided by its standard deviation over the
    unchanged inputs. Neurons that do not vary over them have no scale: they are left out, and the distance of the
    v others is multiplied by ``sqrt(m / v)``, so that dead neurons make no side smaller. `constant` is their
    number in the layer. `seeds` are those that draw different neurons: where the important ones are half of the layer
    there is one draw of others.
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
    settings: dict[str, object]

    def distances(self, scaled: bool = False) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the distances of the important (n,) and of the random neurons (seeds, n), scaled or as they are."""
        return (self.scaled, self.random_scaled) if scaled else (self.distance, self.random_distance)

    def finding(self, claim: str, what: str, looks: int = 1) -> Finding:
        """Return the important neurons' mean distance, in their own deviations, among the draws of random ones."""
        return against_draws("moved", claim, float(self.scaled.mean()), self.random_scaled.mean(1), what, looks=looks)

    def summary(self, scaled: bool = False) -> _Comparison:
        """Compare important and random neurons over all inputs and seeds."""
        own, others = self.distances(scaled)
        difference = own - others.mean(0)
        spread = float(difference.std())
        mean = float(others.mean())
        return _Comparison(
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


def rq1(model: nn.Module, test: Dataset, layer: str, important: ArrayLike, seeds: Seeds = 5, **settings: Any) -> RQ1:
    """Change the most relevant pixels of every input and measure the distances: `measure`, then `compare_neurons`."""
    return compare_neurons(measure(model, test, layer, **settings), important, seeds)


def measure(
    model: nn.Module,
    test: Dataset,
    layer: str,
    *,
    share: float = SHARE,
    rule: NamedRule = "epsilon",
    batch_size: int | None = None,
    on_progress: Progress | None = None,
    **parameters: object,
) -> Changes:
    """Change the most relevant part of every input and record all neurons of a layer before and after.

    `test` holds images in 0..1, or texts. `share` is that of an input's pixels, or of a text's words, that is changed;
    rounded down, at least one. Relevance is propagated from the predicted class.

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

    active = partial(_per_neuron, layer=layer, axis=axis)

    def changed(batch: TraceBatch) -> Tensor:
        before.append(active(batch))
        inputs, relevance = batch.activations[INPUT], batch.relevance[INPUT]
        if text:
            perturbed, chosen = _replace_words(inputs, relevance, share, test.special)
        else:
            perturbed, chosen = _flip_pixels(inputs, relevance, share)
        counts.append(chosen.cpu().numpy())
        return perturbed

    watched = trace(model, test, [INPUT, layer], settings, batch_size=batch_size, on_progress=on_progress)
    after = list(map(active, trace(model, map(changed, watched), [layer], batch_size=batch_size)))
    return Changes(
        layer,
        np.concatenate(before),
        np.concatenate(after),
        np.concatenate(counts),
        {"share": share, **settings.as_dict()},
    )


def _per_neuron(batch: TraceBatch, layer: str, axis: int) -> NDArray[np.float32]:
    active = neuron_activation(batch.activations[layer], axis, batch.kept)
    return np.asarray(active.float().cpu().numpy(), np.float32)


def _flip_pixels(images: Tensor, relevance: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """Flip the most relevant pixels of images: dark becomes light and light dark, in every colour.

    Images are float (n, C, H, W) in 0..1. Return them with the number of flipped pixels, int64 (n,): at most `share` of
    the H x W pixels, rounded down, at least one; fewer where fewer have any relevance.
    """
    chosen = relevant_pixels(relevance, share_of(relevance[0, 0].numel(), share))
    flat = images.flatten(2)
    flipped = torch.where(chosen[:, None], (flat <= 0.5).to(flat.dtype), flat)
    return flipped.reshape(images.shape), chosen.sum(1)


def _replace_words(
    tokens: Tensor, relevance: Tensor, share: float, special: Sequence[int] = PLAIN
) -> tuple[Tensor, Tensor]:
    """Replace the most relevant words of texts by the token of unknown words.

    Tokens are int64 (n, length); what is no word, `special` as in `Dataset`, is left alone. Return them with the number
    of replaced words, int64 (n,): at most `share` of a text's words, rounded down, at least one.
    """
    are_words = torch.isin(tokens, torch.tensor(special, device=tokens.device), invert=True)
    words = are_words.sum(1)
    weight = torch.where(are_words, relevance.abs(), 0)
    chosen = largest_weights(
        weight, torch.tensor([share_of(int(count), share) for count in words], device=tokens.device)
    )
    return torch.where(chosen, special[1], tokens), chosen.sum(1)


def compare_neurons(changes: Changes, important: ArrayLike, seeds: Seeds = 5) -> RQ1:
    """Compare the distances of the important neurons, at most half of the layer, with those of as many random ones."""
    neurons = changes.before.shape[1]
    chosen, listed = check_neurons(important, neurons), check_seeds(seeds)
    m = len(chosen)
    if 2 * m > neurons:
        raise SettingError(
            f"Layer {changes.layer!r} has {neurons} neurons, so that there are no {m} random ones beside the {m} "
            f"important ones; choose m of at most {neurons // 2}."
        )
    draws = distinct_draws(chosen, neurons, m, listed)
    drawn = np.stack([*draws.values()])
    # Not by the deviation, which in floating point is not exactly 0 for a constant neuron.
    varying = changes.before.max(0) > changes.before.min(0)
    plain = np.stack([_distance(changes, of, np.ones(m)) for of in (chosen, *drawn)])
    scaled = np.stack([_distance(changes, of, _scale(changes, of, varying)) for of in (chosen, *drawn)])
    return RQ1(
        changes.layer,
        chosen,
        drawn,
        tuple(draws),
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
