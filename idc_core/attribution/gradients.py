"""Attribution by gradients, most of it run through captum on a network opened into modules (`opened`).

References
----------
.. [1] A. Shrikumar, P. Greenside, A. Kundaje, "Learning important features through propagating activation
   differences", ICML 2017.
.. [2] M. Sundararajan, A. Taly, Q. Yan, "Axiomatic attribution for deep networks", ICML 2017.
.. [3] K. Dhamdhere, M. Sundararajan, Q. Yan, "How important is a neuron?", ICLR 2019.
.. [4] N. Kokhlikyan et al., "Captum: a unified and generic model interpretability library for PyTorch",
   arXiv:2009.07896, 2020.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from idc_core.attribution.captum_adapter import MAX_POOLINGS, READABLE, CaptumNetwork
from idc_core.attribution.registry import attribution_method
from idc_core.base.devices import device_of
from idc_core.base.parameters import Parameter, Value, class_numbers, counted_from, whole_number
from idc_core.base.progress import Progress, report
from idc_core.errors import DataError, SettingError, UnsupportedOperationError
from idc_core.lrp.captures import INPUT
from idc_core.lrp.named_inputs import filled, main_of
from idc_core.lrp.session import check_layers, said_network, undisturbed
from idc_core.tracing.batching import company_of
from idc_core.tracing.company import together
from idc_core.tracing.neurons import Neuron, no_neuron
from idc_core.tracing.parts import kept_tokens, part_of
from idc_core.tracing.pieces import Pieces
from idc_core.tracing.sources import check_tensor, is_array
from idc_core.tracing.transfers import brought_back, to_device

_PASS_BYTES = 24 * 2**20
"""Activations that one pass may hold; gradients double them."""

_INCOMPLETE = 1e-3
"""Share of the largest score by which DeepLift's sum may miss the score difference before it is refused."""


@dataclass(frozen=True)
class Batch:
    """One call of captum."""

    network: CaptumNetwork
    layer: nn.Module | None  # the module whose output is attributed to; None for the input
    inputs: Tensor  # (n, ...), as the baseline
    baseline: Tensor
    held: Tensor | None  # tokens behind the inputs, from which the network computes masks; the baseline has the same
    target: Tensor  # (n,)
    rows: int  # inputs that one pass of captum may hold


BASELINE = Parameter(
    "baseline",
    "Baseline",
    "Grey level of the picture that inputs are compared with, 0 black to 1 white; texts are compared with an empty "
    "text.",
    0.0,
    0.0,
    1.0,
    offered=(0.0, 0.25, 0.5, 0.75, 1.0),
)

_STEPS = Parameter(
    "steps",
    "Steps",
    "Points on the way from the baseline to the input; more follow the score more closely.",
    50,
    2,
    1000,
    offered=(10, 20, 50, 100, 200),
)

_Call = TypeVar("_Call", bound=Callable[..., Tensor])


def gradient_method(
    name: str,
    *,
    label: str,
    help: str,
    sums_to: str,
    citation: str,
    parameters: tuple[Parameter, ...] = (),
    inside: bool = True,
    of_maps: bool = False,
) -> Callable[[_Call], _Call]:
    """Enter a method, as `attribution_method`; the decorated function attributes one `Batch`, in the layer's shape.

    `of_maps`: what it says of the input is that of the last layer with maps.
    """

    def enter(call: _Call) -> _Call:
        run = attribution_method(
            name,
            label=label,
            help=help,
            sums_to=sums_to,
            citation=citation,
            parameters=parameters,
            inside=inside,
            of_neurons=True,
        )
        run(lambda *args, **options: _run(call, label, *args, of_maps=of_maps, **options))
        return call

    return enter


@gradient_method(
    "gradient-x-input",
    label="Gradient times input",
    help="How the score would change if each value grew, times the value; fast and noisy.",
    sums_to="nothing fixed: the score less the part of the biases, where the network is piecewise linear",
    citation="Shrikumar et al. 2017; Ancona et al. 2018",
)
def _gradient_x_input(batch: Batch) -> Tensor:
    """Not by captum, which does the same and takes half a second to load: pages compare this method by default."""
    values = [batch.inputs]

    def hear(module: nn.Module, args: object, output: Tensor) -> Tensor:
        values[0] = output
        return output.clone()  # what changes it in place behind the layer changes the copy

    handle = None if batch.layer is None else batch.layer.register_forward_hook(hear)
    try:
        scores = batch.network(batch.inputs, batch.held)
    finally:
        if handle is not None:
            handle.remove()
    explained = scores[torch.arange(len(scores), device=scores.device), batch.target]
    (gradient,) = torch.autograd.grad(explained.sum(), values)
    return (values[0] * gradient).detach()


@gradient_method(
    "integrated-gradients",
    label="Integrated gradients",
    help="Gradients averaged on the straight way from a baseline to the input, times the difference of the two.",
    parameters=(BASELINE, _STEPS),
    sums_to="the explained score less the baseline's score, as closely as the steps allow",
    citation="Sundararajan, Taly, Yan 2017",
)
def _integrated_gradients(batch: Batch, steps: int) -> Tensor:
    from captum.attr import IntegratedGradients, LayerIntegratedGradients

    method = (
        IntegratedGradients(batch.network)
        if batch.layer is None
        else LayerIntegratedGradients(batch.network, batch.layer)
    )
    return captums(
        method.attribute(
            batch.inputs, batch.baseline, batch.target, batch.held, n_steps=steps, internal_batch_size=_rows(batch)
        )
    )


@gradient_method(
    "deeplift",
    label="DeepLift",
    help="Passes the difference from a baseline back through the network, by the rescale rule.",
    parameters=(BASELINE,),
    sums_to="exactly the explained score less the baseline's score",
    citation="Shrikumar, Greenside, Kundaje 2017",
)
def _deeplift(batch: Batch) -> Tensor:
    """DeepLIFT's rescale rule, checked for completeness at the input whatever the layer."""
    from captum.attr import DeepLift, LayerDeepLift

    _mend_pooling()
    if batch.network.unreadable:
        raise UnsupportedOperationError(
            f"DeepLift cannot pass through {', '.join(batch.network.unreadable)}; it knows {', '.join(READABLE)}. "
            "Choose integrated gradients or a rule of relevance propagation."
        )
    result = captums(DeepLift(batch.network).attribute(batch.inputs, batch.baseline, batch.target, batch.held))
    _check_complete(batch, result)
    if batch.layer is not None:
        method = LayerDeepLift(batch.network, batch.layer)
        result = captums(method.attribute(batch.inputs, batch.baseline, batch.target, batch.held))
    return result


def _mend_pooling() -> None:
    """Give captum a rule for our poolings: its own, but every input with its own gradient where nothing changes.

    captum 0.9 takes the first input's gradient for the whole batch where an input equals its baseline.
    """
    from captum.attr._core import deep_lift

    rules = deep_lift.maxpool1d, deep_lift.maxpool2d, deep_lift.maxpool3d
    for ours, theirs in zip(MAX_POOLINGS, rules, strict=True):
        deep_lift.SUPPORTED_NON_LINEAR.setdefault(ours, partial(_pooling, theirs))


def _pooling(
    theirs: Callable[..., Tensor],
    module: nn.Module,
    inputs: Tensor,
    outputs: Tensor,
    grad_input: Tensor,
    grad_output: Tensor,
    eps: float,
) -> Tensor:
    gradient = theirs(module, inputs, outputs, grad_input, grad_output, eps=eps)
    here, baseline = inputs.chunk(2)
    unchanged = ((here - baseline).abs() < eps).repeat(2, *[1] * (inputs.dim() - 1))
    return torch.where(unchanged, grad_input, gradient)


@gradient_method(
    "conductance",
    label="Layer conductance",
    help="Integrated gradients counted where they flow through a layer; at the input, integrated gradients themselves.",
    parameters=(BASELINE, _STEPS),
    sums_to="the explained score less the baseline's score, as closely as the steps allow",
    citation="Dhamdhere, Sundararajan, Yan 2019",
)
def _conductance(batch: Batch, steps: int) -> Tensor:
    from captum.attr import LayerConductance

    if batch.layer is None:
        return _integrated_gradients(batch, steps)
    return captums(
        LayerConductance(batch.network, batch.layer).attribute(
            batch.inputs, batch.baseline, batch.target, batch.held, n_steps=steps, internal_batch_size=_rows(batch)
        )
    )


def _run(
    call: Callable[..., Tensor],
    label: str,
    model: nn.Module,
    inputs: object,
    layers: Sequence[str],
    target: str | int | Iterable[int],
    *,
    of: Neuron | None = None,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
    baseline: float = 0.0,
    of_maps: bool = False,
    **settings: Value,
) -> dict[str, NDArray[np.floating]]:
    """Attribute inputs batch by batch; parameters and errors as in `methods.attribute_layers`."""
    named = layers if of is None else (*layers, of[0])
    check_layers(model, named)
    if batch_size is not None:
        whole_number("batch_size", batch_size, 1)
    given, device = as_tensor(model, inputs), device_of(model)
    by_layer: dict[str, list[NDArray[np.floating]]] = {layer: [] for layer in layers}
    with undisturbed(model), torch.enable_grad():
        company = company_of(model, given, layers, "" if of is None else of[0])
        network = CaptumNetwork(model, to_device(given[:1], device), company, "" if of is None else of[0])
        modules = {layer: network.layer(layer) for layer in layers}
        if of_maps and INPUT in layers and (last := network.last_maps()) is not None:
            network.company = company = company_of(model, given, (*layers, last.name), "" if of is None else of[0])
        rows = max(1, min(1024, company.most, _PASS_BYTES // (4 * network.elements)))
        size = batch_size or max(1, rows // int(settings.get("steps", settings.get("samples", 1))))
        targets = _classes(network, given, target, device) if of is None else _neuron(network, given, of, device)
        origin = "the scores" if of is None else f"neuron {of[1]} of {of[0]!r}"

        def attributed(places: slice) -> dict[str, Tensor]:
            part, values_of = main_of(filled(to_device(given[places], device), company.traits.least)), {}
            wanted = None if targets is None else main_of(filled(targets[places], len(part)))
            start = network.floats(torch.zeros_like(part) if not part.is_floating_point() else part * 0 + baseline)
            for layer, module in modules.items():
                point = network.floats(part).requires_grad_()
                held = network.held(part)
                classes = network(point, held).argmax(1) if wanted is None else wanted
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # captum announces its hooks
                    batch = Batch(network, module, point, start, held, classes, rows)
                    way = f"from {origin} to {layer!r} by gradients in {said_network(model)}"
                    values = _attribute(call, label, batch, way, settings)
                if len(values) != len(part) or layer in company.traits.swapped:
                    raise together(layer, tuple(values.shape), len(part))
                meant = part_of(layer)
                values = values if meant is None else meant.relevant(values, kept_tokens(model, part))
                words = layer == INPUT and not part.is_floating_point()
                values_of[layer] = (values.sum(-1) if words else values)[: places.stop - places.start]
            return values_of

        for places, arrays in brought_back(Pieces(min(size, company.most))(len(given), attributed)):
            for layer, array in arrays.items():
                by_layer[layer].append(array)
            report(on_progress, places.stop, len(given), "inputs attributed")
    return {layer: np.concatenate(parts) for layer, parts in by_layer.items()}


def _attribute(
    call: Callable[..., Tensor], label: str, batch: Batch, way: str, settings: Mapping[str, Value]
) -> Tensor:
    try:
        return call(batch, **settings)
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, AssertionError) as error:
        # What captum and autograd say of networks without gradients and of layers that the score does not need.
        raise UnsupportedOperationError(
            f"{label} finds no way {way} ({error}). Choose another layer, or a rule of relevance propagation."
        ) from error


def as_tensor(model: nn.Module, inputs: object) -> Tensor:
    """Return inputs as a tensor where they are and, if they are not whole numbers, of the network's dtype."""
    inputs = getattr(inputs, "inputs", inputs)
    check_tensor(inputs)
    shape = tuple(getattr(inputs, "shape", ()))
    if not is_array(inputs) or not shape or not shape[0]:
        raise DataError(
            "Expected a tensor, an array or a data set with at least one input, "
            f"not {type(inputs).__name__}{f' of shape {shape}' if hasattr(inputs, 'shape') else ''}. "
            "Inputs by name are for rules of relevance propagation."
        )
    tensor = inputs.detach() if isinstance(inputs, Tensor) else torch.tensor(np.asarray(inputs))
    parameter = next((p for p in model.parameters() if p.is_floating_point()), None)
    if parameter is not None:
        tensor = tensor.to(parameter.dtype) if tensor.is_floating_point() else tensor
    return tensor


def _classes(
    network: CaptumNetwork, inputs: Tensor, target: str | int | Iterable[int], device: torch.device
) -> Tensor | None:
    """Return the class to explain of every input; None for the predicted one."""
    if isinstance(target, str):
        if target != "predicted":
            raise SettingError(f"target must be 'predicted', a class or one class per input, not {target!r}.")
        return None
    targets = torch.as_tensor(class_numbers("target", target))
    with torch.no_grad():
        classes = network.scores_of(to_device(inputs[:1], device)).shape[1]
    if targets.is_floating_point() or targets.dim() > 1 or (targets.dim() and len(targets) != len(inputs)):
        raise SettingError(f"Expected one target class, or one for each of {len(inputs)} inputs, not {target!r:.80}.")
    if not bool(((targets >= 0) & (targets < classes)).all()):
        raise SettingError(
            f"target classes must lie in 0..{classes - 1}, the network's outputs"
            f"{counted_from(int(targets.min()), int(targets.max()), classes)}."
        )
    return targets.to(device).long().expand(len(inputs))


def _neuron(network: CaptumNetwork, inputs: Tensor, of: Neuron, device: torch.device) -> Tensor:
    """Return the neuron to explain of every input."""
    with torch.no_grad():
        count = network.scores_of(to_device(inputs[:1], device)).shape[1]
    if of[1] >= count:
        raise no_neuron(of, count)
    return torch.full((len(inputs),), of[1], device=device)


def _check_complete(batch: Batch, found: Tensor) -> None:
    with torch.no_grad():
        rows = torch.arange(len(found), device=found.device)
        scores, before = batch.network(batch.inputs, batch.held), batch.network(batch.baseline, batch.held)
        gained = (scores - before)[rows, batch.target]
        missed = (found.flatten(1).sum(1) - gained).abs().max()
        largest = torch.maximum(scores.abs().max(), before.abs().max())
    if not missed <= _INCOMPLETE * largest:
        raise UnsupportedOperationError(
            f"DeepLift's values miss the score difference by {missed:.3g}: the network has an operation through which "
            "captum does not pass differences on. Choose integrated gradients or a rule of relevance propagation."
        )


def _rows(batch: Batch) -> int:
    # captum needs room for both ends of a step.
    return min(max(batch.rows, 2 * len(batch.inputs)), batch.network.company.most)


def captums(found: Tensor | tuple[Tensor, ...]) -> Tensor:
    """Return what captum found, for one tensor of inputs, as a tensor without a graph."""
    return (found[0] if isinstance(found, tuple) else found).detach()
