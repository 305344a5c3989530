"""Class-level errors: the probability matrix against the forward pass, and 1,000 classes.

LeNet-5 and the convolutional network for CIFAR-10 on random images; distances and bias of as many classes and neurons
as ImageNet and the convolutions of ResNet-50 have.
"""

import tracemalloc
from functools import partial

import numpy as np
import torch

from benchmarks.bench_idc import strokes
from benchmarks.bench_relevance import best_batch_size
from benchmarks.measure import Row, few, medians
from benchmarks.passes import forward
from idc_core.confusion import activation_probability, average_bias, average_disparity, class_distance
from idc_core.models import MODELS

CLASSES, NEURONS = few(1000), few(26_560)
LAYERS = {
    "lenet5-mnist": ("conv1", "conv2", "fc1", "fc2", "logits"),
    "convnet-cifar10": ("conv1", "conv2", "conv3", "conv4", "fc1", "fc2", "logits"),
}


def probabilities(name: str) -> list[Row]:
    layers = LAYERS[name]
    torch.manual_seed(0)
    model = MODELS[name].build().eval()
    images = strokes(few(10_000)) if "mnist" in name else torch.rand(few(2_000), 3, 32, 32)
    size = best_batch_size(model, images)
    ours, plain = medians(
        partial(activation_probability, model, images, layers), partial(forward, model, images, size), repeats=5
    )
    what = f"probability matrix of all {len(layers)} layers, {MODELS[name].label}, {len(images):,} images"
    return [Row(what, ours, f"the forward pass, batches of {size}", plain, at_most=1.3)]


def many_classes() -> list[Row]:
    probability = matrix()
    tracemalloc.start()
    distance = class_distance(probability, normalise=True)
    extra = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    whole = (probability.nbytes + extra) / 2**30
    note = f"{probability.nbytes / 2**30:.2f} GiB for the matrix, {whole:.2f} GiB at the peak"
    pairs, bias, unfiltered, disparity = medians(
        partial(class_distance, probability, normalise=True),
        partial(average_bias, distance),
        partial(average_bias, distance, filtered=False),
        partial(average_disparity, np.random.default_rng(1).random((CLASSES, CLASSES))),
        repeats=3,
    )
    if whole > 1:
        raise AssertionError(f"Distances took {whole:.2f} GiB; expected less than 1.")
    shape = f"{CLASSES:,} classes x {NEURONS:,} neurons, three runs"
    return [
        Row(f"all {CLASSES * (CLASSES - 1) // 2:,} distances, {shape}", pairs, at_most=10, note=note),
        Row("average bias of these distances", bias, at_most=60, note="three runs"),
        Row("the same without the distance filter", unfiltered, at_most=60, note="three runs"),
        Row(f"average disparity of {CLASSES:,} classes", disparity, at_most=60, note="three runs"),
    ]


def matrix() -> np.ndarray:
    """Return a probability matrix whose classes differ by different amounts."""
    random = np.random.default_rng(0)
    found = np.empty((NEURONS, CLASSES))
    spread = random.uniform(0.02, 0.2, CLASSES)
    for start in range(0, NEURONS, 2048):
        block = found[start : start + 2048]
        block[:] = 0.6 * random.random((len(block), 1)) + spread * random.standard_normal(block.shape)
        np.clip(block, 0, 1, out=block)
    return found


PARTS = {
    **{f"probability matrix, {name}": partial(probabilities, name) for name in LAYERS},
    "many classes": many_classes,
}
