"""A person's own network made ready: in eval mode, float32 on the CPU, scores unwrapped, layers found."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from idc_core.base.foreign import said_foreign
from idc_core.base.own_code import run_own, said, said_source, source_of
from idc_core.base.own_digest import code_digest
from idc_core.errors import ModelError
from idc_core.lrp.explained import Explaining, digest_of, is_of_boxes, meaning_of, said_of
from idc_core.lrp.layer_parts import split_layer
from idc_core.lrp.session import check_made, named_layers
from idc_core.models.attentions import with_parts
from idc_core.models.behaviour import PROBED, copied
from idc_core.models.box_layers import layers_of_boxes
from idc_core.models.entry import Found, ModelEntry
from idc_core.models.fitting import fit_scores, names_of_outputs
from idc_core.models.named_inputs import put_naming
from idc_core.models.network import Expected
from idc_core.models.scaling import Layout, Scaling
from idc_core.models.survey import POOLING, Survey, Wanted, has_weights
from idc_core.models.wrapping import Before, put_before
from idc_core.tracing.company import sizes_in

if TYPE_CHECKING:
    from idc_core.datasets.naming import Naming
    from idc_core.models.network import Network
    from idc_core.models.own import OwnModel

_TWO = 2
"""Inputs that tell the axis of inputs from others."""


def adopt(entry: OwnModel, layers: tuple[str, ...], layer: str) -> tuple[Network, Found]:
    """Build a person's network and make it ready.

    Parameters
    ----------
    entry : OwnModel
    layers, layer
        All that are offered, and the one analysed by default, as they were given; empty where they were not.

    Returns
    -------
    network : Module
        In eval mode, float32 on the CPU; it returns scores (n, outputs). `remarks`, a tuple of sentences, says what
        was changed; `idc_code` tells its code and all else that it computes with, part of its fingerprint. What the
        person's function returned is copied, and stays as it is.
    found : Found

    Raises
    ------
    ModelError
        If it cannot be built, fails on the first inputs of its data, or returns no scores that fit them.
    """
    where = f"{said_source(entry.build)}: the network {entry.name!r}"
    file = source_of(entry.build)[0]
    built: object = run_own(f"building the network {entry.name!r}", file, entry.build, ModelError)
    if not isinstance(built, nn.Module):
        what = f"the class {built.__name__}" if isinstance(built, type) else f"a {type(built).__name__}"
        raise ModelError(
            f"{where} is {what}; expected that `build` returns a torch.nn.Module with its weights.{said_foreign(built)}"
        )
    is_file = hasattr(entry.build, "path") and not getattr(entry.build, "architecture", "")  # whose content tells all
    code = code_digest(entry.build, *(() if is_file else (built,)))
    network, remarks = _prepared(built if is_file else _copy(entry, built, where))
    explain = entry.explain
    if explain is not None:
        remarks += tuple(filter(None, (f"Explained and analysed: {said_of(explain)}.", meaning_of(explain))))
    inputs, naming = _first_inputs(entry, network, _TWO if is_file else PROBED)
    if inputs is not None and getattr(network, "one_by_one", False):
        inputs = inputs[:1]  # layers run once then, as they do for every input
    if inputs is not None and entry.dataset:
        remarks += _laid_out(network, inputs)
    if naming is not None:
        put_naming(network, naming)
        remarks += (f"Inputs beside {naming.main!r}: {naming.said}.",) if naming.others else ()
    wanted = Wanted(explain, entry.output, _counts(entry, network), entry.output_layout)
    seen = None
    if inputs is not None:
        seen, inputs = _surveyed(network, inputs, where, wanted, hasattr(entry.build, "path"), not is_file)
        code += seen.behaviour.hexdigest() if seen.behaviour else ""
    turned = entry.output_layout == "time-first"
    explaining = Explaining(explain, entry.output, turned=turned) if seen is None else seen.explaining
    network.register_forward_hook(explaining, with_kwargs=True)
    # What changes with what of the network is explained, and with inputs that are computed.
    code += f"{'' if explain is None else digest_of(explain)}{naming or ''}"
    code += "".join(f" {name} {value}" for name, value in vars(explaining).items() if name != "explain" and value)
    code += "".join(f" {what}" for what in (getattr(network, "taken", ""), seen.opened if seen else "") if what)
    if seen is not None and entry.dataset:
        done, order = fit_scores(entry, network, seen, where)
        remarks += done
        code += "" if is_file and order.same(len(order.outputs)) else f" {order.outputs}"
    found = _found(layers, layer, network, seen, inputs, where)
    weighted = [name for name, module in named_layers(network).items() if has_weights(module) and name in found.layers]
    if seen is not None and weighted == [found.default_layer] and _gives_scores(seen, found.default_layer):
        remarks += (
            f"Layer {found.default_layer!r} gives the scores themselves, and none with weights is before it: its "
            "neurons are the classes.",
        )
    fixed = cast("Network", network)
    fixed.idc_code, fixed.remarks = code, remarks  # type: ignore[assignment]
    return fixed, found


def _counts(entry: OwnModel, network: nn.Module) -> tuple[int, ...]:
    """Return how many scores there may be: as the data have classes, or as the network names outputs."""
    from idc_core.datasets import DATASETS

    if entry.dataset not in DATASETS:
        return ()
    classes = 1 if entry.task == "regression" else len(DATASETS[entry.dataset].class_names)
    return tuple(dict.fromkeys((classes, len(entry.output_names or names_of_outputs(network)))))


def _copy(entry: OwnModel, built: nn.Module, where: str) -> nn.Module:
    """Return a copy of what a person's function returned, which may be one object each time.

    Where it cannot be copied, it is taken as it is if the function returns another one the next time.
    """
    try:
        return copied(built)
    except Exception as error:
        again = cast("nn.Module", entry.build())
        parts, others = ({id(part) for part in (*one.modules(), *one.parameters())} for one in (built, again))
        if not parts & others:
            return built
        raise ModelError(
            f"{where} cannot be copied ({said(error)}), and is one object each time: make it anew in the function, or "
            "keep nothing in it that cannot be copied, such as an open file."
        ) from error


def _prepared(network: nn.Module) -> tuple[nn.Module, tuple[str, ...]]:
    check_made(network)
    remarks = list(getattr(network, "remarks", ()))
    for inner in ("_orig_mod", "module"):
        if isinstance(network, nn.DataParallel) or inner == "_orig_mod":
            within = getattr(network, inner, None)
            if isinstance(within, nn.Module):
                remarks.append(f"The module inside {type(network).__name__} is analysed.")
                network = within
    values = [value for value in (*network.parameters(), *network.buffers()) if value.is_floating_point()]
    kinds = sorted({str(value.dtype).removeprefix("torch.") for value in values} - {"float32"})
    if kinds:
        remarks.append(f"Weights were converted from {' and '.join(kinds)} to float32.")
        network = network.float()
    devices = sorted({str(value.device) for value in values} - {"cpu"})
    if devices:
        remarks.append(f"The network was moved from {' and '.join(devices)} to the CPU.")
        network = network.cpu()
    if has_weights(network):
        network = _with_name(network)
    return network.eval(), tuple(remarks)


def _with_name(layer: nn.Module) -> nn.Module:
    """Put a network that is itself one layer into another, where the layer has a name: that of its kind."""
    named = nn.Sequential(OrderedDict({type(layer).__name__.lower(): layer}))
    expected = getattr(layer, "expected", None)
    if isinstance(expected, Expected):
        cast("Any", named).expected = expected
    return named


def _first_inputs(entry: ModelEntry, network: nn.Module, count: int) -> tuple[Tensor | None, Naming | None]:
    """Return a few inputs, of the network's data, else as its file says, and what is computed beside them.

    None where neither tells.
    """
    from idc_core.datasets import DATASETS

    claim = getattr(network, "expected", None)
    expected = claim if isinstance(claim, Expected) else None
    if not entry.dataset:
        return (expected.example(), expected.naming) if expected else (None, None)
    if entry.dataset not in DATASETS:
        raise ModelError(
            f"{said_source(entry.build)}: the network {entry.name!r} takes the data set {entry.dataset!r}, which there "
            f"is not; register it with @idc.dataset, or choose one of {', '.join(DATASETS)}."
        )
    data = DATASETS[entry.dataset].load("train", count, None)
    by_name = expected.naming.padded(data.special[0]) if expected and expected.naming else None
    return torch.from_numpy(data.inputs[:count].copy()), data.naming or by_name


def _surveyed(
    network: nn.Module, inputs: Tensor, where: str, wanted: Wanted, from_file: bool, to_the_bit: bool
) -> tuple[Survey, Tensor]:
    """Look at a network; return as few inputs with which it runs as well: copies where a batch size is written in."""
    try:
        return Survey(network, inputs, where, wanted, from_file, to_the_bit), inputs[:_TWO]
    except ModelError as error:
        for rows in ([_TWO] if len(inputs) > _TWO else []) + sizes_in(error, inputs):
            copies = inputs[[row % len(inputs) for row in range(rows)]]
            try:
                return Survey(network, copies, where, wanted, from_file, to_the_bit), copies
            except ModelError:
                continue
        raise


def _laid_out(network: nn.Module, inputs: Tensor) -> tuple[str, ...]:
    """Bring pictures into the layout that the network's file asks for, where they fit in no other way; say so."""
    expected = getattr(network, "expected", None)
    shape = tuple(inputs.shape[1:])
    given = (hook for module in network.modules() for hook in module._forward_pre_hooks.values())
    hooks = [hook for hook in given if isinstance(hook, Before)]
    scaled = any(hook.scaling.layout != "first" for hook in hooks)
    if not isinstance(expected, Expected) or len(shape) < 2 or scaled or expected.fits(shape):
        return ()
    layouts = {"last": (*shape[1:], shape[0]), "flat": (math.prod(shape),), "rows": shape[1:] if shape[0] == 1 else ()}
    layout = next((name for name, other in layouts.items() if expected.fits(other)), "")
    if not layout:
        return ()
    scaling = Scaling(layout=cast("Layout", layout))
    put_before(network, scaling)
    return (f"Inputs are {scaling.said}, as the network's file asks.",)


def _found(
    chosen: tuple[str, ...], default: str, network: nn.Module, seen: Survey | None, inputs: Tensor | None, where: str
) -> Found:
    modules = named_layers(network)
    if seen is None:  # nothing tells what it takes: its layers in the order in which it names them
        ran = [name for name, module in modules.items() if name and next(module.children(), None) is None]
        offered = [name for name in ran if has_weights(modules[name]) or isinstance(modules[name], POOLING)]
    else:
        ran, offered = list(seen.outputs), seen.layers
    usual, shared = tuple(getattr(network, "offered_layers", ()) or offered), ""
    if seen is not None and inputs is not None and is_of_boxes(seen.explaining.explain):
        usual, shared = layers_of_boxes(network, seen.explaining, inputs, usual)
    given = (*chosen, default) if default else chosen
    for name in given:
        if split_layer(name)[0] not in modules or not name:
            raise ModelError(f"{where} has no layer {name!r}; layers with neurons are {', '.join(offered)}.")
    layers = chosen
    if not chosen:
        offers = {*usual, *given}
        layers = tuple(name for name in ran if name in offers)
        layers += tuple(name for name in given if name not in layers)
    if not layers:
        raise ModelError(
            f"{where} runs no module with neurons of its own; name a layer with layer=... of @idc.network."
        )
    weighted = [name for name in layers if name in modules and has_weights(modules[name])] or list(layers)
    if seen is not None and inputs is not None and seen.attentions and not chosen:
        layers = with_parts(network, inputs, layers, seen.attentions, seen.outputs)
    return Found(layers, shared if shared in layers else _before_scores(network, seen, inputs, weighted))


def _before_scores(network: nn.Module, seen: Survey | None, inputs: Tensor | None, weighted: list[str]) -> str:
    """Return the last layer with weights that the last one is computed from: of two heads neither is one."""
    if len(weighted) == 1 or seen is None or inputs is None or not isinstance(seen.scores, Tensor):
        return weighted[max(0, len(weighted) - 2)]
    *before, last = weighted
    for name in reversed(before):
        if _leads(network, inputs, name, last):
            return name
    return weighted[-2]


def _gives_scores(seen: Survey, layer: str) -> bool:
    """Whether a layer gives as many numbers per input as there are scores."""
    sizes = {value.numel() for value in seen.outputs.get(layer, ())}
    return isinstance(seen.scores, Tensor) and sizes == {seen.scores.numel()}


def _leads(network: nn.Module, inputs: Tensor, layer: str, other: str) -> bool:
    """Whether one layer is computed from another one."""
    held: dict[str, Tensor] = {}

    def begins(module: nn.Module, given: object, output: object) -> object:
        first, *rest = output if isinstance(output, tuple) else (output,)
        if not isinstance(first, Tensor):
            return None
        held[layer] = first.detach().requires_grad_()
        return (held[layer], *rest) if isinstance(output, tuple) else held[layer]

    def ends(module: nn.Module, given: object, output: object) -> None:
        first = output[0] if isinstance(output, tuple) else output
        if isinstance(first, Tensor):
            held[other] = first

    modules = named_layers(network)
    hooks = [modules[name].register_forward_hook(hook) for name, hook in ((layer, begins), (other, ends))]
    try:
        with torch.enable_grad():
            network(inputs)
            (gradient,) = torch.autograd.grad(held[other].sum(), held[layer], allow_unused=True)
    except (RuntimeError, KeyError):  # no gradients pass, or it gives several arrays, so that nothing is told
        return True
    finally:
        for hook in hooks:
            hook.remove()
    return gradient is not None
