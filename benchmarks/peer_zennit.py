"""Time zennit and the engine in turns on one network; for the environment of the peers.

Of zennit the package itself is not imported, which asks for torchvision: of that the package index has a build for
CUDA alone, which no torch for the processor loads. The modules for rules and composites need none of it.
"""

import json
import sys
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.bench_relevance import SUBJECTS
from benchmarks.measure import few, medians
from benchmarks.networks import settle
from benchmarks.passes import traced
from benchmarks.peers import enter
from idc_core.lrp.rules import RelevanceSettings


def main(label: str, repeats: int) -> None:
    """Time both on a network, and print the result as JSON."""
    enter("zennit")
    from zennit.composites import LayerMapComposite
    from zennit.rules import Epsilon, Pass
    from zennit.types import Activation, BatchNorm, Convolution, Linear

    subject = next(one for one in SUBJECTS if one.label.startswith(label))
    if subject.readable is None:
        sys.exit(f"{subject.label} is in no form that zennit follows.")
    torch.manual_seed(0)
    model, inputs = settle(subject.build()), subject.inputs()
    inputs = inputs[: few(len(inputs), 2)]
    layers = [layer for layer, module in model.named_modules() if isinstance(module, nn.Conv2d | nn.Linear)]
    size = subject.sizes[-1]
    readable = subject.readable(model).eval()
    rules = [(Activation, Pass()), (BatchNorm, Pass()), (Convolution, Epsilon(1e-6)), (Linear, Epsilon(1e-6))]

    def explain(batch: Tensor, network: nn.Module) -> Tensor:
        given = batch.clone().requires_grad_()
        scores = network(given)
        start = torch.zeros_like(scores)
        start[torch.arange(len(scores)), scores.argmax(1)] = scores.amax(1).detach()
        (relevance,) = torch.autograd.grad(scores, given, start)
        return relevance

    def theirs() -> None:
        with LayerMapComposite(rules).context(readable) as network:
            for batch in inputs.split(size):
                explain(batch, network)

    ours, zennit = medians(partial(traced, model, inputs, layers, RelevanceSettings()), theirs, repeats=repeats)
    what = f"{subject.label}: relevance of all {len(layers)} layers, batches of {size}"
    print(json.dumps([{"what": what, "ours": ours, "theirs": zennit}]))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
