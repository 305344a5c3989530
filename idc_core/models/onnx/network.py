"""The network that an ONNX file becomes: one module per node, run in the order of the file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from idc_core.errors import IdcError, ModelError
from idc_core.guarded import Budget
from idc_core.models.bounded import Bounded, TooLargeError
from idc_core.models.named_inputs import naming_of
from idc_core.models.network import Expected, Network
from idc_core.models.onnx.reading import Value
from idc_core.models.onnx.registry import MISTAKES, Function, Node, WrittenBatch, described


@dataclass(frozen=True)
class Step:
    """One node while the network runs."""

    name: str  # of the module
    operator: str
    settings: str  # its attributes, for messages
    inputs: tuple[str, ...]  # the values that the module is called with
    outputs: tuple[str, ...]
    done: tuple[str, ...]  # values that no later node uses


class Operation(nn.Module):
    """A node without weights of its own: a function of its inputs, of which some are constants."""

    def __init__(self, node: Node, function: Function) -> None:
        super().__init__()
        self.operator, self.function = node.operator, function
        self.places: list[int | str | None] = []
        for position, name in enumerate(node.inputs):
            if position in node.constants:
                self.register_buffer(f"constant_{position}", node.constants[position])
                self.places.append(f"constant_{position}")
            else:
                self.places.append(sum(isinstance(place, int) for place in self.places) if name else None)

    def forward(self, *given: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Run the function on the inputs that are not constant, each in its place among the constants."""
        values = (
            given[place] if isinstance(place, int) else None if place is None else getattr(self, place)
            for place in self.places
        )
        return self.function(*values)

    def extra_repr(self) -> str:
        """Return the operator."""
        return self.operator


class OnnxNetwork(Network):
    """A network read from an ONNX file; its children are named after the nodes.

    Attributes
    ----------
    inputs : tuple of Value
        Name, type and shape of each input.
    class_names : tuple of str
        What the file calls the scores, in their order; empty where it does not say.
    taken : str
        The value that scores are read from, where that is neither the first output nor in front of its softmax.
    one_by_one : bool
        Whether a batch of one is written into the graph: of several inputs each runs alone.
    """

    channels_last = True
    class_names: tuple[str, ...] = ()
    taken: str = ""
    one_by_one: bool = False

    def __init__(
        self,
        inputs: tuple[Value, ...],
        modules: dict[str, nn.Module],
        steps: Sequence[Step],
        outputs: tuple[str, ...],
        constants: dict[str, Tensor],
    ) -> None:
        super().__init__()
        self.inputs, self._steps, self._outputs = inputs, tuple(steps), outputs
        for name, module in modules.items():
            self.add_module(name, module)
        for place, value in enumerate(inputs):  # floats go with the network where that is put into another precision
            self.register_buffer(f"input_{place}", torch.empty(0, dtype=value.dtype), persistent=False)
        # Outputs that do not depend on the input.
        self._constants = constants

    @property
    def expected(self) -> Expected | None:
        """What the file says of its main input; None where that cannot be told from several, or it does not say."""
        naming = naming_of({value.name: value.dtype for value in self.inputs})
        main = next((value for value in self.inputs if naming is not None and value.name == naming.main), None)
        if main is None or not main.shape:
            return None
        return Expected(main.shape[1:], main.dtype, naming if naming and naming.others else None)

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers with weights, in forward order."""
        return tuple(name for name in super().layers if next(self.get_submodule(name).parameters(), None) is not None)

    def forward(self, *positional: Tensor, **named: Tensor) -> Any:
        """Return the output, or a tuple where the file has several; inputs by name, or in the order of the file.

        Raises ModelError if the inputs do not fit or a node fails on them.
        """
        names = [value.name for value in self.inputs]
        left = names[len(positional) :]
        if len(positional) > len(names) or set(named) != set(left):
            got = f"{len(positional)} inputs in order, and by name {', '.join(named) or 'none'}"
            raise ModelError(f"The network takes {', '.join(names)}; got {got}.")
        given = (*positional, *(named[name] for name in left))
        if self.one_by_one and len(given[0]) > 1:
            return _together([self._run([x[row : row + 1] for x in given]) for row in range(len(given[0]))])
        return self._run(given)

    def _run(self, given: Sequence[Tensor]) -> Any:
        """Run the nodes in their order."""
        values = dict(self._constants)
        for place, (value, x) in enumerate(zip(self.inputs, given, strict=True)):
            values[value.name] = _fitting(value, x, getattr(self, f"input_{place}").dtype)
        for step in self._steps:
            missing = next((name for name in step.inputs if name not in values), None)
            if missing is not None:
                raise ModelError(f"Node {step.name!r} ({step.operator}) uses {missing!r}, which no node gives.")
            arguments = [values[name] for name in step.inputs]
            try:
                result = self._modules[step.name](*arguments)  # type: ignore[misc]
            except IdcError:
                raise
            except MISTAKES as error:
                raise ModelError(
                    f"Node {step.name!r} ({step.operator}, {step.settings}) cannot be computed of "
                    f"{described(arguments):.300}. Expected settings and arrays that fit together as the ONNX standard "
                    "says. Give inputs of the shape and type that the network was made for, or export it for these."
                ) from error
            results = result if isinstance(result, tuple | list) else (result,)
            values.update((name, tensor) for name, tensor in zip(step.outputs, results, strict=False) if name)
            for name in step.done:
                values.pop(name, None)  # a node may give fewer outputs than the file names
        lacking = next((name for name in self._outputs if name not in values), None)
        if lacking is not None:
            raise ModelError(f"No node gives the output {lacking!r}; export the network again.")
        outputs = tuple(values[name] for name in self._outputs)
        return outputs[0] if len(outputs) == 1 else outputs


def _together(results: list[Any]) -> Any:
    """Put the results of single inputs together, along the axis that has one place; what they share stays."""
    if isinstance(results[0], tuple):
        return tuple(_together(list(parts)) for parts in zip(*results, strict=True))
    axis = next((axis for axis, size in enumerate(results[0].shape) if size == 1), None)
    return results[0] if axis is None else torch.cat(results, axis)


def _fitting(value: Value, x: Tensor, dtype: torch.dtype) -> Tensor:
    """Return an input in the precision of the network; refuse one without the file's shape, but for the batch size."""
    if value.shape is None:
        return x
    fits = x.dim() == len(value.shape) and all(
        size is None or size == length for size, length in zip(value.shape[1:], x.shape[1:], strict=True)
    )
    if not fits:
        sizes = ", ".join("n" if i == 0 else "any" if s is None else str(s) for i, s in enumerate(value.shape))
        raise ModelError(f"Input {value.name!r} has the shape {tuple(x.shape)}; expected ({sizes}).")
    return x.to(dtype) if x.is_floating_point() and dtype.is_floating_point else x


def check_batches(network: OnnxNetwork, where: str, batch: WrittenBatch | None, budget: Budget) -> None:
    """Refuse a network whose predictions depend on the batch size; it is tried where its input's shape is known.

    A batch size that is written into the graph is tried first, so that reshapes learn where it is. Where predictions
    still depend on a batch of one, inputs run one by one. What the network holds at once counts in the budget.
    """
    pair = _pair(network, budget)
    if pair is None:
        return
    advice = (
        "Export it with a batch of one, the first axis of its inputs: they then run one by one. Where that axis has a "
        "name, this makes such a file: python -m onnxruntime.tools.make_dynamic_shape_fixed --dim_param NAME "
        "--dim_value 1 FILE.onnx NEW.onnx"
    )
    try:
        with torch.no_grad(), Bounded(budget):
            if batch is not None:
                batch.learning = True
                network(*(x[:1].expand(batch.size, *x.shape[1:]) for x in pair))
                batch.learning = False
            single = [_all(network(*(x[row : row + 1] for x in pair))) for row in range(2)]
            wrong = _dependent(network, pair, single)
    except TooLargeError as error:
        raise ModelError(f"{where}: {error}") from error
    except ModelError as error:
        raise ModelError(f"{where} does not run on one input and on two: {error} {advice}") from error
    if wrong and ((batch is not None and batch.size == 1) or wrong.startswith(_NOT_TWO)):
        network.one_by_one = True
        network.remarks = (*network.remarks, "A batch of one is written into its graph: inputs run one by one.")
    elif wrong:
        raise ModelError(f"{where} {wrong} {advice}")


_NOT_TWO = "does not run on two inputs"


def _dependent(network: OnnxNetwork, pair: list[Tensor], single: list[tuple[Tensor, ...]]) -> str:
    """Say how the outputs for two inputs together differ from those for each alone; "" where they do not."""
    try:
        both = _all(network(*pair))
    except TooLargeError:
        raise
    except ModelError as error:
        return f"{_NOT_TWO}: {error}"
    for name, together, first, other in zip(network._outputs, both, *single, strict=True):
        axis = next((axis for axis, (a, b) in enumerate(zip(first.shape, together.shape, strict=False)) if a != b), 0)
        apart = torch.cat([first, other], axis) if first.dim() else first
        if apart.shape != together.shape or not np.allclose(  # that of torch loads its compiler
            apart.double().numpy(), together.double().numpy(), 1e-3, 1e-3 * _size(apart), equal_nan=True
        ):
            return f"gives another output {name!r} for two inputs together than for each of them alone."
    return ""


def _pair(network: OnnxNetwork, budget: Budget) -> list[Tensor] | None:
    """Return two inputs; of lengths that are open, one with which the network runs. None where there is none."""
    if any(value.shape is None or not value.shape for value in network.inputs):
        return None
    for length in _LENGTHS if any(None in (value.shape or ())[1:] for value in network.inputs) else (1,):
        if length > 1 and any(math.prod(_shape(value, length)) > _MOST_TRIED for value in network.inputs):
            continue
        random = torch.Generator().manual_seed(0)
        pair = [_sample(value, random, length) for value in network.inputs]
        if length == 1:
            return pair
        try:
            with torch.no_grad(), Bounded(budget):
                network(*(x[:1] for x in pair))
        except ModelError:
            continue
        return pair
    return None


_LENGTHS = (64, 512, 16, 96)
"""Lengths of open axes that are tried, to see whether predictions depend on the batch."""

_MOST_TRIED = 1 << 22
"""Numbers of an input that is tried, at most, where its axes are open."""


def _sample(value: Value, random: torch.Generator, length: int) -> Tensor:
    shape = _shape(value, length)
    if value.dtype.is_floating_point:
        return torch.rand(shape, generator=random).to(value.dtype)
    return torch.randint(0, 2, shape, generator=random).to(value.dtype)


def _shape(value: Value, length: int) -> list[int]:
    return [2, *(size or length for size in (value.shape or (1,))[1:])]


def _all(output: object) -> tuple[Tensor, ...]:
    return output if isinstance(output, tuple) else (output,)


def _size(x: Tensor) -> float:
    finite = x.double()[torch.isfinite(x.double())].abs()
    return float(finite.max()) if finite.numel() else 1.0
