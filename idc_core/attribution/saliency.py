"""Saliency: how much the score changes where values change; and SmoothGrad, its mean over noisy inputs.

References
----------
.. [1] K. Simonyan, A. Vedaldi, A. Zisserman, "Deep inside convolutional networks: visualising image classification
   models and saliency maps", ICLR workshop 2014 (arXiv:1312.6034).
.. [2] D. Smilkov, N. Thorat, B. Kim, F. Viégas, M. Wattenberg, "SmoothGrad: removing noise by adding noise",
   arXiv:1706.03825, 2017.
"""

from dataclasses import replace

import torch
from torch import Tensor

from idc_core.attribution.gradients import Batch, captums, gradient_method
from idc_core.base.parameters import Parameter
from idc_core.base.ranges import SEED

SAMPLES = Parameter(
    "samples",
    "Samples",
    "Noisy copies of each input; more vary less with the seed and take longer.",
    20,
    1,
    10_000,
    offered=(5, 10, 20, 50, 100),
)

NOISE = Parameter(
    "noise",
    "Noise",
    "Standard deviation of the noise, as a share of the range of each input's values.",
    0.15,
    0.0,
    1.0,
    offered=(0.0, 0.05, 0.1, 0.15, 0.2, 0.3),
)

NOISE_SEED = replace(SEED, help="The same seed gives the same noise, for every input.", offered=(0, 1, 2, 3, 4))


def gradient(batch: Batch, point: Tensor) -> Tensor:
    """Return the gradient of the explained scores, in the layer's shape, at a point beside the inputs."""
    from captum.attr import LayerGradientXActivation, Saliency

    if batch.layer is None:
        return captums(Saliency(batch.network).attribute(point, batch.target, False, batch.held))
    method = LayerGradientXActivation(batch.network, batch.layer, multiply_by_inputs=False)
    return captums(method.attribute(point, batch.target, batch.held))


def noisy(batch: Batch, samples: int, share: float, seed: int) -> Tensor:
    """Return copies (samples, n, ...) of the inputs with noise, whose deviation is a share of each one's range.

    Every input gets the same draws, so that its result depends neither on its place nor on the others.
    """
    shape = batch.inputs.shape[1:]
    drawn = torch.randn(samples, 1, *shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float32)
    values = batch.inputs.detach().flatten(1)
    width = (share * (values.amax(1) - values.amin(1))).float().reshape(-1, *[1] * len(shape))
    return batch.inputs.detach() + (drawn.to(width.device) * width).to(batch.inputs)


@gradient_method(
    "saliency",
    label="Saliency",
    help="How much the score changes as each value changes, whichever way: the gradient's absolute value.",
    sums_to="nothing fixed",
    citation="Simonyan, Vedaldi, Zisserman 2014",
)
def _saliency(batch: Batch) -> Tensor:
    return gradient(batch, batch.inputs).abs()


@gradient_method(
    "smoothgrad",
    label="SmoothGrad",
    help="Saliency averaged over copies of the input with random noise, which removes the gradient's own noise.",
    parameters=(SAMPLES, NOISE, NOISE_SEED),
    sums_to="nothing fixed",
    citation="Smilkov et al. 2017",
)
def _smoothgrad(batch: Batch, samples: int, noise: float, seed: int) -> Tensor:
    points = noisy(batch, samples, noise, seed)
    return torch.stack([gradient(batch, point.requires_grad_()).abs() for point in points]).mean(0)
