"""Compare the inputs in which each channel mattered most with zennit-crp's; for the environment of the peers.

Convolutions of two trained networks and a random one with residual sums. Run by hand: `make peers`, then
`PYTHONPATH=. .venv-peers/bin/python -m benchmarks.peer_crp`.
"""

import json
import sys
import tempfile
import types
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmarks.peer_zennit_rules import SMALL, Plus, network
from benchmarks.peers import enter
from idc_core.importance.maximisation import USUAL, Strongest, strongest_inputs

_ALIKE = 1e-4
"""Relative difference below which two shares of relevance are one number: single precision sums in another order."""


@dataclass(frozen=True)
class Subject:
    """A network, the same with everything that zennit needs to see as a module, and inputs.

    `layers` are convolutions by their names in the first, with those in the second.
    """

    label: str
    model: nn.Module
    readable: nn.Module
    layers: dict[str, str]
    inputs: NDArray[Any]


def shipped(name: str, data: str, steps: str, count: int) -> Subject:
    """Return a trained network; `steps` are its layers in their order, "relu" and "flat" between them."""
    from idc_core.datasets import load_dataset
    from idc_core.models import load_model

    model = load_model(name)
    between = {"relu": nn.ReLU, "flat": nn.Flatten}
    modules = [between[step]() if step in between else model.get_submodule(step) for step in steps.split()]
    layers = {step: str(place) for place, step in enumerate(steps.split()) if step.startswith("conv")}
    return Subject(name, model, nn.Sequential(*modules), layers, load_dataset(data, "test", count).inputs)


def random_residual(seed: int, count: int, add: type[nn.Module]) -> Subject:
    """Return a random network with batch normalisation and residual sums."""
    model, readable = network(seed, Plus), network(seed, add)
    layers = [name for name, module in model.named_modules() if isinstance(module, nn.Conv2d)]
    drawn = np.random.default_rng(seed).standard_normal((count, 3, 12, 12)).clip(-3, 3)
    return Subject(f"random residual network {seed}", model, readable, dict(zip(layers, layers, strict=True)), drawn)


def theirs(subject: Subject, classes: Tensor) -> dict[str, tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Return zennit-crp's inputs and shares of relevance of every layer, (SAMPLE_SIZE, channels) each."""
    from crp.attribution import CondAttribution
    from crp.concepts import ChannelConcept
    from crp.helper import load_maximization
    from crp.visualization import FeatureVisualization
    from zennit.canonizers import SequentialMergeBatchNorm
    from zennit.composites import LayerMapComposite, layer_map_base
    from zennit.rules import Epsilon
    from zennit.types import Linear

    dtype = next(subject.readable.parameters()).dtype
    pairs = list(zip(torch.from_numpy(subject.inputs).to(dtype), classes.tolist(), strict=True))
    composite = LayerMapComposite(
        [*layer_map_base(SMALL), (Linear, Epsilon(1e-6))], canonizers=[SequentialMergeBatchNorm()]
    )
    with tempfile.TemporaryDirectory() as folder:
        concepts = {layer: ChannelConcept() for layer in subject.layers.values()}
        found = FeatureVisualization(CondAttribution(subject.readable), pairs, concepts, path=folder)
        found.run(composite, 0, len(pairs), batch_size=100)
        return {
            layer: tuple(np.array(part) for part in load_maximization(found.RelMax.PATH, name)[:2])
            for layer, name in subject.layers.items()
        }


def compare(subject: Subject) -> list[dict[str, object]]:
    """Compare each convolution: in how many channels the inputs are the same, in their order and but for equal ones."""
    with torch.no_grad():
        dtype = next(subject.model.parameters()).dtype
        classes = subject.model(torch.from_numpy(subject.inputs).to(dtype)).argmax(1)
    rows = []
    for layer, (inputs, shares) in theirs(subject, classes).items():
        own = strongest_inputs(subject.model, subject.inputs, layer)
        ordered = (own.inputs == inputs[:USUAL]).all(0)
        rows.append(
            {
                "network": subject.label,
                "layer": layer,
                "channels": len(ordered),
                "same order": int(ordered.sum()),
                "same but for equal ones": int(alike(own, inputs, shares).sum()),
                "channels without relevance": int((own.values[0] <= 0).sum()),
            }
        )
    return rows


def alike(own: Strongest, inputs: NDArray[np.int64], shares: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return whether each channel's inputs are the same set, or differ only in inputs as strong as the last one."""
    same = []
    for channel in range(own.inputs.shape[1]):
        ours, peer = own.inputs[:, channel], inputs[:USUAL, channel]
        last = own.values[-1, channel]
        strengths = [*own.values[~np.isin(ours, peer), channel], *shares[:USUAL][~np.isin(peer, ours), channel]]
        same.append(np.allclose(strengths, last, rtol=_ALIKE, atol=1e-9))
    return np.array(same)


def main() -> None:
    """Compare, and print a row per layer as JSON."""
    enter("zennit")
    # zennit-crp draws pictures with torchvision, which the environment lacks; ranking needs none.
    functional = types.ModuleType("torchvision.transforms.functional")
    functional.gaussian_blur = None  # type: ignore[attr-defined]
    for name in ("torchvision", "torchvision.transforms"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules[functional.__name__] = functional
    from zennit.layer import Sum

    subjects = (
        shipped("lenet5-mnist", "mnist", "conv1 relu pool1 conv2 relu pool2 flat fc1 relu fc2 relu logits", 2000),
        shipped(
            "convnet-cifar10",
            "cifar10",
            "conv1 relu conv2 relu pool1 conv3 relu conv4 relu pool2 flat fc1 relu fc2 relu logits",
            1000,
        ),
        random_residual(0, 1000, Sum),
    )
    print(json.dumps([row for subject in subjects for row in compare(subject)], indent=1))


if __name__ == "__main__":
    main()
