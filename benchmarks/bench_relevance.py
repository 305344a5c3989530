"""Relevance against the plain forward pass of the same inputs, and against captum.

The plain pass is PyTorch's own, default memory format, at the batch size that suits it best among several. The weights
are drawn anew: speed does not depend on them, and no weight file has to be there. captum follows networks whose every
operation is a module that it has a rule for; where it refuses, nothing is compared. The relevance of all layers can
hardly cost less than PyTorch's own forward and backward pass to the first of them, so that this is the limit that it
is held against; libraries that change gradients are in `bench_peers`.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial

import torch
from captum.attr import LRP
from captum.attr._utils.custom_modules import Addition_Module
from torch import Tensor, nn

import idc_core
from benchmarks.measure import Row, few, medians, peak_memory, quick
from benchmarks.networks import bert_base, llama, resnet18, resnet50, settle, vit_small
from benchmarks.passes import forward, gradient, traced
from idc_core.lrp.rules import RULES, RelevanceSettings
from idc_core.models import MODELS

SIZES = (32, 64, 128, 256, 512)
"""Batch sizes that may suit a small network best."""


@dataclass(frozen=True)
class Subject:
    """A network, its inputs, and what is expected of it."""

    label: str
    build: Callable[[], nn.Module]
    inputs: Callable[[], Tensor]
    sizes: tuple[int, ...]  # batch sizes tried for the plain pass
    targets: tuple[float, float]  # activations and relevance of one late layer, in forward passes
    limit: float  # relevance of all layers, in forward and backward passes
    _: KW_ONLY
    readable: Callable[[nn.Module], nn.Module] | None = None  # the network in a form that captum follows
    faster: float | None = None  # how many times faster than captum
    rules: tuple[str, ...] = ("epsilon",)
    repeats: int = 7


SUBJECTS = (
    Subject(
        "LeNet-5, 8,192 digits",
        lambda: MODELS["lenet5-mnist"].build(),
        lambda: torch.rand(8192, 1, 28, 28),
        SIZES,
        (0.65, 0.65),
        1.1,
        readable=lambda model: ForCaptum(model),
        faster=4.0,
    ),
    Subject(
        "ConvNet, 1,024 x 3 x 32 x 32",
        lambda: MODELS["convnet-cifar10"].build(),
        lambda: torch.rand(1024, 3, 32, 32),
        SIZES,
        (0.8, 0.8),
        1.1,
        readable=lambda model: ForCaptum(model),
        faster=2.2,
    ),
    Subject(
        "ResNet-18, 256 x 3 x 32 x 32",
        partial(resnet18, Addition_Module),
        lambda: torch.randn(256, 3, 32, 32),
        (16, 32, 64, 128),
        (0.95, 1.1),
        1.15,
        readable=lambda model: model,
        faster=1.0,
        repeats=5,
    ),
    Subject(
        "ResNet-50, 16 x 3 x 224 x 224",
        partial(resnet50, Addition_Module),
        lambda: torch.randn(16, 3, 224, 224),
        (4, 8, 16),
        (1.05, 1.1),
        1.15,
        readable=lambda model: model,
        faster=1.0,
        repeats=5,
    ),
    Subject(
        "ViT-S/16, 32 x 3 x 224 x 224",
        vit_small,
        lambda: torch.randn(32, 3, 224, 224),
        (4, 8, 16),
        (1.1, 1.1),
        1.1,
        rules=("epsilon", "attnlrp"),
        repeats=5,
    ),
    Subject(
        "BERT-base, 32 x 128 tokens",
        bert_base,
        lambda: torch.randint(5, 30_000, (32, 128)),
        (4, 8, 16),
        (1.1, 1.1),
        1.1,
        rules=("epsilon", "attnlrp"),
        repeats=5,
    ),
    Subject(
        "two layers of LLaMA 3.2 1B's width, 8 x 128 tokens",
        llama,
        lambda: torch.randint(5, 30_000, (8, 128)),
        (2, 4, 8),
        (1.1, 1.1),
        1.1,
        rules=("epsilon", "attnlrp"),
        repeats=5,
    ),
)


def explained(subject: Subject) -> list[Row]:
    """Return the rows of one network."""
    torch.manual_seed(0)
    model, inputs = settle(subject.build()), subject.inputs()
    inputs = inputs[: few(len(inputs), 2)]
    layers = [layer for layer, module in model.named_modules() if isinstance(module, nn.Conv2d | nn.Linear)]
    late = layers[-2:-1]
    size = best_batch_size(model, inputs, subject.sizes)
    passes: dict[str, Callable[[], None]] = {
        f"activations of {late[0]}": partial(traced, model, inputs, late, None),
        f"relevance of {late[0]}": partial(traced, model, inputs, late, RelevanceSettings()),
    }
    limited = {
        f"{RULES[rule].label} of all {len(layers)} layers": partial(
            traced, model, inputs, layers, RelevanceSettings(rule)
        )
        for rule in subject.rules
    }
    peers = {"forward and backward by autograd": partial(gradient, model, inputs, size)}
    if subject.readable is not None:
        peers["captum LRP"] = partial(with_captum, subject.readable(model).eval(), inputs, size)
    contenders = {**passes, **limited, **peers}
    plain, *medium = medians(partial(forward, model, inputs, size), *contenders.values(), repeats=subject.repeats)
    seconds = dict(zip(contenders, medium, strict=True))
    against = f"plain forward pass, batches of {size}"
    rows = [
        Row(f"{subject.label}: {what}", seconds[what], against, plain, at_most=target, memory=peak_memory(ours))
        for (what, ours), target in zip(passes.items(), subject.targets, strict=True)
    ]
    for what, ours in limited.items():
        rows.append(Row(f"{subject.label}: {what}", seconds[what], against, plain, memory=peak_memory(ours)))
        for name in peers:
            goal = {"times_faster": subject.faster} if name == "captum LRP" else {"at_most": subject.limit}
            rows.append(Row(f"{subject.label}: the same", seconds[what], name, seconds[name], **goal))
    return rows


def kept_tensors() -> list[Row]:
    """Measure `idc_core.relevance`, which keeps every tensor, on inputs that come in one batch."""
    torch.manual_seed(0)
    model, inputs = MODELS["lenet5-mnist"].build().eval(), torch.rand(512, 1, 28, 28)
    layers = ["conv1", "conv2", "fc1", "fc2"]
    size = best_batch_size(model, inputs, (64, 128, 256, 512))
    ours = partial(idc_core.relevance, model, inputs, layers)
    plain, kept = medians(partial(forward, model, inputs, size), ours, repeats=25)
    against = f"plain forward pass, batches of {size}"
    what = "LeNet-5, 512 digits: idc.relevance of 4 layers, tensors kept"
    return [Row(what, kept, against, plain, at_most=1.8, memory=peak_memory(ours))]


def best_batch_size(model: nn.Module, inputs: Tensor, sizes: tuple[int, ...] = SIZES) -> int:
    """Return the batch size at which the plain pass is fastest."""
    if quick():
        return sizes[0]
    contenders: list[Callable[[], None]] = [partial(forward, model, inputs, size) for size in sizes]
    seconds = medians(*contenders, repeats=5)
    return sizes[seconds.index(min(seconds))]


def with_captum(model: nn.Module, inputs: Tensor, size: int) -> None:
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


PARTS = {**{one.label: partial(explained, one) for one in SUBJECTS}, "idc.relevance, tensors kept": kept_tensors}
