"""A person's own network made ready: in eval mode, float32 on the CPU, scores unwrapped, layers found."""

from __future__ import annotations

import itertools
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from idc_core.base.own_code import code_digest, is_mistake, run_own, said, said_source, source_of
from idc_core.errors import IdcError, ModelError
from idc_core.guarded import Budget
from idc_core.lrp.calls import Args, Kwargs
from idc_core.lrp.explained import WAYS, Explain, Explaining, digest_of, said_of
from idc_core.lrp.heads import MULTI_HEAD, HeadFinder
from idc_core.lrp.layer_parts import split_layer
from idc_core.lrp.scores import SCORES
from idc_core.models.attentions import with_parts
from idc_core.models.bounded import Bounded
from idc_core.models.entry import Found, ModelEntry
from idc_core.models.named_inputs import put_naming
from idc_core.models.network import Expected
from idc_core.models.scaling import Layout, Scaling
from idc_core.models.wrapping import Before, put_before, put_two_scores

if TYPE_CHECKING:
    from idc_core.datasets.naming import Naming
    from idc_core.models.network import Network

_WEIGHTED = (nn.Linear, nn.Bilinear, nn.RNNBase, nn.modules.conv._ConvNd)
_POOLING = (
    nn.modules.pooling._MaxPoolNd,
    nn.modules.pooling._AvgPoolNd,
    nn.modules.pooling._AdaptiveAvgPoolNd,
    nn.modules.pooling._AdaptiveMaxPoolNd,
)


def adopt(entry: ModelEntry, explain: Explain | None, layers: tuple[str, ...], layer: str) -> tuple[Network, Found]:
    """Build a person's network and make it ready.

    Parameters
    ----------
    entry : ModelEntry
    explain : str or callable, optional
        Which scores are explained.
    layers, layer
        All that are offered, and the one analysed by default, as they were given; empty where they were not.

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
    built: object = run_own(f"building the network {entry.name!r}", file, entry.build, ModelError)
    if not isinstance(built, nn.Module):
        what = f"the class {built.__name__}" if isinstance(built, type) else f"a {type(built).__name__}"
        raise ModelError(f"{where} is {what}; expected that `build` returns a torch.nn.Module with its weights.")
    network, remarks = _prepared(built)
    network.register_forward_hook(Explaining(explain), with_kwargs=True)
    if explain is not None:
        remarks += (f"Explained and analysed: {said_of(explain)}.",)
    inputs, naming = _first_inputs(entry, network)
    if inputs is not None and entry.dataset:
        remarks += _laid_out(network, inputs)
    if naming is not None:
        put_naming(network, naming)
        remarks += (f"Inputs beside {naming.main!r}: {naming.said}.",) if naming.others else ()
    seen = None if inputs is None else _Survey(network, inputs, where, hasattr(entry.build, "path"))
    if seen is not None and entry.dataset:
        remarks += _fitting_scores(entry, network, seen, where)
    fixed = cast("Network", network)
    explained = "" if explain is None else digest_of(explain)
    # What changes with the network's code, with what of it is explained, and with inputs that are computed.
    fixed.code, fixed.remarks = f"{code_digest(entry.build)}{explained}{naming or ''}", remarks  # type: ignore[assignment]
    return fixed, _found(layers, layer, network, seen, inputs, where)


def _prepared(network: nn.Module) -> tuple[nn.Module, tuple[str, ...]]:
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
    if _has_weights(network):
        network = _with_name(network)
    return network.eval(), tuple(remarks)


def _with_name(layer: nn.Module) -> nn.Module:
    """Put a network that is itself one layer into another, where the layer has a name: that of its kind."""
    named = nn.Sequential(OrderedDict({type(layer).__name__.lower(): layer}))
    expected = getattr(layer, "expected", None)
    if isinstance(expected, Expected):
        cast("Any", named).expected = expected
    return named


def _first_inputs(entry: ModelEntry, network: nn.Module) -> tuple[Tensor | None, Naming | None]:
    """Return two inputs, of the network's data, else as its file says, and what is computed beside them.

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
    data = DATASETS[entry.dataset].load("train", 2, None)
    by_name = expected.naming.padded(data.special[0]) if expected and expected.naming else None
    return torch.from_numpy(data.inputs[:2].copy()), data.naming or by_name


def _laid_out(network: nn.Module, inputs: Tensor) -> tuple[str, ...]:
    """Bring pictures into the layout that the network's file asks for, where they fit in no other way; say so."""
    expected = getattr(network, "expected", None)
    shape = tuple(inputs.shape[1:])
    given = (hook for module in network.modules() for hook in module._forward_pre_hooks.values())
    hooks = [hook for hook in given if isinstance(hook, Before)]
    scaled = any(hook.scaling.layout != "first" for hook in hooks)
    if not isinstance(expected, Expected) or len(shape) < 2 or scaled or expected.fits(shape):
        return ()
    layouts = {"last": (*shape[1:], shape[0]), "flat": (math.prod(shape),)}
    layout = next((name for name, other in layouts.items() if expected.fits(other)), "")
    if not layout:
        return ()
    scaling = Scaling(layout=cast("Layout", layout))
    put_before(network, scaling)
    return (f"Inputs are {scaling.said}, as the network's file asks.",)


class _Noted(TorchFunctionMode):
    """Notes what sigmoids gave, and the module, the innermost `running`, of each attention with several heads."""

    def __init__(self, running: list[str], rows: int) -> None:
        super().__init__()
        self.results: dict[int, Tensor] = {}
        self.attentions: list[str] = []
        self._running, self._finder = running, HeadFinder(rows)

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> object:
        """Run one operation."""
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        moved = name in ("squeeze", "reshape", "view", "flatten") and id(args[0]) in self.results
        if name in ("sigmoid", "sigmoid_") or moved:
            self.results[id(result)] = result
        if self._running and self._heads(name, args, kwargs or {}, result) > 1:
            self.attentions.append(self._running[-1])
        return result

    def _heads(self, name: str, args: Args, kwargs: Kwargs, result: Tensor) -> int:
        """Return the heads of an attention, 0 for any other operation."""
        if name == MULTI_HEAD:
            return int(args[4])
        layout = self._finder.met(name, args, kwargs, result)
        return 0 if layout is None else layout.heads_of(result).shape[1]


_NUMBERS = itertools.count()
"""Numbers of tensors that modules gave: unlike their ids, they stay when the tensors are gone."""


class _Survey:
    """One pass: the scores, and the shapes of what every module gave, in the order in which they finished.

    What a network `from_file` holds at once is bounded.
    """

    def __init__(self, network: nn.Module, inputs: Tensor, where: str, from_file: bool) -> None:
        self.rows = len(inputs)
        self.outputs: dict[str, list[torch.Size]] = {}
        self._places: dict[str, int] = {}  # by module: the same number where the last output is the same tensor
        self._whole: set[str] = set()  # modules that give whole numbers
        self._modules = dict(network.named_modules())
        self._running: list[str] = []
        named = [(name, module) for name, module in self._modules.items() if name]
        hooks = [module.register_forward_pre_hook(self._entering(name)) for name, module in named]
        hooks += [module.register_forward_hook(self._noting(name)) for name, module in named]
        self.returned: Iterable[object] = ()  # by the network itself, before scores were taken from it
        hooks.append(network.register_forward_hook(self._returning, prepend=True))
        try:
            noted, budget = _Noted(self._running, len(inputs)), Budget(where)
            budget.held = sum(value.nbytes for value in network.state_dict().values() if isinstance(value, Tensor))
            with torch.no_grad(), Bounded(budget) if from_file else nullcontext(), noted:
                self.scores: Any = network(inputs)
            self.probability = id(self.scores) in noted.results
            self.attentions = noted.attentions
        except BaseException as error:
            if not is_mistake(error):
                raise
            kind = str(inputs.dtype).removeprefix("torch.")
            reason = said(error).removeprefix(f"{type(error).__name__}: " if isinstance(error, IdcError) else "")
            raise ModelError(
                f"{where} fails on inputs of shape {tuple(inputs.shape)} and type {kind}: "
                f"{reason.rstrip('.')}.{_other_channels(network, inputs)}"
            ) from error
        finally:
            for hook in hooks:
                hook.remove()

    def _entering(self, name: str) -> object:
        return lambda module, inputs: self._running.append(name)

    def _noting(self, name: str) -> object:
        def hook(module: nn.Module, inputs: object, output: object) -> None:
            self._running.pop()
            value = output[0] if isinstance(output, tuple | list) and output else output
            if isinstance(value, Tensor):
                if isinstance(module, nn.RNNBase) and not module.batch_first and value.dim() == 3:
                    value = value.transpose(0, 1)
                self._places[name] = vars(value).setdefault("_place", next(_NUMBERS))
                self.outputs.setdefault(name, []).append(value.shape)
                if not value.is_floating_point():
                    self._whole.add(name)

        return hook

    def _returning(self, module: nn.Module, inputs: object, output: object) -> None:
        self.returned = output if isinstance(output, tuple | list | Mapping) else ()

    def _has_neurons(self, name: str) -> bool:
        shape, *others = self.outputs[name]
        alike = all(other == shape for other in others) and name not in self._whole
        return alike and len(shape) > 1 and shape[0] == self.rows

    @property
    def layers(self) -> list[str]:
        """Layers with weights, poolings, and blocks whose output is no layer's own (sums of branches)."""
        layers: dict[int, str] = {}
        for name in self.outputs:
            module, place = self._modules[name], self._places[name]
            if not self._has_neurons(name):
                continue
            leaf = next(module.children(), None) is None
            if _has_weights(module) or isinstance(module, _POOLING):
                layers[place] = name
            elif not leaf and (place not in layers or not self._is_leaf(layers[place])):
                layers[place] = name  # of blocks with one output the outermost, which finishes last
        return list(layers.values())

    def _is_leaf(self, name: str) -> bool:
        return next(self._modules[name].children(), None) is None


def _other_channels(network: nn.Module, inputs: Tensor) -> str:
    """Say what to do where a network takes pictures in colour and these are grey, or the other way round."""
    if inputs.dim() != 4 or inputs.shape[1] not in (1, 3):
        return ""
    other = inputs.expand(-1, 3, -1, -1) if inputs.shape[1] == 1 else inputs.mean(1, keepdim=True)
    try:
        with torch.no_grad():
            network(other)
    except BaseException as error:
        if not is_mistake(error):
            raise
        return ""
    takes = "RGB pictures, and these are grey" if inputs.shape[1] == 1 else "grey pictures, and these are RGB"
    return f" It takes {takes}: read them with --channels {other.shape[1]}, or convert them in front of the network."


def _has_weights(module: nn.Module) -> bool:
    """Whether a module is a layer with a matrix of weights."""
    if isinstance(module, _WEIGHTED):
        return True
    kind = getattr(module, "_ty", None) or type(module).__name__  # an exported module keeps the name of its class
    if hasattr(module, "_packed_params"):  # a dense layer that PyTorch has quantised
        return True
    leaf = next(module.children(), None) is None and not str(kind).endswith(("Embedding", "EmbeddingBag"))
    return leaf and any(value.dim() > 1 for value in module.parameters(recurse=False))


def _fitting_scores(entry: ModelEntry, network: nn.Module, seen: _Survey, where: str) -> tuple[str, ...]:
    """Check the scores; where two classes have one, make two and say so."""
    scores, two = seen.scores, len(_class_names(entry)) == 2
    single = isinstance(scores, Tensor) and (scores.dim() == 1 or (scores.dim() == 2 and scores.shape[1] == 1))
    if entry.task != "classification" or not two or not single or not scores.is_floating_point():
        _check_scores(entry, seen, where)
        return ()
    put_two_scores(network, seen.probability)
    probability = "probability p of the second class: -x/2 and x/2 are analysed, x the logit of p"
    score = "score x: -x/2 and x/2 are analysed, so that the second class is predicted where x is above 0"
    return (f"It gives one {probability if seen.probability else score}.",)


def _class_names(entry: ModelEntry) -> tuple[str, ...]:
    from idc_core.datasets import DATASETS

    return DATASETS[entry.dataset].class_names


def _other_output(returned: Iterable[object], classes: int) -> str:
    """Say that one of several outputs was taken, and how to take another; "" where there is one alone."""
    parts = list(returned.items()) if isinstance(returned, Mapping) else list(enumerate(returned))
    given = [(name, value) for name, value in parts if isinstance(value, Tensor)]
    if len(given) < 2:
        return ""
    shapes = ", ".join(f"{name!r} of shape {tuple(value.shape)}" for name, value in given)
    fitting = (name for name, value in given if value.dim() == 2 and value.shape[1] == classes)
    return (
        f"it returned several outputs, a {type(returned).__name__} of {shapes}, of which one was taken; take another "
        f"with explain=lambda output: output[{next(fitting, given[-1][0])!r}]"
    )


def _from_one(dataset: str, outputs: int) -> str:
    """Say that classes are counted from 1 where those of a data set are."""
    from idc_core.datasets import DATASETS

    names = DATASETS[dataset].class_names
    if len(names) != outputs + 1 or names != tuple(map(str, range(len(names)))):
        return ""
    targets = DATASETS[dataset].load("train", None, None).targets
    if not len(targets) or min(targets) != 1:
        return ""
    return f"its targets are 1 to {max(targets)}; count classes from 0, as outputs are (targets - 1)"


def _check_scores(entry: ModelEntry, seen: _Survey, where: str) -> None:
    from idc_core.datasets import DATASETS

    scores = seen.scores
    if not isinstance(scores, Tensor):
        raise ModelError(
            f"{where} returns a {type(scores).__name__}; expected scores (n, classes), or a dictionary or record with "
            f"one of {', '.join(SCORES)}."
        )
    shape = tuple(scores.shape)
    if scores.dim() not in (1, 2) or not scores.is_floating_point():
        kind = str(scores.dtype).removeprefix("torch.")
        advice = f" Say which are explained with explain={WAYS}." if len(shape) > 2 else ""
        raise ModelError(
            f"{where} returns {kind} of shape {shape}; expected scores of shape (n, classes) as floats.{advice}"
        )
    outputs, names = 1 if scores.dim() == 1 else shape[1], DATASETS[entry.dataset].class_names
    if entry.task == "regression" and outputs != 1:
        raise ModelError(
            f"{where} returns {outputs} numbers per input, but {entry.dataset!r} is a regression: expected one. Where "
            'its targets are classes, give them as whole numbers or say task="classification".'
        )
    if entry.task == "classification" and outputs != len(names):
        advice = "give one score per class" if outputs == 1 else "name all classes with class_names=(...) of its data"
        advice = _other_output(seen.returned, len(names)) or _from_one(entry.dataset, outputs) or advice
        raise ModelError(
            f"{where} returns {outputs} score{'s' if outputs > 1 else ''} per input, but {entry.dataset!r} has "
            f"{len(names)} classes ({', '.join(names[:12])}): {advice}."
        )


def _found(
    chosen: tuple[str, ...], default: str, network: nn.Module, seen: _Survey | None, inputs: Tensor | None, where: str
) -> Found:
    modules = dict(network.named_modules())
    if seen is None:  # nothing tells what it takes: its layers in the order in which it names them
        ran = [name for name, module in modules.items() if name and next(module.children(), None) is None]
        offered = [name for name in ran if _has_weights(modules[name]) or isinstance(modules[name], _POOLING)]
    else:
        ran, offered = list(seen.outputs), seen.layers
    given = (*chosen, default) if default else chosen
    for name in given:
        if split_layer(name)[0] not in modules or not name:
            raise ModelError(f"{where} has no layer {name!r}; layers with neurons are {', '.join(offered)}.")
    layers = chosen
    if not chosen:
        offers = {*(getattr(network, "offered_layers", ()) or offered), *given}
        layers = tuple(name for name in ran if name in offers)
        layers += tuple(name for name in given if name not in layers)
    if not layers:
        raise ModelError(
            f"{where} runs no module with neurons of its own; name a layer with layer=... of @idc.network."
        )
    weighted = [name for name in layers if name in modules and _has_weights(modules[name])] or list(layers)
    if seen is not None and inputs is not None and seen.attentions and not chosen:
        layers = with_parts(network, inputs, layers, seen.attentions, seen.outputs)
    return Found(layers, weighted[-2] if len(weighted) > 1 else weighted[-1])
