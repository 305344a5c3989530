"""A setup file with a small residual network on class folders; `python resnet.py` trains it first."""

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn.functional import cross_entropy, relu

import idc_core as idc

HERE = Path(__file__).parent
WEIGHTS = HERE / "resnet.safetensors"


class Block(nn.Module):
    def __init__(self, taken, given, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(taken, given, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(given)
        self.conv2 = nn.Conv2d(given, given, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(given)
        self.shortcut = nn.Conv2d(taken, given, 1, stride, bias=False)

    def forward(self, x):
        return relu(self.bn2(self.conv2(relu(self.bn1(self.conv1(x))))) + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.layer1, self.layer2, self.layer3 = Block(16, 24, 2), Block(24, 48, 2), Block(48, 64, 2)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.scores = nn.Linear(64, 10)

    def forward(self, pictures):
        x = self.layer3(self.layer2(self.layer1(relu(self.stem(pictures - 0.5)))))
        return self.scores(self.pool(x).flatten(1))


@idc.dataset("photos")
def read(split):
    return HERE / "photos"


@idc.network("resnet", "Small ResNet", data="photos", layer="layer3")
def build():
    net = ResNet()
    net.load_state_dict(load_file(WEIGHTS))
    return net


if __name__ == "__main__":
    torch.manual_seed(0)
    data, net = idc.load_dataset("photos", "train"), ResNet()
    pictures, targets = torch.tensor(data.inputs), torch.tensor(data.targets)
    optimizer = torch.optim.AdamW(net.parameters(), 0.004)
    for epoch in range(12):
        for batch in torch.randperm(len(targets)).split(64):
            optimizer.zero_grad()
            cross_entropy(net(pictures[batch]), targets[batch]).backward()
            optimizer.step()
        print("epoch", epoch + 1)
    save_file(net.state_dict(), WEIGHTS)
