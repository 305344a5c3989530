"""Networks of a person's own, as a setup file: a table, a regression, words, pictures, a time series."""

import numpy as np
import torch
from sklearn.datasets import load_diabetes, load_wine
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

import idc_core as idc
from idc_core.datasets import Items


def third(values, split):
    test = np.arange(len(values)) % 3 == 0
    return values[test if split == "test" else ~test]


def trained(net, read, loss):
    torch.manual_seed(0)
    inputs, targets = (torch.as_tensor(np.array(one)) for one in read("train"))
    inputs = inputs.float() if inputs.is_floating_point() else inputs
    targets = targets.float() if targets.is_floating_point() else targets
    optimizer = torch.optim.Adam(net.parameters(), 0.02)
    for _ in range(60):
        optimizer.zero_grad()
        loss(net(inputs), targets).backward()
        optimizer.step()
    return net


@idc.dataset("own-wine", class_names=("barolo", "grignolino", "barbera"))
def wine(split):
    data = load_wine(as_frame=True)
    scaled = (data.data - data.data.mean()) / data.data.std()
    return third(scaled, split), third(data.target.to_numpy(), split)


@idc.network("own-mlp", data="own-wine")
def mlp():
    torch.manual_seed(0)
    return trained(nn.Sequential(nn.Linear(13, 8), nn.ReLU(), nn.Linear(8, 3)), wine, cross_entropy)


@idc.dataset("own-diabetes")
def diabetes(split):
    data = load_diabetes(as_frame=True)
    return third(20 * data.data, split), third(data.target.to_numpy(float) / 100, split)


@idc.network("own-regression", data="own-diabetes")
def regression():
    torch.manual_seed(0)
    return trained(nn.Sequential(nn.Linear(10, 8), nn.ReLU(), nn.Linear(8, 1), nn.Flatten(0)), diabetes, mse_loss)


GOOD, BAD = ("good", "fine", "great", "nice"), ("bad", "poor", "awful", "dull")
WORDS = ("", "?", "the", "a", "and", "of", *GOOD, *BAD, "film", "book", "music", "play")


def tokens(split):
    rng = np.random.default_rng(split == "test")
    targets = np.arange(90) % 2
    ids = rng.integers(2, len(WORDS), (90, 12))
    ids[:, 3] = np.where(targets, rng.integers(10, 14, 90), rng.integers(6, 10, 90))
    ids[:, 8] = np.where(targets, rng.integers(10, 14, 90), rng.integers(6, 10, 90))
    ids[:, 10:] = 0
    return ids, targets


@idc.dataset("own-texts", class_names=("good", "bad"))
def texts(split):
    ids, targets = tokens(split)
    return Items(ids, targets, WORDS, tuple(" ".join(WORDS[one] for one in row if one) for row in ids))


class TokenNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(len(WORDS), 8, padding_idx=0)
        self.hidden = nn.Linear(8, 8)
        self.scores = nn.Linear(8, 2)

    def forward(self, ids):
        return self.scores(torch.relu(self.hidden(self.embedding(ids).mean(1))))


@idc.network("own-tokens", data="own-texts")
def token_net():
    torch.manual_seed(0)
    return trained(TokenNet(), tokens, cross_entropy)


@idc.dataset("own-named-texts", class_names=("good", "bad"))
def named_texts(split):
    ids, targets = tokens(split)
    return Items({"ids": ids, "mask": ids != 0, "lengths": (ids != 0).sum(1)}, targets, WORDS)


class NamedTokenNet(nn.Module):
    """Reads tokens that a mask shows, and answers once per token."""

    def __init__(self):
        super().__init__()
        self.net = TokenNet()

    def forward(self, *, ids, mask, lengths):
        words = self.net.embedding(ids).cumsum(1) * mask[..., None] / lengths[:, None, None]
        return {"found": (self.net.scores(torch.relu(self.net.hidden(words))),)}


@idc.network("own-named", data="own-named-texts", explain="token-9")
def named_token_net():
    found = NamedTokenNet()
    found.net = token_net()
    return found


@idc.dataset("own-pictures")
def pictures(split):
    from sklearn.datasets import load_digits

    data = load_digits()
    return third(data.images[:300, None] / 16, split), third(data.target[:300], split)


@idc.network("own-cnn", data="own-pictures")
def cnn():
    torch.manual_seed(0)
    layers = nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 12), nn.ReLU(), nn.Linear(12, 10)
    return trained(nn.Sequential(*layers), pictures, cross_entropy)


@idc.dataset("own-series", class_names=("slow", "fast"))
def series(split):
    rng, targets = np.random.default_rng(split == "test"), np.arange(90) % 2
    time = np.arange(32)
    waves = [np.sin(time * (0.3 + 0.4 * one) + rng.uniform(0, 6)) for one in targets]
    return np.array([[wave, np.gradient(wave)] for wave in waves]) + rng.normal(0, 0.1, (90, 2, 32)), targets


@idc.network("own-conv1d", data="own-series")
def conv1d():
    torch.manual_seed(0)
    layers = nn.Conv1d(2, 6, 5), nn.ReLU(), nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(24, 8), nn.ReLU()
    return trained(nn.Sequential(*layers, nn.Linear(8, 2)), series, cross_entropy)


class Segmenting(nn.Module):
    """Scores at every pixel, as segmentation gives them."""

    def __init__(self):
        super().__init__()
        self.conv, self.hidden, self.last = nn.Conv2d(1, 8, 3), nn.Conv2d(8, 8, 3), nn.Conv2d(8, 10, 1)

    def forward(self, pictures):
        return {"out": self.last(torch.relu(self.hidden(torch.relu(self.conv(pictures)))))}


@idc.network("own-segmenting", data="own-pictures", layer="hidden", explain="mean-pixels")
def segmenting():
    torch.manual_seed(0)
    return trained(Segmenting(), pictures, lambda maps, targets: cross_entropy(maps["out"].mean((2, 3)), targets))
