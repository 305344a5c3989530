"""The two networks that the original program was measured on, rebuilt from their weights."""

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

NAMES = {"block1_conv1": "conv1", "block2_conv1": "conv2", "softmax": "logits", "before_softmax": "logits"}
LAYERS = {
    "LeNet1": ("input", "conv1", "pool1", "conv2", "pool2", "logits"),
    "LeNet5": ("input", "conv1", "pool1", "conv2", "pool2", "fc1", "fc2", "logits"),
}


class ReferenceLeNet(nn.Module):
    """Convolutions, pools and dense layers with the original's names; maps are flattened with the channels last."""

    def __init__(self, weights: dict[str, np.ndarray]) -> None:
        super().__init__()
        stored = {NAMES.get(key.split("/")[0], key.split("/")[0]): key.split("/")[0] for key in weights}
        self.dense = [name for name in ("fc1", "fc2", "logits") if name in stored]
        for name in ("conv1", "conv2", *self.dense):
            kernel, bias = weights[f"{stored[name]}/kernel"], weights[f"{stored[name]}/bias"]
            if kernel.ndim == 4:
                module: nn.Module = nn.Conv2d(kernel.shape[2], kernel.shape[3], kernel.shape[:2])
                kernel = kernel.transpose(3, 2, 0, 1)
            else:
                module = nn.Linear(*kernel.shape)
                kernel = kernel.T
            module.load_state_dict({"weight": torch.tensor(kernel), "bias": torch.tensor(bias)})
            self.add_module(name, module)
        self.pool1, self.pool2 = nn.MaxPool2d(2), nn.MaxPool2d(2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool1(F.relu(self.conv1(x)))
        x = self.pool2(F.relu(self.conv2(x)))
        x = x.permute(0, 2, 3, 1).flatten(1)
        for name in self.dense[:-1]:
            x = F.relu(getattr(self, name)(x))
        return self.logits(x)


def load_network(folder: Path, name: str, dtype: torch.dtype = torch.float64) -> nn.Module:
    with np.load(folder / f"{name}_weights.npz", allow_pickle=False) as weights:
        return ReferenceLeNet(dict(weights)).to(dtype).eval()


def load_images(folder: Path, split: str) -> np.ndarray:
    """Return the 1,000 images as the network reads them, float32 (n, 1, 28, 28) in 0..1."""
    with np.load(folder / "images.npz", allow_pickle=False) as images:
        return (images[f"{split}_images"].astype(np.float32) / 255)[:, None]


def channels_last(values: np.ndarray) -> np.ndarray:
    return values.transpose(0, 2, 3, 1) if values.ndim == 4 else values
