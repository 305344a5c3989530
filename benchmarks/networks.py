"""Networks of today's kinds for the benchmarks, with random weights."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Sum(nn.Module):
    """Adds two values."""

    def forward(self, one: Tensor, other: Tensor) -> Tensor:
        """Return their sum."""
        return one + other


class Block(nn.Module):
    """A residual block; activation functions and the sum are modules of their own; captum needs its own kind of sum."""

    def __init__(
        self, before: int, inner: int, after: int, stride: int, kernels: Sequence[int], add: type[nn.Module]
    ) -> None:
        super().__init__()
        widths = [before, *[inner] * (len(kernels) - 1), after]
        strided = kernels.index(3)
        steps: list[nn.Module] = []
        for place, kernel in enumerate(kernels):
            step = stride if place == strided else 1
            steps += [
                nn.Conv2d(widths[place], widths[place + 1], kernel, step, kernel // 2, bias=False),
                nn.BatchNorm2d(widths[place + 1]),
                nn.ReLU(),
            ]
        self.steps = nn.Sequential(*steps[:-1])
        self.shortcut: nn.Module | None = None
        if stride > 1 or before != after:
            self.shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
        self.add = add()
        self.relu = nn.ReLU()

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the block's output, (n, channels, height, width)."""
        found: Tensor = self.relu(
            self.add(inputs if self.shortcut is None else self.shortcut(inputs), self.steps(inputs))
        )
        return found


class ResNet(nn.Module):
    """Blocks, the mean over positions, and scores."""

    def __init__(self, features: nn.Module, scores: nn.Module) -> None:
        super().__init__()
        self.features, self.scores = features, scores

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the scores of pictures, (n, classes)."""
        found: Tensor = self.scores(self.features(inputs).flatten(1))
        return found


def _resnet(
    stem: Sequence[nn.Module], depths: Sequence[int], kernels: Sequence[int], widening: int, add: type[nn.Module]
) -> nn.Module:
    blocks: list[nn.Module] = []
    before = 64
    for stage, depth in enumerate(depths):
        inner = 64 * 2**stage
        for place in range(depth):
            blocks.append(Block(before, inner, inner * widening, 2 if stage and not place else 1, kernels, add))
            before = inner * widening
    return ResNet(nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1)), nn.Linear(before, 10))


def resnet18(add: type[nn.Module] = Sum) -> nn.Module:
    """Return a ResNet-18 for small pictures: a first convolution of 3 x 3 and no pooling behind it."""
    stem = (nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU())
    return _resnet(stem, (2, 2, 2, 2), (3, 3), 1, add)


def resnet50(add: type[nn.Module] = Sum) -> nn.Module:
    """Return a ResNet-50 for pictures of 224 x 224."""
    stem = (nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    return _resnet(stem, (3, 4, 6, 3), (1, 3, 1), 4, add)


def vit_small() -> nn.Module:
    """Return a ViT-S/16 for pictures of 224 x 224."""
    from transformers import ViTConfig, ViTForImageClassification

    size = {"hidden_size": 384, "num_attention_heads": 6, "intermediate_size": 1536}
    return ViTForImageClassification(ViTConfig(num_hidden_layers=12, num_labels=10, **size))


def vit_base() -> nn.Module:
    """Return a ViT-B/16 for pictures of 224 x 224."""
    from transformers import ViTConfig, ViTForImageClassification

    return ViTForImageClassification(ViTConfig(num_labels=10))


def bert_base() -> nn.Module:
    """Return a classifier of the size of BERT-base."""
    from transformers import BertConfig, BertForSequenceClassification

    return BertForSequenceClassification(BertConfig(num_labels=10))


def llama() -> nn.Module:
    """Return a classifier of two layers as wide as the sixteen of LLaMA 3.2 1B, with few words."""
    from transformers import LlamaConfig, LlamaForSequenceClassification

    size = {"hidden_size": 2048, "intermediate_size": 8192, "num_attention_heads": 32, "num_key_value_heads": 8}
    words = {"vocab_size": 30_000, "pad_token_id": 0}
    return LlamaForSequenceClassification(LlamaConfig(num_hidden_layers=2, num_labels=10, **size, **words))


def settle(model: nn.Module) -> nn.Module:
    """Return the network with statistics of batch normalisation as training leaves them, in evaluation mode."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            torch.nn.init.uniform_(module.running_var, 0.5, 1.5)
            torch.nn.init.normal_(module.running_mean, 0.0, 0.1)
    return model.eval()
