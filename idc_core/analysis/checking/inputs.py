"""Inputs prepared in another way than in training: the ways are tried, and one that predicts far better is named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from idc_core.analysis.checking.detectors import detector, finite_scores, numbers, varied
from idc_core.analysis.checking.evidence import Evidence, kappa, rises_by_chance
from idc_core.errors import ModelError

_Floats = NDArray[np.float32]

_TRIED, _FIRST = 200, 40
"""Tests on which a way is tried, and those before: a way that is clearly worse on them is dropped."""

_WORSE = 0.1
_GAIN, _ERROR, _CHANCE = 0.05, 0.8, 1e-3
"""A way must raise accuracy by this much, or lower the RMSE to this share, and be that improbable by chance."""

_MEANT = 0.3
"""Kappa that a way must reach, and share of the targets' deviation that the RMSE must stay below."""

_IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
"""Means and deviations of RGB pixels in 0..1, as torchvision's networks take them."""

_CAFFE = (103.939, 116.779, 123.68)
"""Means of BGR pixels in 0..255, as Caffe's networks take them."""


def _figures(values: Iterable[float]) -> str:
    """Say moments as options take them; of many features only that each has its own."""
    some = [f"{value:.4g}" for value in values]
    return ",".join(some) if len(some) <= 4 else "the training inputs' own per feature"


@dataclass(frozen=True)
class _Way:
    """A way to prepare inputs.

    Attributes
    ----------
    family : str
        Ways of one family exclude each other.
    seen : str
        What was done, after "With inputs ...".
    change : callable
        `(inputs, evidence) -> inputs`.
    code, file : str
        What to do with a network from code, and with one from a file; {mean} and {deviation} are the training inputs'.
    channels : int or None
        Of the pictures that it is for; None also for vectors.
    """

    family: str
    seen: str
    change: Callable[[_Floats, Evidence], _Floats]
    code: str
    file: str
    channels: tuple[int, ...] | None = (1, 3)


def _moments(evidence: Evidence) -> tuple[_Floats, _Floats]:
    """Return means and deviations of the training inputs: per channel of pictures, per feature of vectors."""
    seen = evidence.training_inputs.astype(np.float64)
    axes = tuple(axis for axis in range(seen.ndim) if axis != (1 if seen.ndim == 4 else seen.ndim - 1))
    deviation = seen.std(axes, keepdims=True)
    return seen.mean(axes, keepdims=True).astype(np.float32), np.maximum(deviation, 1e-6).astype(np.float32)


def _constants(evidence: Evidence) -> tuple[_Floats, _Floats]:
    mean, deviation = (np.array(values, np.float32)[None, :, None, None] for values in _IMAGENET)
    return mean, deviation


def _standardised(moments: Callable[[Evidence], tuple[_Floats, _Floats]]) -> Callable[[_Floats, Evidence], _Floats]:
    def change(inputs: _Floats, evidence: Evidence) -> _Floats:
        mean, deviation = moments(evidence)
        return (inputs - mean) / deviation

    return change


def _undone(moments: Callable[[Evidence], tuple[_Floats, _Floats]]) -> Callable[[_Floats, Evidence], _Floats]:
    def change(inputs: _Floats, evidence: Evidence) -> _Floats:
        mean, deviation = moments(evidence)
        return inputs * deviation + mean

    return change


def _caffe(inputs: _Floats, evidence: Evidence) -> _Floats:
    return inputs[:, ::-1] * np.float32(255) - np.array(_CAFFE, np.float32)[None, :, None, None]


def _channels_last(inputs: _Floats, evidence: Evidence) -> _Floats:
    """Read pictures whose numbers lie as rows, columns, channels and were only given another shape."""
    n, channels, rows, columns = inputs.shape
    return inputs.reshape(n, rows, columns, channels).transpose(0, 3, 1, 2)


def _channels_first(inputs: _Floats, evidence: Evidence) -> _Floats:
    """Read pictures whose numbers lie as channels, rows, columns and were taken for rows, columns, channels."""
    return inputs.transpose(0, 2, 3, 1).reshape(inputs.shape)


_WAYS = (
    _Way(
        "channels",
        "with channels in reverse order (BGR for RGB)",
        lambda inputs, evidence: inputs[:, ::-1],
        "Use inputs.flip(1) in the network's forward, or read the pictures with channels in the order of its training.",
        "Give the network with --order BGR, or convert the pictures.",
        (3,),
    ),
    _Way(
        "place",
        "with rows and columns swapped",
        lambda inputs, evidence: inputs.transpose(0, 1, 3, 2),
        "Swap the last two axes of the inputs where the data are read.",
        "Swap the last two axes of the inputs where the data were written.",
    ),
    _Way(
        "place",
        "read as channels last",
        _channels_last,
        "Pictures (rows, columns, channels) were given another shape: use transpose(0, 3, 1, 2), not reshape.",
        "Pictures (rows, columns, channels) were given another shape: write them by transpose(0, 3, 1, 2).",
        (3,),
    ),
    _Way(
        "place",
        "read as channels first",
        _channels_first,
        "The numbers lie as (channels, rows, columns): reshape them to that, without transpose.",
        "The numbers lie as (channels, rows, columns): write them in that shape, without transpose.",
        (3,),
    ),
    _Way(
        "inverted",
        "inverted (1 - x)",
        lambda inputs, evidence: 1 - inputs,
        "Dark and bright are swapped: use 1 - inputs in the network's forward, or where the data are read.",
        "Dark and bright are swapped: give the network with --mean 1 --deviation=-1, or invert the pictures.",
    ),
    _Way(
        "scale",
        "multiplied by 255",
        lambda inputs, evidence: inputs * 255,
        "Pixels are given in 0..1: multiply them by 255 in the network's forward.",
        "Pixels are given in 0..1: give the network with --factor 255.",
    ),
    _Way(
        "scale",
        "divided by 255",
        lambda inputs, evidence: inputs / np.float32(255),
        "Pixels are given in 0..1 already: do not multiply them by 255 in the network's forward.",
        "Pixels are given in 0..1 already: leave out --factor 255.",
    ),
    _Way(
        "scale",
        "standardised by means and deviations of the training inputs",
        _standardised(_moments),
        "Subtract {mean} and divide by {deviation} in the network's forward, or what its training took.",
        "Give the network with --mean {mean} --deviation {deviation}, or what its training took.",
        None,
    ),
    _Way(
        "scale",
        "standardised by ImageNet's means and deviations",
        _standardised(_constants),
        f"Subtract {_figures(_IMAGENET[0])} and divide by {_figures(_IMAGENET[1])} in the network's forward.",
        f"Give the network with --mean {_figures(_IMAGENET[0])} --deviation {_figures(_IMAGENET[1])}.",
        (3,),
    ),
    _Way(
        "scale",
        "mapped from 0..1 to -1..1",
        lambda inputs, evidence: inputs * 2 - 1,
        "Subtract 0.5 and divide by 0.5 in the network's forward.",
        "Give the network with --mean 0.5 --deviation 0.5.",
    ),
    _Way(
        "scale",
        "with their standardisation undone (training means and deviations)",
        _undone(_moments),
        "They are probably standardised twice: leave it out in the network's forward, or in the data.",
        "They are probably standardised twice: leave out --mean and --deviation.",
        None,
    ),
    _Way(
        "scale",
        "with their standardisation undone (ImageNet's means and deviations)",
        _undone(_constants),
        "They are probably standardised twice: leave it out in the network's forward, or in the data.",
        "They are probably standardised twice: leave out --mean and --deviation.",
        (3,),
    ),
    _Way(
        "scale",
        "as BGR in 0..255 less Caffe's means",
        _caffe,
        f"Turn RGB into BGR, multiply by 255 and subtract {_figures(_CAFFE)} in the network's forward.",
        f"Give the network with --order BGR --factor 255 --mean {_figures(_CAFFE)}.",
        (3,),
    ),
)
"""Every way that is tried; of ways that predict equally well the first one is named."""


def _with_reversed(way: _Way) -> _Way:
    """Return a way on top of channels in reverse order: neither of the two mistakes shows by itself."""
    reverse = _WAYS[0]
    return replace(
        way,
        seen=f"{reverse.seen} and {way.seen}",
        change=lambda inputs, evidence: way.change(np.ascontiguousarray(inputs[:, ::-1]), evidence),
        code=f"{reverse.code} {way.code}",
        file=f"{reverse.file} {way.file}",
        channels=(3,),
    )


_PAIRS = tuple(_with_reversed(way) for way in _WAYS if way.family == "scale" and way.change is not _caffe)
"""Tried where predictions are bad and no single way makes them good."""


@detector("inputs", "inputs prepared in another way than in training", numbers, finite_scores, varied)
def _find_preparation(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Name the way of preparing inputs with which far more are predicted right, and a second one on top of it."""
    inputs = evidence.inputs[:_TRIED].astype(np.float32)
    scores, families = evidence.scores[:_TRIED], {way.family for way in _WAYS}
    for number in range(2):
        best = _best(evidence, inputs, scores, [way for way in _WAYS if way.family in families])
        if best is None and number == 0 and not _meant(evidence, scores):
            best = _best(evidence, inputs, scores, _PAIRS)
        if best is None:
            return
        way, better, others = best
        also = f" ({'; '.join(others)})" if others else ""
        yield (
            f"With inputs {way.seen} {_said(evidence, better)} instead of {_said(evidence, scores)}{also}, "
            f"on {len(inputs)} tests.",
            _todo(evidence, way),
        )
        inputs, scores, families = way.change(inputs, evidence), better, families - {way.family}


def _todo(evidence: Evidence, way: _Way) -> str:
    highest = float(evidence.training_inputs.max())
    if way.seen == "multiplied by 255" and highest <= 2 / 255:
        return f"Training inputs reach only {highest:.2g}: they were divided by 255 twice; do it once."
    mean, deviation = (_figures(values.ravel().tolist()) for values in _moments(evidence))
    return evidence.remedy(way.code, way.file).format(mean=mean, deviation=deviation)


def _best(
    evidence: Evidence, inputs: _Floats, scores: _Floats, ways: Sequence[_Way]
) -> tuple[_Way, _Floats, list[str]] | None:
    """Return the best way that is far better than none, its scores, and others nearly as good."""
    good = []
    for way in ways:
        tried = _scores(evidence, inputs, scores, way) if _fits(way, inputs) else None
        if tried is not None and _far_better(evidence, scores, tried):
            good.append((_merit(evidence, tried).mean(), way, tried))
    if not good:
        return None
    highest, way, better = max(good, key=lambda entry: entry[0])
    near = highest - 0.02 if evidence.test.class_names else 1.05 * highest
    others = [f"{other.seen}: {_said(evidence, tried)}" for merit, other, tried in good if merit >= near]
    return way, better, [entry for entry in others if not entry.startswith(f"{way.seen}:")][:2]


def _fits(way: _Way, inputs: _Floats) -> bool:
    return way.channels is None or (inputs.ndim == 4 and inputs.shape[1] in way.channels)


def _scores(evidence: Evidence, inputs: _Floats, scores: _Floats, way: _Way) -> _Floats | None:
    """Return the scores with a way; None where the network cannot take it, or it is clearly worse."""
    parts: list[_Floats] = []
    for part in (slice(0, _FIRST), slice(_FIRST, len(inputs))):
        if not len(inputs[part]):
            break
        try:
            changed = np.ascontiguousarray(way.change(inputs[part], evidence), np.float32)
            parts.append(evidence.scores_of(changed))
        except ModelError:
            return None  # swapped sides need not fit
        if not np.isfinite(parts[-1]).all() or _hopeless(evidence, scores[: len(parts[0])], parts[0]):
            return None
    return np.concatenate(parts)


def _hopeless(evidence: Evidence, before: _Floats, after: _Floats) -> bool:
    first, then = (float(_merit(evidence, scores).mean()) for scores in (before, after))
    return then < first - _WORSE if evidence.test.class_names else then < 1.5 * first


def _merit(evidence: Evidence, scores: _Floats) -> NDArray[np.float64]:
    """Return 1 for inputs predicted right, else 0; of a regression the squared error, negative."""
    targets = evidence.targets[: len(scores)]
    if evidence.test.class_names:
        right: NDArray[np.bool_] = scores.argmax(1) == targets
        return right.astype(np.float64)
    error = np.asarray(scores[:, 0] - targets, np.float64)
    return np.negative(np.square(error))


def _far_better(evidence: Evidence, before: _Floats, after: _Floats) -> bool:
    first, then = _merit(evidence, before), _merit(evidence, after)
    if rises_by_chance(int((then > first).sum()), int((then < first).sum())) > _CHANCE:
        return False
    if not _meant(evidence, after):
        return False
    if not evidence.test.class_names:
        return float(then.mean()) > _ERROR**2 * float(first.mean())
    return float(then.mean() - first.mean()) >= _GAIN


def _meant(evidence: Evidence, scores: _Floats) -> bool:
    """Whether predictions clearly depend on the inputs."""
    targets = evidence.targets[: len(scores)]
    if not evidence.test.class_names:
        return float(np.sqrt(-_merit(evidence, scores).mean())) < (1 - _MEANT) * float(targets.std())
    return kappa(targets.astype(np.int64), scores.argmax(1), scores.shape[1]) >= _MEANT


def _said(evidence: Evidence, scores: _Floats) -> str:
    merit = float(_merit(evidence, scores).mean())
    return f"accuracy is {100 * merit:.1f} %" if evidence.test.class_names else f"the RMSE is {np.sqrt(-merit):.4g}"
