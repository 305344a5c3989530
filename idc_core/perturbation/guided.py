"""Gaussian white noise on the most relevant pixels."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from idc_core.base.progress import Progress
from idc_core.lrp.captures import INPUT
from idc_core.lrp.rules import NamedRule, RelevanceSettings
from idc_core.perturbation.inputs import (
    SHARE,
    Pictures,
    as_numbers,
    as_pictures,
    check_seed,
    largest_weights,
    pixel_count,
    stream,
)
from idc_core.perturbation.noise import DEVIATION, check_deviation, noise_values
from idc_core.tracing.trace import trace

_KNOWN: ContextVar[dict[Hashable, NDArray[np.bool_]] | None] = ContextVar("places of relevant pixels", default=None)
"""Where the most relevant pixels of pictures are, within `places_once`."""


def guided_noise(
    model: nn.Module,
    inputs: object,
    pixels: int | None = None,
    *,
    share: float = SHARE,
    deviation: float = DEVIATION,
    rule: NamedRule = "epsilon",
    seed: int = 0,
    numbers: object = None,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
    **parameters: object,
) -> Pictures:
    """Add Gaussian white noise to the most relevant pixels of every picture.

    As `random_noise`, with its parameters and errors; `rule`, its parameters, `batch_size` and `on_progress` are of the
    relevance of the pixels for the predicted class, as in `idc_core.relevance`. Pixels without any relevance get no
    noise, so that fewer may be changed.

    Notes
    -----
    S. Gerasimou et al., "Importance-Driven Deep Learning System Testing", ICSE 2020, RQ2: the set U_O+DI. Pixels are
    ranked as in RQ1: by the absolute value of their relevance summed over the colours, of equal ones the one further
    up, then further left.
    """
    pictures = as_pictures(inputs)
    count, channels, height, width = pictures.shape
    chosen, spread = pixel_count(pixels, share, height * width), check_deviation(deviation)
    seed, ids = check_seed(seed), as_numbers(numbers, count)
    settings = RelevanceSettings.of(rule, **parameters)
    noisy = pictures.copy()
    flat = noisy.reshape(count, channels, height * width)

    def find() -> NDArray[np.bool_]:
        batches = trace(model, pictures, [INPUT], settings, batch_size=batch_size, on_progress=on_progress)
        found = [relevant_pixels(batch.relevance[INPUT], chosen).cpu().numpy() for batch in batches]
        return np.concatenate(found) if found else np.zeros((0, height * width), np.bool_)

    known = _KNOWN.get()
    if not count:
        return noisy
    if known is None:
        places = find()
    else:
        content = hashlib.sha256(np.ascontiguousarray(pictures).data).digest()
        key = (id(model), content, pictures.shape, chosen, repr(settings))
        if key not in known:
            known[key] = find()
        places = known[key]
    for row, where in enumerate(places):
        values = noise_values(stream(seed, int(ids[row])), chosen, channels, spread)
        marked = np.flatnonzero(where)
        flat[row][:, marked] += values[:, : len(marked)]
    return np.clip(noisy, 0, 1, out=noisy)


@contextmanager
def places_once() -> Iterator[None]:
    """Find the most relevant pixels of equal pictures once: within, networks are not trained, and seeds may differ."""
    token = _KNOWN.set({})
    try:
        yield
    finally:
        _KNOWN.reset(token)


def relevant_pixels(relevance: Tensor, count: int) -> Tensor:
    """Return where the `count` most relevant pixels are, bool (n, H * W), from relevance (n, C, H, W)."""
    weight = relevance.sum(1).abs().flatten(1)
    return largest_weights(weight, torch.full_like(weight[:, 0], count, dtype=torch.int64))
