"""Normalisation of single channels and of neighbouring channels by each input's own statistics.

Deviations are held constant, as those of layer normalisation are. Of local response normalisation the divisor is held
constant, so that its relevance passes unchanged; [1] expands it to first order instead.

References
----------
.. [1] A. Binder, G. Montavon, S. Lapuschkin, K.-R. Müller, W. Samek, "Layer-wise relevance propagation for neural
   networks with local renormalization layers", ICANN 2016.
"""

import torch.nn.functional as F
from torch import Tensor

from idc_core.lrp.operations import OPERATIONS, operation, pass_on
from idc_core.lrp.rules import RelevanceSettings


@operation("instance_norm")
def _instance_norm(
    settings: RelevanceSettings,
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    if use_input_stats:
        z: Tensor = OPERATIONS["group_norm"](settings, input, input.shape[1], weight, bias, eps)
    else:
        z = OPERATIONS["batch_norm"](settings, input, running_mean, running_var, weight, bias, False, momentum, eps)
    return z


@operation("local_response_norm")
def _local_response_norm(
    settings: RelevanceSettings, input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    return pass_on(lambda value: F.local_response_norm(value, size, alpha, beta, k), input)
