"""The Jacobian-based saliency map attack: a few values changed fully, two at a time."""

from __future__ import annotations

import torch
from torch import Tensor

from idc_core.base.parameters import Parameter
from idc_core.errors import SettingError
from idc_core.perturbation.attacks.registry import Batch, register_attack
from idc_core.perturbation.inputs import stream

_TABLE = 1 << 24
"""Pairs of one look at most, which bounds memory."""


@register_attack(
    "jsma",
    "JSMA",
    "Changes a few values fully, two at a time: the pair with the highest saliency.",
    "Papernot et al., IEEE EuroS&P 2016, algorithm 3 and equation 8",
    Parameter("theta", "Change per value", "Below 0 values are lowered instead of raised.", 1.0, -1.0, 1.0),
    Parameter("gamma", "Share of values", "Maximum share of the values that are changed.", 1.0, 0.001, 1.0),
    random=True,
    batch_size=64,
    passes=lambda values, gamma, **_: max(1, int(values * gamma / 2)),
)
def _jsma(batch: Batch, theta: float, gamma: float) -> Tensor:
    """Return inputs in which pairs of values were changed until the network predicted the wanted class.

    The saliency of a pair is equation 8 of the paper on the scores before the softmax, the best pair is found exactly
    (`_best_pairs`), and an input ends when the wanted class is predicted, when `gamma` of its values have been changed,
    or when no pair is left that helps. Where no class is asked for, each input is given a wrong one at random.
    """
    if theta == 0:
        raise SettingError("theta of JSMA must not be 0: nothing would change.")
    goal = _random_goals(batch) if batch.goal is None else batch.goal
    pictures = batch.inputs.clone(memory_format=torch.contiguous_format)
    flat = pictures.view(len(pictures), -1)
    rows, steps = torch.arange(len(pictures), device=pictures.device), int(flat.shape[1] * gamma / 2 + 1e-9)
    for step in range(steps + 1):
        batch.tick(max(step / (steps + 1), 1 - len(rows) / len(pictures)))
        there, toward, away = _look(batch, pictures[rows], goal[rows])
        rows, toward, away = rows[~there], toward[~there], away[~there]
        if step == steps or not len(rows):
            break
        values = flat[rows]
        free = values < 1 if theta > 0 else values > 0
        sign = 1 if theta > 0 else -1
        pairs, helps = _best_pairs(sign * toward, sign * away, free)
        rows, pairs, values = rows[helps], pairs[helps], values[helps]
        flat[rows] = values.scatter(1, pairs, (values.gather(1, pairs) + theta).clamp(0, 1))
        if not len(rows):  # a network need not take a batch of none
            break
    return pictures


def _random_goals(batch: Batch) -> Tensor:
    """Return a wrong class for every input, drawn from its seed and number, int64 (n,)."""
    steps = [int(stream(batch.seed, int(number)).integers(1, batch.scores.classes)) for number in batch.numbers]
    return (batch.labels + torch.tensor(steps, device=batch.labels.device)) % batch.scores.classes


def _look(batch: Batch, inputs: Tensor, goal: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return who is there, and the gradients (n, values) of the wanted score and of all others together."""
    point = inputs.detach().requires_grad_()
    scores = batch.scores(point)
    goal_scores = scores.gather(1, goal[:, None])
    (toward,) = torch.autograd.grad(goal_scores.sum(), point, retain_graph=True)
    (whole,) = torch.autograd.grad(scores.sum(), point)
    toward, whole = toward.flatten(1), whole.flatten(1)
    return scores.detach().argmax(1) == goal, toward, whole - toward


def _best_pairs(toward: Tensor, away: Tensor, free: Tensor) -> tuple[Tensor, Tensor]:
    """Find the pair of free values, int64 (n, 2), whose change helps most, exactly, and whether one does, bool (n,).

    `toward` and `away`, (n, values), say how much a change of each value raises the wanted score, and the others
    together. The best pair p, q has the largest -(toward_p + toward_q)(away_p + away_q), first factor > 0, second < 0.

    A value that two others beat in both respects is in no best pair: one of the two could take its place. Sorted by
    `toward`, such values are those whose `away` exceeds the second smallest so far, so that a few dozen of hundreds
    remain, and only their pairs are tried.
    """
    toward = torch.where(free, toward, -torch.inf)
    away = torch.where(free, away, torch.inf)
    order = away.argsort(dim=1, stable=True)
    order = order.gather(1, toward.gather(1, order).argsort(dim=1, descending=True, stable=True))
    first, second = toward.gather(1, order), away.gather(1, order)
    least = second.cummin(1).values
    beaten_once = torch.maximum(torch.roll(least, 1, 1), second)
    beaten_once[:, 0] = torch.inf
    next_least = torch.roll(beaten_once.cummin(1).values, 1, 1)
    next_least[:, 0] = torch.inf
    kept = (second <= next_least) & first.isfinite()
    width = max(2, int(kept.sum(1).max()))
    # Kept values first, in their order.
    chosen = kept.to(torch.int8).argsort(dim=1, descending=True, stable=True)[:, :width]
    order, kept = order.gather(1, chosen), kept.gather(1, chosen)
    first = torch.where(kept, first.gather(1, chosen), -torch.inf)
    second = torch.where(kept, second.gather(1, chosen), torch.inf)
    parts = [
        _best_of(first[part], second[part])
        for part in torch.arange(len(order), device=order.device).split(max(1, _TABLE // width**2))
    ]
    places, helps = (torch.cat(pieces) for pieces in zip(*parts, strict=True))
    return order.gather(1, places), helps


def _best_of(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Try all pairs of a few values."""
    gain, loss = (values[:, :, None] + values[:, None, :] for values in (first, second))
    worth = torch.where((gain > 0) & (loss < 0), -gain * loss, -torch.inf)
    width = first.shape[1]
    worth = worth.masked_fill(torch.eye(width, dtype=torch.bool, device=worth.device), -torch.inf).flatten(1)
    best = worth.argmax(1)
    helps = worth.gather(1, best[:, None])[:, 0] > -torch.inf
    return torch.stack((best // width, best % width), 1), helps
