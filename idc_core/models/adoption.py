"""A person's own network made ready: in eval mode, float32 on the CPU, scores unwrapped, layers found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from idc_core.errors import ModelError
from idc_core.models.own import Found
from idc_core.own_code import code_digest, run_own, said_source, source_of

if TYPE_CHECKING:
    from idc_core.models.network import Network
    from idc_core.models.own import OwnModel

SCORES = ("logits", "scores", "output", "out", "predictions", "prediction")
"""Names under which networks give their scores, where they give several things."""

_WEIGHTED = (nn.Linear, nn.Bilinear, nn.RNNBase, nn.modules.conv._ConvNd)
_POOLING = (
    nn.modules.pooling._MaxPoolNd,
    nn.modules.pooling._AvgPoolNd,
    nn.modules.pooling._AdaptiveAvgPoolNd,
    nn.modules.pooling._AdaptiveMaxPoolNd,
)


def adopt(entry: OwnModel) -> tuple[Network, Found]:
    """Build a person's network and make it ready.

    Parameters
    ----------
    entry : OwnModel

    Returns
    -------
    network : Module
        In eval mode, float32 on the CPU; it returns scores (n, outputs). `remarks`, a tuple of sentences, says what
        was changed; `code` is the digest of its code, part of its fingerprint.
    found : Found

    Raises
    ------
    ModelError
        If it cannot be built, fails on the first two inputs of its data, or returns no scores that fit them.
    """
    where = f"{said_source(entry.build)}: the network {entry.name!r}"
    file = source_of(entry.build)[0]
    built: Any = run_own(f"building the network {entry.name!r}", file, entry.build, ModelError)
    if not isinstance(built, nn.Module):
        what = f"the class {built.__name__}" if isinstance(built, type) else f"a {type(built).__name__}"
        raise ModelError(f"{where} is {what}; expected that `build` returns a torch.nn.Module with its weights.")
    network, remarks = _prepared(built)
    network.register_forward_hook(_unwrap)
    seen = _Survey(network, _first_inputs(entry), where)
    _check_scores(entry, seen.scores, where)
    fixed = cast("Network", network)
    fixed.code, fixed.remarks = code_digest(entry.build), remarks  # type: ignore[assignment]
    return fixed, _found(entry, network, seen, where)


def scores_of(output: Any) -> Any:
    """Return the scores of what a network returned: of its dictionary, record or tuple; itself where there are none."""
    if isinstance(output, Tensor):
        return output
    if isinstance(output, Mapping):
        named = [output[name] for name in SCORES if name in output]
        values: Sequence[Any] = [*named, *output.values()]
    else:
        named = [getattr(output, name) for name in SCORES if hasattr(output, name)]
        values = [*named, *(output if isinstance(output, tuple | list) else getattr(output, "__dict__", {}).values())]
    return next((value for value in values if isinstance(value, Tensor)), output)


def _unwrap(module: nn.Module, inputs: Any, output: Any) -> Any:
    """Unwrap what the network returns; a hook leaves the names of the layers as they are."""
    return scores_of(output)


def _prepared(network: nn.Module) -> tuple[nn.Module, tuple[str, ...]]:
    remarks = []
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
    return network.eval(), tuple(remarks)


def _first_inputs(entry: OwnModel) -> Tensor:
    from idc_core.datasets import DATASETS

    if entry.dataset not in DATASETS:
        raise ModelError(
            f"{said_source(entry.build)}: the network {entry.name!r} takes the data set {entry.dataset!r}, which there "
            f"is not; register it with @idc.dataset, or choose one of {', '.join(DATASETS)}."
        )
    return torch.from_numpy(DATASETS[entry.dataset].load("train", 2, None).inputs[:2].copy())


class _Survey:
    """One pass: the scores, and the output of every module that ran, in the order in which they finished."""

    def __init__(self, network: nn.Module, inputs: Tensor, where: str) -> None:
        self.rows = len(inputs)
        self.outputs: dict[str, list[Tensor]] = {}
        self._modules = dict(network.named_modules())
        hooks = [module.register_forward_hook(self._noting(name)) for name, module in self._modules.items() if name]
        try:
            with torch.no_grad():
                self.scores: Any = network(inputs)
        except Exception as error:
            kind = str(inputs.dtype).removeprefix("torch.")
            raise ModelError(
                f"{where} fails on inputs of shape {tuple(inputs.shape)} and type {kind}: "
                f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
            ) from error
        finally:
            for hook in hooks:
                hook.remove()

    def _noting(self, name: str) -> Any:
        def hook(module: nn.Module, inputs: Any, output: Any) -> None:
            value = output[0] if isinstance(output, tuple | list) and output else output
            if isinstance(value, Tensor):
                if isinstance(module, nn.RNNBase) and not module.batch_first and value.dim() == 3:
                    value = value.transpose(0, 1)
                self.outputs.setdefault(name, []).append(value)

        return hook

    def weighted(self, name: str) -> bool:
        """Whether a layer has weights of its own."""
        return isinstance(self._modules[name], _WEIGHTED)

    def _has_neurons(self, name: str) -> bool:
        values = self.outputs[name]
        shapes = {tuple(value.shape) for value in values}
        return (
            len(shapes) == 1 and values[0].is_floating_point() and values[0].dim() > 1 and len(values[0]) == self.rows
        )

    @property
    def layers(self) -> list[str]:
        """Layers with weights, poolings, and blocks whose output is no layer's own (sums of branches)."""
        found: dict[int, str] = {}
        for name in self.outputs:
            module, place = self._modules[name], id(self.outputs[name][-1])
            if not self._has_neurons(name):
                continue
            leaf = next(module.children(), None) is None
            if isinstance(module, (*_WEIGHTED, *_POOLING)):
                found[place] = name
            elif not leaf and (place not in found or not self._is_leaf(found[place])):
                found[place] = name  # of blocks with one output the outermost, which finishes last
        return list(found.values())

    def _is_leaf(self, name: str) -> bool:
        return next(self._modules[name].children(), None) is None


def _check_scores(entry: OwnModel, scores: Any, where: str) -> None:
    from idc_core.datasets import DATASETS

    if not isinstance(scores, Tensor):
        raise ModelError(
            f"{where} returns a {type(scores).__name__}; expected scores (n, classes), or a dictionary or record with "
            f"one of {', '.join(SCORES)}."
        )
    shape = tuple(scores.shape)
    if scores.dim() not in (1, 2) or not scores.is_floating_point():
        kind = str(scores.dtype).removeprefix("torch.")
        raise ModelError(f"{where} returns {kind} of shape {shape}; expected scores of shape (n, classes) as floats.")
    outputs, names = 1 if scores.dim() == 1 else shape[1], DATASETS[entry.dataset].class_names
    if entry.task == "regression" and outputs != 1:
        raise ModelError(
            f"{where} returns {outputs} numbers per input, but {entry.dataset!r} is a regression: expected one. Where "
            'its targets are classes, give them as whole numbers or say task="classification".'
        )
    if entry.task == "classification" and outputs != len(names):
        advice = (
            "give two scores, for example torch.cat([-x, x], 1)"
            if outputs == 1
            else "name all classes with class_names=(...) of @idc.dataset"
        )
        raise ModelError(
            f"{where} returns {outputs} score{'s' if outputs > 1 else ''} per input, but {entry.dataset!r} has "
            f"{len(names)} classes ({', '.join(names[:12])}): {advice}."
        )


def _found(entry: OwnModel, network: nn.Module, seen: _Survey, where: str) -> Found:
    modules = dict(network.named_modules())
    given = (entry.layers if "layers" in entry.given else ()) + (
        (entry.default_layer,) if "default_layer" in entry.given else ()
    )
    for name in given:
        if name not in modules or not name:
            close = ", ".join(seen.layers)
            raise ModelError(f"{where} has no layer {name!r}; layers with neurons are {close}.")
    if "layers" in entry.given:
        layers = entry.layers
    else:
        wanted = {*seen.layers, *given}
        layers = tuple(name for name in seen.outputs if name in wanted)
    if not layers:
        raise ModelError(
            f"{where} runs no module with neurons of its own; name a layer with layer=... of @idc.network."
        )
    weighted = [name for name in layers if seen.weighted(name)] or list(layers)
    return Found(layers, weighted[-2] if len(weighted) > 1 else weighted[-1])
