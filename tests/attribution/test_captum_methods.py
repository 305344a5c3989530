"""Saliency, SmoothGrad, gradient SHAP, occlusion and Grad-CAM equal captum, called directly on a network of modules."""

import numpy as np
import pytest
import torch
from captum.attr import (
    GradientShap,
    LayerAttribution,
    LayerGradCam,
    LayerGradientShap,
    LayerGradientXActivation,
    NoiseTunnel,
    Occlusion,
    Saliency,
)
from torch import nn

from idc_core.attribution.methods import attribute
from tests.attribution.networks import Words
from tests.lrp.networks import settle

CLASS, SEED, SAMPLES, NOISE = 1, 3, 6, 0.1
RANDOM = {"samples": SAMPLES, "noise": NOISE, "seed": SEED}


@pytest.fixture
def network():
    """Captum sees modules alone: every activation function is one, used once."""
    layers = nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Conv2d(4, 5, 3), nn.ReLU(), nn.Flatten(), nn.Linear(320, 3)
    return settle(nn.Sequential(*layers))


@pytest.fixture
def pictures():
    return torch.rand(3, 2, 12, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def seeded(call):
    """Run captum on one input with the seed that it draws by, and leave other tests' draws as they were."""
    state = np.random.get_state()
    try:
        with torch.random.fork_rng():
            torch.manual_seed(SEED)
            np.random.seed(SEED)
            return call().detach()
    finally:
        np.random.set_state(state)


def test_saliency(network, pictures):
    expected = Saliency(network).attribute(pictures.clone().requires_grad_(), CLASS)
    np.testing.assert_allclose(attribute(network, pictures, "saliency", target=CLASS), expected, atol=1e-12)
    inside = LayerGradientXActivation(network, network[1], multiply_by_inputs=False).attribute(pictures, CLASS).abs()
    found = attribute(network, pictures, "saliency", "0", CLASS)
    np.testing.assert_allclose(found, inside.detach(), atol=1e-12)


def test_smoothgrad(network, pictures):
    found = attribute(network, pictures, "smoothgrad", target=CLASS, **RANDOM)
    for one, values in zip(pictures[:, None], found, strict=True):
        width = NOISE * float(one.max() - one.min())
        tunnel = NoiseTunnel(Saliency(network))
        expected = seeded(
            lambda one=one, tunnel=tunnel, width=width: tunnel.attribute(
                one.clone().requires_grad_(), nt_samples=SAMPLES, stdevs=width, target=CLASS
            )
        )
        np.testing.assert_allclose(values, expected[0], atol=1e-12)


def test_smoothgrad_without_noise_is_saliency(network, pictures):
    found = attribute(network, pictures, "smoothgrad", "2", noise=0.0, samples=2)
    np.testing.assert_allclose(found, attribute(network, pictures, "saliency", "2"), atol=1e-12)


@pytest.mark.parametrize("layer", ["input", "0", "5"])
def test_gradient_shap(network, pictures, layer):
    found = attribute(network, pictures, "gradient-shap", layer, CLASS, baseline=0.25, **RANDOM)
    module = network[1] if layer == "0" else network[5]
    method = GradientShap(network) if layer == "input" else LayerGradientShap(network, module)
    for one, values in zip(pictures[:, None], found, strict=True):
        width = NOISE * float(one.max() - one.min())
        expected = seeded(
            lambda one=one, width=width: method.attribute(
                one.clone(), torch.full_like(one, 0.25), SAMPLES, width, target=CLASS
            )
        )
        np.testing.assert_allclose(values, expected[0], atol=1e-12)


def test_gradient_shap_comes_close_to_the_score_difference(network, pictures):
    found = attribute(network, pictures, "gradient-shap", target=CLASS, samples=400, noise=0.0)
    with torch.no_grad():
        gained = (network(pictures) - network(torch.zeros_like(pictures)))[:, CLASS].numpy()
    np.testing.assert_allclose(found.sum((1, 2, 3)), gained, atol=0.05 * np.abs(gained).max())


@pytest.mark.parametrize("method", ["smoothgrad", "gradient-shap"])
def test_another_seed_gives_other_numbers_and_an_input_its_own(network, pictures, method):
    first = attribute(network, pictures, method, **RANDOM)
    other = attribute(network, pictures, method, **{**RANDOM, "seed": 4})
    assert np.abs(first - other).max() > 1e-6
    state = torch.random.get_rng_state()
    alone = attribute(network, pictures[2:], method, **RANDOM)
    np.testing.assert_allclose(alone, first[2:], atol=1e-12)
    assert torch.equal(state, torch.random.get_rng_state())


def test_occlusion(network, pictures):
    found = attribute(network, pictures, "occlusion", target=CLASS, window=0.25, baseline=0.5)
    expected = Occlusion(network).attribute(pictures, (2, 3, 3), (2, 1, 1), 0.5, CLASS)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_occlusion_covers_features_and_words_one_by_one():
    torch.manual_seed(0)
    dense = settle(nn.Linear(6, 3))
    rows = torch.rand(4, 6, dtype=torch.float64)
    found = attribute(dense, rows, "occlusion", target=CLASS)
    np.testing.assert_allclose(found, (rows * dense.weight[CLASS]).detach(), atol=1e-12)
    words = Words().double()
    ids = torch.randint(1, 20, (2, 5), generator=torch.Generator().manual_seed(0))
    found = attribute(words, ids, "occlusion", target=CLASS)
    with torch.no_grad():
        for place in range(5):
            covered = ids.clone()
            covered[:, place] = 0  # padding, whose embedding is zero
            np.testing.assert_allclose(found[:, place], (words(ids) - words(covered))[:, CLASS], atol=1e-12)


def test_grad_cam(network, pictures):
    small = LayerGradCam(network, network[3]).attribute(pictures, CLASS)
    expected = LayerAttribution.interpolate(small, (12, 12), "bilinear").detach()[:, 0]
    found = attribute(network, pictures, "grad-cam", target=CLASS)
    np.testing.assert_allclose(found.sum(1), expected, atol=1e-12)
    np.testing.assert_array_equal(found[:, 0], found[:, 1])
    inside = attribute(network, pictures, "grad-cam", "2", CLASS)
    np.testing.assert_allclose(inside.sum(1), small.detach()[:, 0], atol=1e-12)


def test_grad_cam_of_words_and_of_a_neuron(network, pictures):
    words = Words().double()
    ids = torch.randint(1, 20, (2, 5), generator=torch.Generator().manual_seed(0))
    maps = attribute(words, ids, "grad-cam", "conv", CLASS).sum(1, keepdims=True)
    expected = LayerAttribution.interpolate(torch.tensor(maps), (5,), "linear")[:, 0]
    np.testing.assert_allclose(attribute(words, ids, "grad-cam", target=CLASS), expected, atol=1e-12)
    # Of a neuron of the first convolution, the last maps are those of that convolution.
    short = nn.Sequential(network[0], network[1], nn.AdaptiveAvgPool2d(1), nn.Flatten())
    small = LayerGradCam(short, network[1]).attribute(pictures, 2)
    expected = LayerAttribution.interpolate(small, (12, 12), "bilinear").detach()[:, 0]
    found = attribute(network, pictures, "grad-cam", of=("0", 2))
    np.testing.assert_allclose(found.sum(1), expected, atol=1e-12)
