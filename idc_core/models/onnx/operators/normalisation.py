"""Normalisations; with constant scales they are `torch.nn.BatchNorm2d` and `torch.nn.LayerNorm`."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from idc_core.models.onnx.registry import Function, Node, operator
from idc_core.models.wrapping import scale_channels


class BatchNorm(nn.BatchNorm2d):
    """Batch normalisation of an input (n, channels, ...), of images in most networks."""

    def _check_input_dim(self, input: Tensor) -> None:
        """Take any number of dimensions."""


@operator("BatchNormalization")
def _batch_norm(node: Node) -> nn.Module | Function:
    epsilon, momentum = node.get("epsilon", 1e-5), node.get("momentum", 0.9)
    if node.get("training_mode", 0) or any(node.outputs[1:]):
        raise node.refuse("batch normalisation in training mode")
    node.get("is_test"), node.get("consumed_inputs")
    scale_shape = node.constants[1].dim() if 1 in node.constants else 0
    if not node.get("spatial", 1) and scale_shape != 1:  # of vectors both are one
        raise node.refuse("batch normalisation per position (spatial 0)")
    less = min(epsilon, 0.0)  # of the variance: PyTorch takes none below 0
    if 0 in node.constants or not all(position in node.constants for position in range(1, 5)):
        return lambda x, scale, bias, mean, var: F.batch_norm(
            x, mean, var + less, scale, bias, False, 0.0, epsilon - less
        )
    scale, bias, mean, var = (node.constants[position] for position in range(1, 5))
    layer = BatchNorm(scale.numel(), epsilon - less, 1 - momentum, device="meta")
    layer.weight, layer.bias = nn.Parameter(scale.clone()), nn.Parameter(bias.clone())
    layer.running_mean, layer.running_var = mean.clone(), var + less
    layer.num_batches_tracked = torch.tensor(0)
    return layer


@operator("InstanceNormalization")
def _instance_norm(node: Node) -> Function:
    epsilon = node.get("epsilon", 1e-5)
    return lambda x, scale, bias: F.instance_norm(x, None, None, scale, bias, True, 0.0, epsilon)


@operator("GroupNormalization")
def _group_norm(node: Node) -> Function:
    groups, epsilon = node.need("num_groups"), node.get("epsilon", 1e-5)
    node.get("stash_type")

    def run(x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
        each = x.shape[1] // scale.numel() if node.opset < 21 else 1
        return F.group_norm(x, groups, scale.repeat_interleave(each), bias.repeat_interleave(each), epsilon)

    return run


@operator("LayerNormalization")
def _layer_norm(node: Node) -> nn.Module | Function:
    axis, epsilon = node.get("axis", -1), node.get("epsilon", 1e-5)
    node.get("stash_type")
    scale, bias = node.constants.get(1), node.constants.get(2)
    several = sum(map(bool, node.outputs)) > 1
    whole = not several and 0 not in node.constants and node.known(2)
    fits = scale is not None and (bias is None or bias.shape == scale.shape)
    # Counted from the end the shape of the scale is what is normalised over; one of a single number is broadcast.
    if scale is not None and whole and fits and axis == -scale.dim() and scale.numel() > 1:
        layer = nn.LayerNorm(list(scale.shape), epsilon, bias=bias is not None, device="meta")
        layer.weight = nn.Parameter(scale.clone())
        if bias is not None:
            layer.bias = nn.Parameter(bias.clone())
        return layer

    def run(x: Tensor, scale: Tensor, bias: Tensor | None = None) -> Tensor | tuple[Tensor, ...]:
        shape = x.shape[axis:] if axis < 0 else x.shape[axis % x.dim() :]
        if any(one is not None and one.dim() > len(shape) for one in (scale, bias)):  # of more axes than it works over
            z = F.layer_norm(x, shape, None, None, epsilon) * scale
            z = z if bias is None else z + bias
        else:
            z = F.layer_norm(x, shape, scale.expand(shape), None if bias is None else bias.expand(shape), epsilon)
        if not several:
            return z
        dims = tuple(range(x.dim() - len(shape), x.dim()))
        mean = x.mean(dims, keepdim=True)
        return z, mean, torch.rsqrt(x.var(dims, unbiased=False, keepdim=True) + epsilon)

    return run


@operator("RMSNormalization")
def _rms_norm(node: Node) -> Function:
    axis, epsilon = node.get("axis", -1), node.get("epsilon", 1e-5)
    node.get("stash_type")

    def run(x: Tensor, scale: Tensor) -> Tensor:
        dims = tuple(range(axis % x.dim(), x.dim()))
        return x * torch.rsqrt((x * x).mean(dims, keepdim=True) + epsilon) * scale

    return run


@operator("LRN")
def _local_response(node: Node) -> Function:
    alpha, beta, bias = node.get("alpha", 1e-4), node.get("beta", 0.75), node.get("bias", 1.0)
    size = node.need("size")
    if size % 2:
        return lambda x: F.local_response_norm(x, size, alpha, beta, bias)

    def run(x: Tensor) -> Tensor:
        # PyTorch's windows of an even size reach one channel farther down, those of ONNX one farther up.
        turned: Tensor = F.local_response_norm(x.flip(1), size, alpha, beta, bias)
        return turned.flip(1)

    return run


@operator("LpNormalization")
def _power_norm(node: Node) -> Function:
    axis, p = node.get("axis", -1), node.get("p", 2)

    def run(x: Tensor) -> Tensor:
        norm = x.norm(p, axis, keepdim=True)
        return torch.where(norm == 0, torch.zeros_like(x), x / norm)

    return run


@operator("MeanVarianceNormalization")
def _mean_variance(node: Node) -> Function:
    # By default it mixes the inputs of a batch, which loading a network finds out.
    given = node.get("axes", [0, 2, 3])

    def run(x: Tensor) -> Tensor:
        axes = [axis for axis in given if axis < x.dim()]
        wide = x.double()  # of equal numbers the mean is that number, and the result 0
        apart = wide - wide.mean(axes, keepdim=True)
        return (apart / (wide.var(axes, unbiased=False, keepdim=True).sqrt() + 1e-9)).to(x.dtype)

    return run


@operator("Scaler")
def _scaler(node: Node) -> Function:
    offset, scale = torch.tensor(node.need("offset")), torch.tensor(node.need("scale"))
    return lambda x: scale_channels(x.float(), scale, -offset * scale)
