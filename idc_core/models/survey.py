"""A pass of two inputs through a person's network: what it returns, which of it are scores, what layers give."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from idc_core.base.own_code import is_mistake, said
from idc_core.errors import IdcError, ModelError
from idc_core.guarded import Budget
from idc_core.lrp.calls import Args, Kwargs, Operation
from idc_core.lrp.endings import Endings, ending_of, is_plain, scores_before
from idc_core.lrp.explained import Explain, Explaining, settled
from idc_core.lrp.heads import MULTI_HEAD, HeadFinder
from idc_core.lrp.named_inputs import said_missing
from idc_core.lrp.scores import outputs_of, scores_of
from idc_core.lrp.session import named_layers
from idc_core.models.behaviour import Behaviour
from idc_core.models.bounded import Bounded
from idc_core.models.outputs import Output, likeliest, said_choice

_WEIGHTED = (nn.Linear, nn.Bilinear, nn.RNNBase, nn.MultiheadAttention, nn.modules.conv._ConvNd)
POOLING = (
    nn.modules.pooling._MaxPoolNd,
    nn.modules.pooling._AvgPoolNd,
    nn.modules.pooling._AdaptiveAvgPoolNd,
    nn.modules.pooling._AdaptiveMaxPoolNd,
)


@dataclass(frozen=True)
class Wanted:
    """What a person said of a network's scores, and how many there may be.

    `explain`, `output` and `output_layout` are as in `idc_core.models.own.OwnModel`; `counts` are the
    numbers of classes of the data, and of the names that the network gives its outputs.
    """

    explain: Explain | None = None
    output: str = ""
    counts: Sequence[int] = ()
    output_layout: str = ""


class _Noted(Endings):
    """Notes how the output is computed, and the innermost module `running` of each attention with several heads."""

    def __init__(self, running: list[str], rows: int) -> None:
        super().__init__(maps=True)
        self.attentions: list[str] = []
        self._running, self._finder = running, HeadFinder(rows)

    def __torch_function__(
        self, func: Operation, types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> object:
        """Run one operation."""
        result = super().__torch_function__(func, types, args, kwargs)
        if self._running and self._heads(getattr(func, "__name__", ""), args, kwargs or {}, result) > 1:
            self.attentions.append(self._running[-1])
        return result

    def _heads(self, name: str, args: Args, kwargs: Kwargs, result: Any) -> int:
        """Return the heads of an attention, 0 for any other operation."""
        if name == MULTI_HEAD:
            return int(args[4])
        layout = self._finder.met(name, args, kwargs, result)
        return 0 if layout is None else layout.heads_of(result).shape[1]


_NUMBERS = itertools.count()
"""Numbers of tensors that modules gave: unlike their ids, they stay when the tensors are gone."""


class Survey:
    """One pass: the scores, and the shapes of what every module gave, in the order in which they finished.

    What a network `from_file` holds at once is bounded.

    Attributes
    ----------
    explaining : Explaining
        The hook that makes scores of what the network returns.
    returned : dict of str to Tensor
        What it returns by name, where that is several things.
    scores : Tensor or object
        What `explaining` made of it.
    probability : bool
        Whether `scores` are the result of a sigmoid.
    behaviour : Behaviour or None
        What all modules and the scores gave, where asked for `to_the_bit`.
    opened : str
        The ending that is left out where relevance starts, if that is not one softmax; "" for none.
    remarks : tuple of str
    """

    def __init__(
        self, network: nn.Module, inputs: Tensor, where: str, wanted: Wanted, from_file: bool, to_the_bit: bool = False
    ) -> None:
        self.rows, self.behaviour = len(inputs), Behaviour() if to_the_bit else None
        self.outputs: dict[str, list[torch.Size]] = {}
        self._places: dict[str, int] = {}  # by module: the same number where the last output is the same tensor
        self._whole: set[str] = set()  # modules that give whole numbers
        self.returned: dict[str, Tensor] = {}
        self.remarks: tuple[str, ...] = ()
        self._wanted = wanted
        self._modules = named_layers(network)
        self._running: list[str] = []
        self._named: Kwargs = {}
        named = [(name, module) for name, module in self._modules.items() if name]
        hooks = [module.register_forward_pre_hook(self._entering(name)) for name, module in named]
        hooks += [module.register_forward_hook(self._noting(name)) for name, module in named]
        hooks.append(network.register_forward_hook(self._returning, with_kwargs=True))
        try:
            noted, budget = _Noted(self._running, len(inputs)), Budget(where)
            budget.held = sum(value.nbytes for value in network.state_dict().values() if isinstance(value, Tensor))
            settled = self.behaviour.settled() if self.behaviour else nullcontext()
            with settled, torch.no_grad(), Bounded(budget) if from_file else nullcontext(), noted:
                output: object = network(inputs)
                self.explaining = self._chosen(output)
                self.scores: Any = self.explaining(network, (), self._named, output)
            if self.behaviour:
                self.behaviour.take(self.scores)
            self.probability = isinstance(self.scores, Tensor) and _ending(self.scores) == "sigmoid"
            self.opened = _opened(self.scores)
            self.attentions = noted.attentions
        except BaseException as error:
            if not is_mistake(error):
                raise
            kind = str(inputs.dtype).removeprefix("torch.")
            reason = said(error).removeprefix(f"{type(error).__name__}: " if isinstance(error, IdcError) else "")
            raise ModelError(
                f"{where} fails on inputs of shape {tuple(inputs.shape)} and type {kind}: "
                f"{reason.rstrip('.')}.{said_missing(error) or _other_channels(network, inputs)}"
            ) from error
        finally:
            for hook in hooks:
                hook.remove()

    def _chosen(self, output: object) -> Explaining:
        """Choose which output holds the scores, and say so; a function of the person's own gets all of them."""
        explain, name = self._wanted.explain, self._wanted.output
        self.returned = {} if isinstance(output, Tensor) else outputs_of(output)
        known = {
            one: Output((None, *value.shape[1:]), _ending(value))
            for one, value in self.returned.items()
            if value.is_floating_point() and value.dim()
        }
        if not name and len(known) > 1 and not callable(explain):
            name = likeliest(known, self._wanted.counts)
        if name in known:
            self.remarks = tuple(filter(None, (said_choice(name, known),)))
        taken = scores_of(output, name)
        usual = isinstance(output, Tensor) or name not in known or scores_of(output) is taken
        name = "" if usual and not self._wanted.output else name
        turned = self._turned(taken)
        if turned:
            taken = taken.transpose(0, 1)
            self.remarks += ("Its scores are (time, inputs, classes): the first two axes are exchanged.",)
        if not isinstance(explain, str):
            return Explaining(explain, name, turned=turned)
        found = settled(explain, taken, self._wanted.counts[::-1], name)
        if found.undo:
            self.remarks += (f"The {found.undo} at its end is undone: the scores before it are explained.",)
        if found.axes not in ("", "classes,pixels", explain.partition(":")[2]):
            shape = ", ".join(("n", *map(str, taken.shape[1:])))
            self.remarks += (f"Its output ({shape}) is read as {found.axes}: --explain {explain}:{found.axes}.",)
        return replace(found, turned=turned)

    def _turned(self, scores: object) -> bool:
        """Whether scores have the inputs as their second axis: as said, else as a batch of two tells."""
        if not isinstance(scores, Tensor) or scores.dim() != 3:
            return False
        told = scores.shape[0] != self.rows == scores.shape[1]
        return self._wanted.output_layout == "time-first" or (told and not self._wanted.output_layout)

    def _entering(self, name: str) -> Callable[..., None]:
        return lambda module, inputs: self._running.append(name)

    def _noting(self, name: str) -> Callable[..., None]:
        def hook(module: nn.Module, inputs: object, output: object) -> None:
            self._running.pop()
            if self.behaviour:
                self.behaviour.take(output)
            value = output[0] if isinstance(output, tuple | list) and output else output
            if isinstance(value, Tensor):
                self._places[name] = vars(value).setdefault("_place", next(_NUMBERS))
                own = value.dim() == 3 and value.shape[0] != self.rows == value.shape[1]
                if own or (isinstance(module, nn.RNNBase) and not module.batch_first and value.dim() == 3):
                    value = value.transpose(0, 1)  # time first
                self.outputs.setdefault(name, []).append(value.shape)
                if not value.is_floating_point():
                    self._whole.add(name)

        return hook

    def _returning(self, module: nn.Module, inputs: object, named: Kwargs, output: object) -> None:
        self._named = named

    def _has_neurons(self, name: str, parted: bool) -> bool:
        """Whether a layer has one row per input, or `parted` several, such as the patches of each series."""
        shape, *others = self.outputs[name]
        alike = all(other == shape for other in others) and name not in self._whole
        return alike and len(shape) > 1 and (shape[0] == self.rows or (parted and not shape[0] % self.rows))

    @property
    def layers(self) -> list[str]:
        """Layers with weights, poolings, and blocks whose output is no layer's own (sums of branches).

        Those that give several rows per input are among them where most layers with weights do.
        """
        weighted = [name for name in self.outputs if has_weights(self._modules[name])]
        parted = 2 * sum(self._has_neurons(name, False) for name in weighted) < len(weighted)
        layers: dict[int, str] = {}
        for name in self.outputs:
            module, place = self._modules[name], self._places[name]
            if not self._has_neurons(name, parted):
                continue
            leaf = next(module.children(), None) is None
            if has_weights(module) or isinstance(module, POOLING):
                layers[place] = name
            elif not leaf and (place not in layers or not self._is_leaf(layers[place])):
                layers[place] = name  # of blocks with one output the outermost, which finishes last
        return list(layers.values())

    def _is_leaf(self, name: str) -> bool:
        return next(self._modules[name].children(), None) is None


def _opened(scores: object) -> str:
    if not isinstance(scores, Tensor) or scores_before(scores) is scores or is_plain(scores):
        return ""
    return _ending(scores)


def _ending(output: Tensor) -> str:
    """Return what an output is the result of; "" for nothing that is known."""
    return (ending_of(output) or ("",))[0]


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


def has_weights(module: nn.Module) -> bool:
    """Whether a module is a layer with a matrix of weights."""
    if isinstance(module, _WEIGHTED):
        return True
    kind = getattr(module, "_ty", None) or type(module).__name__  # an exported module keeps the name of its class
    if hasattr(module, "_packed_params"):  # a dense layer that PyTorch has quantised
        return True
    leaf = next(module.children(), None) is None and not str(kind).endswith(("Embedding", "EmbeddingBag"))
    return leaf and any(value.dim() > 1 for value in module.parameters(recurse=False))
