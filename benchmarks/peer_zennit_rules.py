"""Compare relevance with zennit's by rules and composites on random networks; for the environment of the peers.

Networks have convolutions, batch normalisation behind them, ReLU, both poolings, residual sums and dense layers. zennit
gets its canoniser, sums as its modules, and a stabiliser as small as ours. Run by hand: `make peers`, then
`PYTHONPATH=. .venv-peers/bin/python -m benchmarks.peer_zennit_rules`.
"""

import json
import random
import sys
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.peers import enter
from idc_core.lrp.rules import RelevanceSettings
from idc_core.tracing.trace import trace

SMALL = 1e-14
"""Stabiliser of zennit's rules; it is 1e-6 by default, ours 1e-16."""

EPS = 1e-14
"""Of batch normalisation: zennit's canoniser leaves a division by the root of 1 + eps behind, 5e-6 by default."""


class Residual(nn.Module):
    """Convolutions with normalisation, and a sum with what came in."""

    def __init__(self, width: int, draw: random.Random, add: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width, EPS)
        self.relu1 = nn.ReLU()
        self.conv2, self.norm2 = (
            nn.Conv2d(width, width, draw.choice((1, 3)), padding="same"),
            nn.BatchNorm2d(width, EPS),
        )
        self.add, self.relu2 = add(), nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """Run the block."""
        inner = self.norm2(self.conv2(self.relu1(self.norm1(self.conv1(x)))))
        return self.relu2(self.add(torch.stack([inner, x], -1)))  # type: ignore[no-any-return]


class Plus(nn.Module):
    """A sum as networks write it."""

    def forward(self, x: Tensor) -> Tensor:
        """Add what was stacked."""
        one, other = x.unbind(-1)
        return one + other


def network(seed: int, add: Callable[[], nn.Module]) -> nn.Module:
    """Return a random network in double precision for pictures (n, 3, 12, 12)."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    width, size = 3, 12
    for _ in range(draw.randint(1, 3)):
        new, groups = draw.choice((4, 6, 8)), draw.choice((1, 1, 2)) if width % 2 == 0 else 1
        layers += [nn.Conv2d(width, new, 3, padding=draw.choice((0, 1)), groups=groups, bias=draw.random() < 0.5)]
        size, width = size + 2 * layers[-1].padding[0] - 2, new  # type: ignore[operator, index]
        layers += [nn.BatchNorm2d(new, EPS)] if draw.random() < 0.7 else []
        layers += [nn.ReLU()]
        layers += [Residual(new, draw, add)] if draw.random() < 0.6 else []
        if size >= 6:
            layers += [draw.choice((nn.MaxPool2d, nn.AvgPool2d))(2)]
            size //= 2
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 8), nn.ReLU(), nn.Linear(8, 4)]
    found = nn.Sequential(*layers).double().eval()
    for module in found.modules():
        if isinstance(module, nn.BatchNorm2d):
            for tensor in (module.running_mean, module.weight.data, module.bias.data):
                nn.init.normal_(tensor, 0.0, 0.7)  # type: ignore[arg-type]
            nn.init.uniform_(module.running_var, 0.5, 1.5)  # type: ignore[arg-type]
    return found


def everywhere(rule: Any) -> dict[str, Any]:
    """Return our table of a rule for every layer with weights."""
    return {"conv": rule, "linear": rule, "norm": "pass", "pool": "z", "sum": "z"}


def compared() -> Mapping[str, tuple[Any, Callable[[], Any]]]:
    """Return what is compared: ours, and zennit's composite."""
    from zennit import composites as z
    from zennit.canonizers import SequentialMergeBatchNorm
    from zennit.rules import AlphaBeta, Epsilon, Flat, Gamma, WSquare, ZBox, ZPlus
    from zennit.types import Linear

    merged = {"canonizers": [SequentialMergeBatchNorm()]}

    def of_all(rule: Any) -> Callable[[], Any]:
        return lambda: z.LayerMapComposite([*z.layer_map_base(SMALL), (Linear, rule)], **merged)

    def of_first(rule: Any) -> Callable[[], Any]:
        others = [*z.layer_map_base(SMALL), (Linear, Gamma(0.25, SMALL))]
        return lambda: z.SpecialFirstLayerMapComposite(others, [(Linear, rule)], **merged)

    small: dict[str, Any] = {"stabilizer": SMALL, **merged}
    return {
        "epsilon 1e-6": (everywhere("epsilon"), of_all(Epsilon(1e-6))),
        "epsilon 0.25": (everywhere(("epsilon", 0.25)), of_all(Epsilon(0.25))),
        "gamma 0.25": (everywhere(("gamma", 0.25)), of_all(Gamma(0.25, SMALL))),
        "alpha 2, beta 1": (everywhere(("alpha-beta", 2)), of_all(AlphaBeta(2.0, 1.0, SMALL))),
        "z-plus": (everywhere("z-plus"), of_all(ZPlus(SMALL))),
        "w2 first": (everywhere("gamma") | {"first": "w2"}, of_first(WSquare(SMALL, "bias"))),
        "flat first": (everywhere("gamma") | {"first": "flat"}, of_first(Flat(SMALL))),
        "box first": (everywhere("gamma") | {"first": ("box", -3, 3)}, of_first(ZBox(-3.0, 3.0, SMALL))),
        "w2 first, zennit's with biases": (everywhere("gamma") | {"first": "w2"}, of_first(WSquare(SMALL))),
        "flat everywhere": (everywhere("flat"), of_all(Flat(SMALL))),
        "EpsilonPlus": ("epsilon-plus", lambda: z.EpsilonPlus(**small)),
        "EpsilonPlusFlat": ("epsilon-plus-flat", lambda: z.EpsilonPlusFlat(**small)),
        "EpsilonGammaBox": (
            RelevanceSettings("epsilon-gamma-box", low=-3, high=3),
            lambda: z.EpsilonGammaBox(low=-3.0, high=3.0, **small),
        ),
        "EpsilonAlpha2Beta1": ("epsilon-alpha2-beta1", lambda: z.EpsilonAlpha2Beta1(**small)),
        "EpsilonAlpha2Beta1Flat": ("epsilon-alpha2-beta1-flat", lambda: z.EpsilonAlpha2Beta1Flat(**small)),
        "excitation backprop": ("excitation-backprop", lambda: z.ExcitationBackprop(**small)),
    }


def main(count: int) -> None:
    """Compare, and print for each rule how far the worst of the networks is off, and how many are."""
    enter("zennit")
    from zennit.layer import Sum

    inputs = torch.randn(3, 3, 12, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).clamp(-3, 3)
    found = []
    for what, (ours, theirs) in compared().items():
        off = []
        for seed in range(count):
            model, readable = network(seed, Plus), network(seed, Sum)
            own = next(trace(model, inputs, ["input"], RelevanceSettings.of(ours))).relevance["input"]
            given = inputs.clone().requires_grad_()
            with theirs().context(readable) as explained:
                scores = explained(given)
                start = torch.zeros_like(scores)
                start[torch.arange(len(scores)), scores.argmax(1)] = scores.amax(1).detach()
                (their,) = torch.autograd.grad(scores, given, start)
            off.append(float((own - their).abs().amax() / their.abs().amax().clamp_min(1e-300)))
        worst = max(range(count), key=off.__getitem__)
        found.append({"what": what, "largest": off[worst], "network": worst, "apart": sum(x > 1e-5 for x in off)})
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:] or ["100"]))
