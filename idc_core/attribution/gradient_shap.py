"""Gradient SHAP: expected gradients between a baseline and noisy copies of the input.

References
----------
.. [1] S. M. Lundberg, S.-I. Lee, "A unified approach to interpreting model predictions", NeurIPS 2017; the gradient
   explainer of their library.
.. [2] G. Erion, J. D. Janizek, P. Sturmfels, S. M. Lundberg, S.-I. Lee, "Improving performance of deep learning models
   with axiomatic attribution priors and expected gradients", Nature Machine Intelligence 3, 2021.
"""

import numpy as np
import torch
from torch import Tensor

from idc_core.attribution.gradients import BASELINE, Batch, captums, gradient_method
from idc_core.attribution.saliency import NOISE, NOISE_SEED, SAMPLES, gradient, noisy


@gradient_method(
    "gradient-shap",
    label="Gradient SHAP",
    help="Gradients at random points between a baseline and noisy copies of the input, times the difference of the "
    "two: approximate Shapley values.",
    parameters=(BASELINE, SAMPLES, NOISE, NOISE_SEED),
    sums_to="on average, the scores of the noisy copies less the baseline's score",
    citation="Lundberg, Lee 2017; Erion et al. 2021",
)
def _gradient_shap(batch: Batch, samples: int, noise: float, seed: int) -> Tensor:
    """Return expected gradients; points of a layer lie where the network puts those of the input."""
    ways = np.random.RandomState(seed).uniform(0.0, 1.0, samples)
    before = _values(batch, batch.baseline)
    products = []
    for way, point in zip(ways, noisy(batch, samples, noise, seed), strict=True):
        between = (way * point + (1 - way) * batch.baseline).requires_grad_()
        products.append((_values(batch, point) - before) * gradient(batch, between))
    return torch.stack(products).mean(0)


def _values(batch: Batch, point: Tensor) -> Tensor:
    """Return what the layer gives for a point beside the inputs; the point itself where the input is explained."""
    from captum.attr import LayerActivation

    if batch.layer is None:
        return point
    return captums(LayerActivation(batch.network, batch.layer).attribute(point, batch.held))
