"""Passes on a GPU against the plain forward pass, and against torch's own gradient, of the same inputs on it.

Relevance of all layers cannot be cheaper than torch's own forward and backward pass to the same layers. The goal for
fitting and measuring coverage of a late layer is 0.8 of the plain pass. All sums are whole float32, also those of
torch's own passes.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.measure import Row, few, medians
from benchmarks.networks import resnet50, settle, vit_base
from benchmarks.passes import forward, gradient, traced
from idc_core.base import devices
from idc_core.coverage import IDC
from idc_core.lrp.rules import RelevanceSettings

NOTE = "" if torch.cuda.is_available() else "No GPU was at hand: nothing was measured here."

INPUTS, BATCH = 1024, 128

SUBJECTS: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "ResNet-50": (resnet50, "features.18"),
    "ViT-B": (vit_base, "vit.layers.10"),
}
"""What builds each network, and its late layer."""


def measure(label: str) -> list[Row]:
    """Measure one network."""
    build, late = SUBJECTS[label]
    torch.manual_seed(0)
    model = settle(build()).to(devices.choose("cuda"))
    inputs = torch.rand(few(INPUTS), 3, 224, 224)
    weighted = [name for name, part in model.named_modules() if isinstance(part, nn.Conv2d | nn.Linear)]
    plain, own, every, cover = medians(
        partial(forward, model, inputs, BATCH),
        partial(gradient, model, inputs, BATCH),
        partial(traced, model, inputs, weighted, RelevanceSettings()),
        partial(_covered, model, inputs, late),
    )
    rate = f"{len(inputs) / every:,.0f} pictures per second; plain {len(inputs) / plain:,.0f}"
    return [
        Row(f"{label}, relevance of all layers", every, "plain forward pass", plain, at_most=3, note=rate),
        Row(f"{label}, the same", every, "forward and backward by autograd", own, at_most=1.15),
        Row(f"{label}, fit and update", cover, "two plain forward passes", 2 * plain, at_most=1 / 0.8),
    ]


PARTS = {label: partial(measure, label) for label in SUBJECTS if torch.cuda.is_available()}


def _covered(model: nn.Module, inputs: Tensor, layer: str) -> None:
    IDC(model, layer, m=6).fit(inputs).update(inputs)
