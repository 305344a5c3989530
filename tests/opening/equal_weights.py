"""Pairs of networks with equal weights that compute something else, by what tells them apart."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

SIDE = 6


class Acts(nn.Module):
    """Two layers, and what is done between them and behind them: an attribute of each sort."""

    slope = 0.1

    def __init__(self, act: Callable[..., torch.Tensor] = torch.relu, **attributes: object) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.hidden, self.scores, self.act = nn.Linear(SIDE, 12), nn.Linear(12, 3), act
        for name, value in attributes.items():
            setattr(self, name, value)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.scores(self.act(self.hidden(x)))


class Tempered(Acts):
    def forward(self, x):
        return super().forward(x) / self.temperature


class Shifted(Acts):
    def forward(self, x):
        return self.scores(torch.relu(self.hidden(x)) + self.shift)


class Configured(Acts):
    def forward(self, x):
        return self.scores(F.leaky_relu(self.hidden(x), self.config.slope))


class OfDict(Acts):
    def forward(self, x):
        return self.scores(F.leaky_relu(self.hidden(x), self.config["acts"][0]["slope"]))


class OfClass(Acts):
    def forward(self, x):
        return self.scores(F.leaky_relu(self.hidden(x), self.slope))


class Steeper(OfClass):
    slope = 0.7


class Helped(Acts):
    def between(self, x):
        return torch.relu(x)

    def forward(self, x):
        return self.scores(self.between(self.hidden(x)))


class HelpedOtherwise(Helped):
    def between(self, x):
        return torch.tanh(x)


class Branched(Acts):
    def forward(self, x):
        h = self.hidden(x)
        return self.scores(torch.relu(h) if self.mode == "relu" else torch.tanh(h))


class Hidden(Acts):
    def __init__(self, value):
        super().__init__()
        self.register_buffer("gain", torch.tensor(value), persistent=False)

    def forward(self, x):
        return self.scores(torch.relu(self.hidden(x)) * self.gain)


class Normed(nn.Module):
    def __init__(self, eps):
        super().__init__()
        torch.manual_seed(0)
        self.hidden, self.norm, self.scores = nn.Linear(SIDE, 12), nn.LayerNorm(12, eps=eps), nn.Linear(12, 3)

    def forward(self, x):
        return self.scores(torch.relu(self.norm(self.hidden(x))))


class Coded(Acts):
    def forward(self, x):
        return super().forward(x) / self.code


class Listed(Acts):
    def forward(self, x):
        for function in self.last_hooks:
            x = function(x)
        return super().forward(x)


class Slotted:
    __slots__ = ("slope",)

    def __init__(self, slope):
        self.slope = slope


class Rare(Acts):
    """Differs on inputs alone that no probe holds."""

    def forward(self, x):
        return self.scores(torch.relu(self.hidden(x)).clamp(max=self.most))


class Power:
    def __init__(self, power):
        self.power = power

    def __call__(self, x):
        return torch.relu(x) ** self.power


def leaky(slope):
    return lambda h: F.leaky_relu(h, slope)


def with_default(slope):
    def act(h, slope=slope):
        return F.leaky_relu(h, slope)

    return act


def with_attribute(slope):
    def act(h):
        return F.leaky_relu(h, act.slope)

    act.slope = slope
    return act


def chain(*layers):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(SIDE, 12), *layers, nn.Linear(12, 3))


def hooked(factor):
    net = Acts()
    net.hidden.register_forward_hook(lambda module, given, output: output * factor)
    return net


def prehooked(factor):
    net = Acts()
    net.register_forward_pre_hook(lambda module, given: (given[0] * factor,))
    return net


def patched(function):
    net = Acts()
    net.forward = lambda x: net.scores(function(net.hidden(x)))
    return net


def method(function):
    net = Acts()
    net.forward = functools.partial(_outside, net, function)
    return net


def _outside(net, function, x):
    return net.scores(function(net.hidden(x)))


def swapped(order):
    net = Acts()
    net.order = order
    net.forward = lambda x: net.scores(torch.relu(net.hidden(x)))[:, net.order]
    return net


def convolution(**options):
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Unflatten(1, (1, SIDE)), nn.Conv1d(1, 4, 3, **options), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(),
        nn.Linear(4, 3),
    )  # fmt: skip


def pooled(pool):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(SIDE, 12), nn.ReLU(), nn.Unflatten(1, (1, 12)), pool, nn.Flatten(), nn.Linear(6, 3))


PAIRS: dict[str, tuple[Callable[[], nn.Module], Callable[[], nn.Module]]] = {
    "activation": (lambda: Acts(), lambda: Acts(torch.tanh)),
    "activation of nn.functional": (lambda: Acts(F.relu), lambda: Acts(F.gelu)),
    "rare values": (lambda: Acts(F.relu), lambda: Acts(F.relu6)),
    "a bound that no probe meets": (lambda: Rare(most=50.0), lambda: Rare(most=60.0)),
    "lambda": (lambda: Acts(leaky(0.0)), lambda: Acts(leaky(5.0))),
    "default of a function": (lambda: Acts(with_default(0.0)), lambda: Acts(with_default(0.5))),
    "attribute of a function": (lambda: Acts(with_attribute(0.0)), lambda: Acts(with_attribute(0.5))),
    "partial": (
        lambda: Acts(functools.partial(F.leaky_relu, negative_slope=0.1)),
        lambda: Acts(functools.partial(F.leaky_relu, negative_slope=0.2)),
    ),
    "callable object": (lambda: Acts(Power(1.0)), lambda: Acts(Power(2.0))),
    "temperature": (lambda: Tempered(temperature=1.0), lambda: Tempered(temperature=2.0)),
    "temperature, slightly": (lambda: Tempered(temperature=1.0), lambda: Tempered(temperature=1.0 + 1e-6)),
    "tensor": (lambda: Shifted(shift=torch.zeros(12)), lambda: Shifted(shift=torch.ones(12))),
    "tensor in a list": (
        lambda: Acts(Power(1.0), kept=[torch.zeros(2)]),
        lambda: Acts(Power(1.0), kept=[torch.ones(2)]),
    ),
    "array": (
        lambda: Shifted(shift=float(np.float64(0.25)), told=np.zeros(3)),
        lambda: Shifted(shift=float(np.float64(0.25)), told=np.ones(3)),
    ),
    "buffer that is not kept": (lambda: Hidden(1.0), lambda: Hidden(3.0)),
    "configuration object": (
        lambda: Configured(config=SimpleNamespace(slope=0.1)),
        lambda: Configured(config=SimpleNamespace(slope=0.4)),
    ),
    "object with slots": (lambda: Configured(config=Slotted(0.1)), lambda: Configured(config=Slotted(0.4))),
    "name of ours": (lambda: Coded(code=1.0), lambda: Coded(code=2.0)),
    "name of torch's": (lambda: Listed(last_hooks=[torch.abs]), lambda: Listed(last_hooks=[torch.neg])),
    "configuration in depth": (
        lambda: OfDict(config={"acts": [{"slope": 0.1}]}),
        lambda: OfDict(config={"acts": [{"slope": 0.4}]}),
    ),
    "attribute of the class": (lambda: OfClass(), lambda: Steeper()),
    "method": (lambda: Helped(), lambda: HelpedOtherwise()),
    "text": (lambda: Branched(mode="relu"), lambda: Branched(mode="tanh")),
    "truth value": (lambda: Branched(mode=True), lambda: Branched(mode="relu")),
    "epsilon of a norm": (lambda: Normed(1e-5), lambda: Normed(1e-1)),
    "module without weights": (lambda: chain(nn.ReLU()), lambda: chain(nn.Tanh())),
    "parameter of a module": (lambda: chain(nn.LeakyReLU(0.1)), lambda: chain(nn.LeakyReLU(0.2))),
    "one module more": (lambda: chain(nn.Identity()), lambda: chain(nn.ReLU())),
    "softplus": (lambda: chain(nn.Softplus(1.0)), lambda: chain(nn.Softplus(3.0))),
    "threshold": (lambda: chain(nn.Threshold(0.1, 0.0)), lambda: chain(nn.Threshold(0.3, 0.0))),
    "hard tanh": (lambda: chain(nn.Hardtanh(-1, 1)), lambda: chain(nn.Hardtanh(-2, 2))),
    "elu": (lambda: chain(nn.ELU(1.0)), lambda: chain(nn.ELU(0.3))),
    "hook": (lambda: hooked(1.0), lambda: hooked(2.0)),
    "hook before": (lambda: prehooked(1.0), lambda: prehooked(2.0)),
    "forward of the object": (lambda: patched(torch.relu), lambda: patched(torch.tanh)),
    "forward as a partial": (lambda: method(torch.relu), lambda: method(torch.sigmoid)),
    "order of the scores": (lambda: swapped([0, 1, 2]), lambda: swapped([2, 0, 1])),
    "padding": (lambda: convolution(padding=1), lambda: convolution(padding=2)),
    "padding mode": (
        lambda: convolution(padding=1),
        lambda: convolution(padding=1, padding_mode="circular"),
    ),
    "stride": (lambda: convolution(stride=1), lambda: convolution(stride=2)),
    "dilation": (lambda: convolution(dilation=1), lambda: convolution(dilation=2)),
    "pooling": (lambda: pooled(nn.MaxPool1d(2)), lambda: pooled(nn.AvgPool1d(2))),
    "window": (lambda: pooled(nn.MaxPool1d(2)), lambda: pooled(nn.MaxPool1d(3, 2, 1))),
}  # fmt: skip
"""Networks of `SIDE` numbers and three classes."""
