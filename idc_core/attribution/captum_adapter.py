"""A network in the form that captum can read: every activation function and max pooling a module of its own.

captum's DeepLift changes the gradient of modules. Where a network calls ``F.relu(x)``, shares one ``nn.ReLU`` among
several places, or writes ``x.relu_()``, there is no module to change and captum returns plain gradients without a
word. Here those calls are redirected, while the network runs, to modules that each stand for one call. The network
itself is not changed, and its weights are not copied.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from idc_core.base.devices import check_values
from idc_core.errors import ModelError, UnsupportedOperationError
from idc_core.lrp import endings
from idc_core.lrp.calls import Args, Kwargs, Operation, name_of, plain_name, tensors_of, written_into
from idc_core.lrp.captures import INPUT
from idc_core.lrp.layer_parts import HEADS, part_of_layer, split_layer
from idc_core.lrp.named_inputs import filled, main_of
from idc_core.lrp.operations import ACTIVATIONS
from idc_core.lrp.randomness import DRAWING, Randomness
from idc_core.lrp.scores import scores_of
from idc_core.lrp.session import named_layers
from idc_core.tracing.batching import Company
from idc_core.tracing.neurons import axis_in, behind, neuron_activation, neuron_axes
from idc_core.tracing.parts import kept_tokens, part_of


class _MaxPool1d(nn.MaxPool1d):
    """A type of our own, so that captum's rule for it can be mended without touching captum's (`gradients`)."""


class _MaxPool2d(nn.MaxPool2d):
    """As `_MaxPool1d`."""


class _MaxPool3d(nn.MaxPool3d):
    """As `_MaxPool1d`."""


MAX_POOLINGS = _MaxPool1d, _MaxPool2d, _MaxPool3d


def _pool(module: type[nn.Module]) -> Callable[..., nn.Module]:
    def build(
        kernel_size: object,
        stride: object = None,
        padding: object = 0,
        dilation: object = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> nn.Module:
        return module(kernel_size, stride, padding, dilation, return_indices, ceil_mode)

    return build


READABLE: dict[str, Callable[..., nn.Module]] = {
    "relu": lambda inplace=False: nn.ReLU(),
    "leaky_relu": lambda negative_slope=0.01, inplace=False: nn.LeakyReLU(negative_slope),
    "elu": lambda alpha=1.0, inplace=False: nn.ELU(alpha),
    "sigmoid": nn.Sigmoid,
    "tanh": nn.Tanh,
    "softplus": lambda beta=1.0, threshold=20.0: nn.Softplus(beta, threshold),
    "max_pool1d": _pool(_MaxPool1d),
    "max_pool2d": _pool(_MaxPool2d),
    "max_pool3d": _pool(_MaxPool3d),
}
"""Non-linear operations that captum's DeepLift has a rule for, and the module that stands for each."""

_ASKS = frozenset(("__get__", "size", "dim", "numel", "__len__", "is_floating_point", "long", "to", "contiguous"))
"""Calls that only ask about a tensor, or give it back as it is."""


class _Other(nn.Module):
    """An activation function that captum's DeepLift has no rule for."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, x: Tensor, *args: object, **kwargs: object) -> Tensor:
        return ACTIVATIONS[self.name](x, *args, **kwargs)


@dataclass(frozen=True)
class _Layer:
    """What a layer gives: the module whose output it is, and its shape for one input."""

    name: str
    module: nn.Module
    shape: tuple[int, ...]
    of_tokens: bool  # (tokens, features), not channels with their positions


def check_heads(layer: str) -> None:
    """Refuse attention heads where gradients are taken."""
    if split_layer(layer)[1] == HEADS:
        raise UnsupportedOperationError(
            "Gradient methods and searches by gradients see what modules give, and attention heads have no module of "
            f"their own. Choose another layer than {layer!r}, or a rule of relevance propagation."
        )


class CaptumNetwork(nn.Module):
    """A network seen through modules, from floating-point inputs to the scores before the final softmax.

    It is inside `undisturbed` for as long as this object is used; the first of `inputs` (n, ...) is run to see what it
    does, in the `company` that it takes an input in. With the name of a layer as `ends_at`, the scores are the
    activations of its neurons.
    """

    def __init__(self, model: nn.Module, inputs: Tensor, company: Company, ends_at: str = "") -> None:
        super().__init__()
        check_values(model.parameters())
        self.company = company
        self._ends_at = ends_at
        # In a tuple, so that captum, which walks the modules, meets the steps alone.
        self._network = (model,)
        self.steps = nn.ModuleList()  # one for every call of an activation function or max pooling, in their order
        self.elements = 0  # numbers that the network computes for one input
        self._layers: dict[str, nn.Module] = {}
        self._uses: dict[str, int] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._embedding: Tensor | None = None
        self._record(model, main_of(filled(inputs[:1], company.traits.least)))
        end = self.layer(ends_at) if ends_at else None
        self._end: tuple[nn.Module, ...] = () if end is None else (end,)  # in a tuple, as the network
        self._axis = neuron_axes(model, (ends_at,))[ends_at] if ends_at else 0

    @property
    def unreadable(self) -> list[str]:
        """Names of the activation functions that captum's DeepLift has no rule for."""
        return sorted({step.name for step in self.steps if isinstance(step, _Other)})

    def floats(self, inputs: Tensor) -> Tensor:
        """Return inputs as the numbers that are attributed to: as they are, or whole numbers after their embedding."""
        if inputs.is_floating_point() or self._embedding is None:
            return inputs.detach().clone()
        embedded: Tensor = F.embedding(inputs, self._embedding)
        return embedded.detach()

    def held(self, inputs: Tensor) -> Tensor | None:
        """Return the whole numbers that stay as they are while their embedding varies; None for float inputs.

        What a network computes from them beside the embedding, such as the mask of padding, is a constant.
        """
        return None if inputs.is_floating_point() else inputs

    def scores_of(self, inputs: Tensor) -> Tensor:
        """Return the scores (n, classes) of inputs as the network takes them."""
        scores: Tensor = self(self.floats(inputs), self.held(inputs))
        return scores

    def layer(self, name: str) -> nn.Module | None:
        """Return the module whose output is the layer's, after its activation function; None for the input.

        Of a layer that is one token it is that of all tokens.
        """
        if name == INPUT:
            return None
        name, part = (name, "") if name in self._uses else split_layer(name)
        check_heads(part_of_layer(name, part) if part else name)
        uses = self._uses.get(name, 0)
        if uses != 1 or name not in self._layers:
            reason = "does not return one tensor" if uses == 1 else f"runs {uses} times on an input"
            raise UnsupportedOperationError(
                f"Layer {name!r} {reason}; this method needs a layer that runs once and returns one tensor. "
                "Choose another layer, or a rule of relevance propagation."
            )
        if self._ends_at:
            order = list(self._layers)
            if order.index(name) > order.index(split_layer(self._ends_at)[0]):
                raise behind(name, self._ends_at)
        return self._layers[name]

    def last_maps(self) -> _Layer | None:
        """Return the last layer whose channels have several positions, before the one that the network ends at."""
        order = list(self._layers)
        ended = order.index(split_layer(self._ends_at)[0]) + 1 if self._ends_at else len(order)
        maps = [self._known(name) for name in order[:ended] if self._uses[name] == 1]
        maps = [layer for layer in maps if not layer.of_tokens and max(layer.shape[1:], default=1) > 1]
        return maps[-1] if maps else None

    def is_of_tokens(self, layer: nn.Module) -> bool:
        """Return whether a layer gives features of tokens."""
        return any(self._known(name).of_tokens for name, module in self._layers.items() if module is layer)

    def _known(self, name: str) -> _Layer:
        shape = self._shapes[name]
        axis = axis_in(1 + len(shape), neuron_axes(self._network[0], (name,))[name])
        return _Layer(name, self._layers[name], shape, len(shape) > 1 and axis > 1)

    def forward(self, inputs: Tensor, held: Tensor | None = None) -> Tensor:
        """Return the scores (n, classes) of floating-point inputs; of token inputs `held` are the tokens themselves."""
        rows, least, most = len(inputs), self.company.traits.least, self.company.most
        if rows > most:
            raise UnsupportedOperationError(
                f"Inputs of this network run {most} at a time, and this method runs {rows} together. Choose integrated "
                "gradients, or a rule of relevance propagation."
            )
        held = held if held is None else main_of(filled(held, least))
        with _Redirected(self, main_of(filled(inputs, least)), held) as run:
            scores = self._activations(run) if self._ends_at else run.scores(self._network[0](run.given))
        return scores[:rows]

    def _activations(self, run: "_Redirected") -> Tensor:
        """Run the network and return the activations (n, neurons) of the layer that it ends at."""
        heard: list[Tensor] = []
        handle = self._end[0].register_forward_hook(lambda module, args, output: heard.append(output))
        try:
            self._network[0](run.given)
        finally:
            handle.remove()
        kept, part = kept_tokens(self._network[0], run.given), part_of(self._ends_at)
        value = heard[0].clone()  # as in `_Redirected._step`
        return neuron_activation(value if part is None else part.active(value, kept), self._axis, kept)

    def _record(self, model: nn.Module, example: Tensor) -> None:
        expected = scores_of(model(example))
        with _Redirected(self, example, example, recording=True) as run, _listening(model, run):
            scores = run.scores(model(example))
        self.elements = max(1, run.elements // len(example))
        if not example.is_floating_point() and self._embedding is None:
            raise UnsupportedOperationError(
                "The network's input is whole numbers that no embedding looks up as they are, so that there are no "
                "gradients. Choose a network with an embedding, or float inputs."
            )
        # The softmax may have been taken off the scores; its result must be what the network returned.
        returned = run.returned
        if not isinstance(expected, Tensor) or returned is None or not torch.allclose(returned, expected, 1e-4, 1e-5):
            raise UnsupportedOperationError(
                "The network changes tensors in place in a way that cannot be followed through modules. "
                "Choose a rule of relevance propagation."
            )
        if scores.dim() != 2 and not self._ends_at:
            raise ModelError(
                f"The network returns an array of shape {tuple(scores.shape)}; expected scores of shape (n, classes)."
            )


class _Redirected(TorchFunctionMode):
    """One run of the network whose activation functions and poolings are answered by modules."""

    def __init__(
        self, opened: CaptumNetwork, inputs: Tensor, held: Tensor | None = None, recording: bool = False
    ) -> None:
        super().__init__()
        self.opened, self.recording = opened, recording
        self.elements = 0
        self.returned: Tensor | None = None
        # A copy, because a network may write into its input, and nothing may be written into a leaf of the graph.
        self.given = inputs.clone() if held is None else held
        self._embedded = None if recording or held is None else inputs
        self._looked_up = False
        self._next = 0
        self._waiting: dict[int, tuple[Tensor, list[str]]] = {}
        self._made: dict[int, tuple[Tensor, nn.Module]] = {}
        self._randomness = Randomness()

    def scores(self, output: object) -> Tensor:
        """Return the scores before the final softmax, shape (n, classes)."""
        output = scores_of(output)
        if not isinstance(output, Tensor):
            raise ModelError(f"The network returns a {type(output).__name__}; expected scores of shape (n, classes).")
        self._randomness.check([output])
        self.returned = output
        scores = endings.scores_before(output)
        return scores[:, None] if scores.dim() == 1 else scores

    def layer_ran(self, name: str, module: nn.Module, output: object) -> None:
        """Note what a layer gave; an activation function right behind it still belongs to it."""
        self.opened._uses[name] = self.opened._uses.get(name, 0) + 1
        if not isinstance(output, Tensor):
            return
        self.opened._shapes[name] = tuple(output.shape[1:])
        made = self._made.get(id(output))
        self.opened._layers[name] = made[1] if made else module
        if not made:
            self._waiting.setdefault(id(output), (output, []))[1].append(name)

    def __torch_function__(
        self, func: Operation, types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> object:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name in _ASKS:
            return func(*args, **kwargs)
        if self.recording and name in DRAWING and self._randomness.meet(name, args, kwargs, ""):
            result = func(*args, **kwargs)
            self._randomness.keep(name, result, "")
            return result
        if self._randomness.unused:
            self._randomness.check(tensors_of(args, kwargs))
        into = next(iter(written_into(name, args, kwargs)), None)
        name, _ = plain_name(name, kwargs)
        layers = self._claimed(args, kwargs) if self.recording else []
        if name in ACTIVATIONS or name in READABLE:
            result = self._step(name, args, kwargs, layers, into)
        elif name == "embedding" and self._is_input(args[0]):
            result = self._embed(func, args, kwargs)
        else:
            result = func(*args, **kwargs)
        endings.note(name_of(func), args, kwargs, result)
        if self.recording and isinstance(result, Tensor):
            self.elements += result.numel()
        return result

    def _claimed(self, args: Args, kwargs: Kwargs) -> list[str]:
        """Return the layers whose output is read first by this operation."""
        claimed = []
        for value in (*args, *kwargs.values()):
            if isinstance(value, Tensor):
                claimed += self._waiting.pop(id(value), (None, []))[1]
        return claimed

    def _step(self, name: str, args: Args, kwargs: Kwargs, layers: list[str], into: Tensor | None) -> Tensor:
        steps = self.opened.steps
        x, *rest = args if args else (kwargs.pop("input"),)
        kwargs.pop("out", None)
        if self.recording:
            steps.append(READABLE[name](*rest, **kwargs) if name in READABLE else _Other(name))
        if self._next == len(steps):
            raise UnsupportedOperationError(
                "The network runs different operations on different inputs, so that they cannot be compared with a "
                "baseline. Choose a rule of relevance propagation."
            )
        step = steps[self._next]
        self._next += 1
        # A copy: captum's hooks of two modules on one tensor run in the wrong order, so that a pooling right behind
        # an activation function would hand it the plain gradient.
        given = x if into is None else x.clone()
        result: Tensor = (step(given, *rest, **kwargs) if isinstance(step, _Other) else step(given)).clone()
        if into is not None:  # and seen through other views
            result = into.copy_(result)
        if self.recording:
            self._made[id(result)] = (result, step)
            if name in ACTIVATIONS:
                self.opened._layers.update(dict.fromkeys(layers, step))
        return result

    def _is_input(self, indices: Tensor) -> bool:
        """Return whether an embedding is the first to look the network's own input up, not positions or segments."""
        if self._looked_up or self.given.is_floating_point():
            return False
        return indices is self.given or (indices.shape == self.given.shape and bool((indices == self.given).all()))

    def _embed(self, func: Operation, args: Args, kwargs: Kwargs) -> Tensor:
        self._looked_up = True
        if self._embedded is not None:
            return self._embedded
        result: Tensor = func(*args, **kwargs)
        self.opened._embedding = args[1].detach() if len(args) > 1 else kwargs["weight"].detach()
        return result


@contextmanager
def _listening(model: nn.Module, run: _Redirected) -> Iterator[None]:
    """Let a run hear of every layer's output through hooks that do not outlive the block."""
    owner = threading.get_ident()

    def ran(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: object, output: object) -> None:
            if threading.get_ident() == owner:
                run.layer_ran(name, module, output)

        return hook

    handles = [module.register_forward_hook(ran(name)) for name, module in named_layers(model).items() if name]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
