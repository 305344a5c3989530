"""Relevance against the plain forward pass of the same inputs, and against captum.

The plain pass is PyTorch's own, default memory format, at the batch size that suits it best among several. The weights
are drawn anew: speed does not depend on them, and no weight file has to be there.
"""

from collections.abc import Callable
from functools import partial

import torch
from captum.attr import LRP
from torch import Tensor, nn

from benchmarks.measure import Row, medians
from idc_core.lrp.rules import RelevanceSettings
from idc_core.models import MODELS
from idc_core.tracing.trace import trace

SUBJECTS = (("lenet5-mnist", (1, 28, 28), 8192, 1.15, 2.0, 4.0), ("convnet-cifar10", (3, 32, 32), 1024, 1.1, 2.2, 2.2))


def run() -> list[Row]:
    rows = []
    for name, shape, count, late_target, all_target, captum_target in SUBJECTS:
        torch.manual_seed(0)
        model = MODELS[name].build().eval()
        inputs = torch.rand(count, *shape)
        layers = [layer for layer, module in model.named_modules() if isinstance(module, nn.Conv2d | nn.Linear)]
        late = [layers[-2]]
        size = best_batch_size(model, inputs)
        plain, one, every, captum = medians(
            partial(forward, model, inputs, size),
            partial(relevance, model, inputs, late),
            partial(relevance, model, inputs, layers),
            partial(with_captum, ForCaptum(model).eval(), inputs, size),
        )
        label = MODELS[name].label
        against = f"plain forward pass, batches of {size}"
        rows += [
            Row(f"{label}, relevance of {late[0]}", one, against, plain, at_most=late_target),
            Row(f"{label}, relevance of all {len(layers)} layers", every, against, plain, at_most=all_target),
            Row(f"{label}, the same", every, "captum LRP", captum, times_faster=captum_target),
        ]
    return rows


def forward(model: nn.Module, inputs: Tensor, size: int) -> None:
    with torch.no_grad():
        for batch in inputs.split(size):
            model(batch)


def best_batch_size(model: nn.Module, inputs: Tensor) -> int:
    """Return the batch size at which the plain pass is fastest."""
    sizes = (32, 64, 128, 256, 512)
    contenders: list[Callable[[], None]] = [partial(forward, model, inputs, size) for size in sizes]
    seconds = medians(*contenders, repeats=5)
    return sizes[seconds.index(min(seconds))]


def relevance(model: nn.Module, inputs: Tensor, layers: list[str]) -> None:
    for _ in trace(model, inputs, layers, RelevanceSettings()):
        pass


def with_captum(model: "ForCaptum", inputs: Tensor, size: int) -> None:
    """Let captum compute the relevance of every layer, which comes with that of the input."""
    for batch in inputs.split(size):
        with torch.no_grad():
            predicted = model(batch).argmax(1)
        LRP(model).attribute(batch, target=predicted)


class ForCaptum(nn.Module):
    """The same network with every activation a module of its own, the only form in which captum follows it."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        parts: list[nn.Module] = []
        for module in model.children():
            parts += [module, nn.ReLU()] if isinstance(module, nn.Conv2d | nn.Linear) else [module]
        first = next(index for index, part in enumerate(parts) if isinstance(part, nn.Linear))
        self.features = nn.Sequential(*parts[:first])
        self.dense = nn.Sequential(*parts[first:-1])

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the scores."""
        return self.dense(self.features(inputs).flatten(1))
