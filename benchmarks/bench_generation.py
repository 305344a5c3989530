"""Differential search: all seeds at once against one seed after the other.

The trained LeNet-1, LeNet-4 and LeNet-5 and tests of MNIST. The slow way is written as the published program goes
about it: one seed at a time, every model's gradient by a pass of its own, predictions by passes of their own after
every step; its pictures are rounded to 8 bits, its objective and its light are those of the batched search, which
needs a gradient at the seed only.
"""

import time

import torch
from torch import Tensor, nn

from benchmarks.measure import Row, few
from idc_core.datasets import load_dataset
from idc_core.generation import differential_search
from idc_core.generation.objectives import _SAFE
from idc_core.models import load_model

STEPS = 50
BATCHED, SINGLE = few(500, 40), few(40, 8)


def by_light() -> list[Row]:
    models = [load_model(f"lenet{number}-mnist") for number in (1, 4, 5)]
    seeds = torch.tensor(load_dataset("mnist", split="test", limit=BATCHED).inputs)
    batched = differential_search(models, seeds, weight_coverage=0.0, iterations=STEPS)
    started = time.perf_counter()
    found = [one_seed(models, seed, int(turned)) for seed, turned in zip(seeds[:SINGLE], batched.turned, strict=False)]
    slow = (time.perf_counter() - started) / max(sum(found), 1)
    if sum(found) != (batched.seed_index < SINGLE).sum():
        raise RuntimeError(f"The slow way has {sum(found)} disagreements, the batched one others.")
    fast = batched.seconds / max(len(batched), 1)
    what = f"one disagreement by light, {BATCHED} seeds at once, {len(batched)} disagreements"
    against = f"one seed after the other, {SINGLE} seeds, {sum(found)} disagreements"
    note = "one run each; the slow way, as the program, takes gradients in every step"
    return [Row(what, fast, against, slow, times_faster=10, note=note)]


def one_seed(models: list[nn.Module], seed: Tensor, turned: int) -> bool:
    """Search from one seed; return whether the models came to disagree."""
    with torch.no_grad():
        labels = [int(model(seed[None]).argmax()) for model in models]
    if len(set(labels)) > 1:
        return True
    brightness, way = 0.0, 0
    picture = seed
    for _ in range(STEPS):
        up = sum(float(gradient(model, picture, labels[0], k == turned).mean()) for k, model in enumerate(models))
        way = way or (-1 if up < 0 else 1)
        if abs(brightness) >= 1:
            brightness, way = 0.0, -way
        brightness = min(max(brightness + way * 10 / 255, -1.0), 1.0)
        picture = torch.round((seed + brightness).clamp(0, 1) * 255) / 255
        with torch.no_grad():
            if len({int(model(picture[None]).argmax()) for model in models}) > 1:
                return True
    return False


def gradient(model: nn.Module, picture: Tensor, label: int, lose: bool) -> Tensor:
    given = picture[None].clone().requires_grad_()
    scores = model(given)[0]
    lead = scores[label] - torch.cat([scores[:label], scores[label + 1 :]]).max()
    return torch.autograd.grad(-lead if lose else lead.clamp(max=_SAFE) / 2, given)[0]


PARTS = {"disagreements by light": by_light}
