"""A setup file with a network on a table; `python wine.py` writes the table and trains the network first."""

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn

import idc_core as idc

HERE = Path(__file__).parent


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.BatchNorm1d(13, affine=False)
        self.hidden1, self.hidden2, self.scores = nn.Linear(13, 24), nn.Linear(24, 12), nn.Linear(12, 3)

    def forward(self, features):
        return self.scores(torch.relu(self.hidden2(torch.relu(self.hidden1(self.scale(features))))))


@idc.dataset("wine")
def read(split):
    return HERE / "wine.csv"


@idc.network("wine-net", "Network on wine", data="wine", layer="hidden2")
def build():
    net = Net()
    net.load_state_dict(load_file(HERE / "wine.safetensors"))
    return net


if __name__ == "__main__":
    from sklearn.datasets import load_wine

    wine = load_wine(as_frame=True)
    wine.data.assign(label=[wine.target_names[one] for one in wine.target]).to_csv(HERE / "wine.csv", index=False)
    torch.manual_seed(0)
    data, net = idc.load_dataset("wine", "train"), Net()
    features, targets = torch.tensor(data.inputs), torch.tensor(data.targets)
    optimizer = torch.optim.Adam(net.parameters(), 0.01)
    for _ in range(200):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(features), targets).backward()
        optimizer.step()
    save_file(net.state_dict(), HERE / "wine.safetensors")
