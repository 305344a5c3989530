"""Other criteria: five in one pass, surprise against dnn-tip, NLC against a plain version.

LeNet-5 and images of MNIST's size. The "plain" versions are written as the published PyTorch programs go about it: one
run a criterion with its own passes, batches of 100, layer after layer, coverage renewed after every batch.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.bench_idc import strokes
from benchmarks.bench_relevance import best_batch_size
from benchmarks.measure import Row, few, medians
from benchmarks.passes import forward
from idc_core.coverage import CRITERIA
from idc_core.coverage.adequacy import DistanceAdequacy, LikelihoodAdequacy
from idc_core.coverage.distribution import NLC
from idc_core.coverage.streamed import measure
from idc_core.models import MODELS
from idc_core.tracing.traces import Traces

LAYERS = ("conv1", "conv2", "fc1", "fc2", "logits")
FIVE = ("nc", "kmnc", "nbc", "snac", "tknc")
BATCH = 100


def structural() -> list[Row]:
    torch.manual_seed(0)
    model = MODELS["lenet5-mnist"].build().eval()
    train, test = strokes(few(60_000)), strokes(few(10_000))
    size = best_batch_size(model, test)

    def passes() -> None:
        forward(model, train, size)
        forward(model, test, size)

    def together() -> list[float]:
        return measure([CRITERIA[name](model, LAYERS) for name in FIVE], train, test)

    ours, plain = medians(together, passes, repeats=5)
    apart = medians(partial(five_runs, model, train, test), repeats=1)[0]
    what = f"NC, KMNC, NBC, SNAC and TKNC of 5 layers, {len(train):,} training and {len(test):,} test images"
    return [
        Row(what, ours, f"the forward passes, batches of {size}", plain, at_most=1.2),
        Row("the same", ours, "plain version, a run each", apart, times_faster=3.8, note="two runs of the latter"),
    ]


def surprises() -> list[Row]:
    random = np.random.default_rng(0)
    known, asked = few(2_000, 1_000), few(10_000)
    train, tests = (np.maximum(random.normal(size=(count, 84)) + 0.5, 0) for count in (known, asked))
    classes, predicted = random.integers(10, size=known), random.integers(10, size=asked)
    dsa, lsa = medians(
        lambda: DistanceAdequacy(train, classes)(tests, predicted), lambda: LikelihoodAdequacy(train)(tests)
    )
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder, "given.npz")
        np.savez(given, train=train, classes=classes, tests=tests, predicted=predicted)
        theirs = {name: dnn_tip(name, given) for name in ("DSA", "DSA without garbage collection", "LSA")}
    check("DSA", DistanceAdequacy(train, classes)(tests, predicted), theirs["DSA"][1])
    check("LSA", LikelihoodAdequacy(train)(tests), theirs["LSA"][1])
    shape, note = f"{asked:,} x {known:,} x 84", "one run of dnn-tip, in a process of its own"
    bare = theirs["DSA without garbage collection"][0]
    return [
        Row(f"DSA, {shape}", dsa, "dnn-tip", theirs["DSA"][0], times_faster=400, note=note),
        Row("the same", dsa, "dnn-tip, whose garbage collections are left out", bare, times_faster=100),
        Row(f"LSA, one density, {shape}", lsa, "dnn-tip", theirs["LSA"][0], times_faster=3, note=note),
    ]


def check(label: str, ours: np.ndarray, theirs: np.ndarray) -> None:
    apart = float(np.max(np.abs(ours - theirs) / np.abs(theirs)))
    if apart > 1e-8:
        raise AssertionError(f"{label}: values differ by {apart:.1e}")


def dnn_tip(name: str, given: Path) -> tuple[float, np.ndarray]:
    """Let dnn-tip tell the surprise in a process that holds nothing else, and return its seconds and values."""
    subprocess.run([sys.executable, "-c", DNN_TIP, name, str(given)], check=True, capture_output=True)
    with np.load(given.with_name("found.npz")) as found:
        return float(found["seconds"]), found["values"]


DNN_TIP = """
import gc, sys, time
from pathlib import Path
import numpy as np
from dnn_tip import surprise
name, given = sys.argv[1], np.load(sys.argv[2])
train, classes, tests, predicted = (given[key] for key in ("train", "classes", "tests", "predicted"))
if name != "DSA":
    gc.collect = lambda: 0
start = time.perf_counter()
if name == "LSA":
    values = surprise.LSA(train, var_threshold=1e-5, max_features=None)(tests)
else:
    values = surprise.DSA(train, classes)(tests, predicted)
np.savez(Path(sys.argv[2]).with_name("found.npz"), seconds=time.perf_counter() - start, values=values)
"""


def nlc() -> list[Row]:
    activations = torch.rand(10_000, 236, generator=torch.Generator().manual_seed(0))
    model = nn.Sequential(nn.Linear(236, 236))
    traces = Traces(activations.numpy(), {"0": activations.numpy()}, {}, {"0": (236,)})
    ours, plain = medians(lambda: NLC(model, "0", "nothing").update(traces).score, partial(plain_nlc, activations))
    expected, found = plain_nlc(activations), NLC(model, "0", "nothing").update(traces).score
    if abs(found - expected) > 1e-3 * expected:
        raise AssertionError(f"NLC: {found} against {expected}")
    return [
        Row("NLC, 10,000 x 236", ours, at_most=0.11 / 3, note="NeuraL-Coverage takes 0.11 s on such a machine"),
        Row("the same", ours, "plain version", plain, times_faster=2),
    ]


def plain_nlc(activations: Tensor) -> float:
    """Renew mean, covariance and norm after every batch, as the published estimator does.

    It is written for several classes: rows are spread over the classes, of which there is one, weights are spread to
    the shape of what they weigh, and the norm is taken before and after each batch.
    """
    neurons = activations.shape[1]
    seen, mean, covariance = torch.zeros(1), torch.zeros(1, neurons), torch.zeros(1, neurons, neurons)
    norm = 0.0
    for batch in activations.split(BATCH):
        member = torch.zeros(len(batch), 1).scatter_(1, torch.zeros(len(batch), 1, dtype=torch.long), 1)
        members = member[:, :, None].expand(-1, -1, neurons)
        spread = batch[:, None].expand(-1, 1, -1) * members
        counts = members.sum(0).clamp(min=1)
        new = spread.sum(0) / counts
        deviations = spread - new * members
        of_batch = torch.bmm(deviations.permute(1, 2, 0), deviations.permute(1, 0, 2))
        of_batch = of_batch / counts[:, :, None].expand(-1, -1, neurons)
        added = member.sum(0)[:, None, None].expand(-1, neurons, neurons)
        weight = (added / (added + seen[:, None, None])).nan_to_num()
        step = (mean - new)[:, :, None]
        between = weight * (1 - weight) * torch.bmm(step, step.transpose(1, 2))
        renewed = covariance * (1 - weight) + of_batch * weight + between
        mean = mean * (1 - weight[:, 0]) + new * weight[:, 0]
        seen = seen + member.sum(0)
        norm += (renewed.abs().sum() - covariance.abs().sum()).item()
        covariance = renewed
    return norm


def layer_outputs(model: nn.Module, batch: Tensor) -> list[Tensor]:
    outputs: list[Tensor] = []
    hooks = [
        model.get_submodule(name).register_forward_hook(
            lambda module, inputs, output, last=name == LAYERS[-1]: outputs.append(output if last else F.relu(output))
        )
        for name in LAYERS
    ]
    with torch.no_grad():
        model(batch)
    for hook in hooks:
        hook.remove()
    return [output.mean((2, 3)) if output.dim() == 4 else output for output in outputs]


def batches(model: nn.Module, inputs: Tensor) -> Iterator[list[Tensor]]:
    for batch in inputs.split(BATCH):
        yield layer_outputs(model, batch)


def five_runs(model: nn.Module, train: Tensor, test: Tensor) -> list[float]:
    """Run the five criteria one after the other."""
    scores = []
    for name in FIVE:
        lows, highs = ranges(model, train) if name in ("kmnc", "nbc", "snac") else ([], [])
        covered: list[Tensor] = []
        score = 0.0
        for outputs in batches(model, test):
            new = [
                reached(name, output, lows[i] if lows else None, highs[i] if highs else None)
                for i, output in enumerate(outputs)
            ]
            covered = [one | other for one, other in zip(covered, new, strict=True)] if covered else new
            score = sum(one.sum() for one in covered).item() / sum(one.numel() for one in covered)
        scores.append(score)
    return scores


def ranges(model: nn.Module, train: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    lows: list[Tensor] = []
    highs: list[Tensor] = []
    for outputs in batches(model, train):
        low, high = [output.amin(0) for output in outputs], [output.amax(0) for output in outputs]
        lows = [torch.minimum(one, other) for one, other in zip(lows, low, strict=True)] if lows else low
        highs = [torch.maximum(one, other) for one, other in zip(highs, high, strict=True)] if highs else high
    return lows, highs


def reached(name: str, output: Tensor, low: Tensor | None, high: Tensor | None) -> Tensor:
    """Return what a batch covers in a layer, by one criterion."""
    if name == "nc":
        return (output > 0.75).any(0)
    if name == "tknc":
        top = output.topk(min(3, output.shape[1]), dim=1).indices
        return torch.zeros(output.shape, dtype=torch.bool).scatter_(1, top, True).any(0)
    if name == "snac":
        return (output > high).any(0)
    if name == "nbc":
        return torch.stack([(output < low).any(0), (output > high).any(0)])
    sections = torch.zeros(output.shape[1], 1001, dtype=torch.bool)
    inside = (high > low) & (output >= low) & (output <= high)
    section = ((output - low) / (high - low) * 1000).floor().clamp(0, 999).nan_to_num()
    sections[torch.arange(output.shape[1]), torch.where(inside, section, 1000).long()] = True
    return sections[:, :1000]


PARTS = {"five criteria in one pass": structural, "surprise": surprises, "NLC": nlc}
