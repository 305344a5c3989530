"""Operators by name: how a node of an ONNX graph becomes a module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeVar

from torch import Tensor, nn

from idc_core.errors import ModelError, UnsupportedOperationError

MOST_ELEMENTS = 1 << 28
"""Most numbers in one array that a node may make."""

MISTAKES = (RuntimeError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, MemoryError)
"""What a node raises whose attributes or inputs are not what its operator takes."""

Function = Callable[..., Tensor | tuple[Tensor, ...]]
"""``function(*inputs)``, None for inputs that are absent; returns a tensor, or a tuple where there are more outputs."""


@dataclass(eq=False)
class WrittenBatch:
    """The batch size that an exporter wrote into a graph, and what reshapes made of it when a batch of it came."""

    size: int
    learning: bool = False  # while a batch of that size runs
    shapes: dict[Node, tuple[list[int], list[int]]] = field(default_factory=dict)  # of input and of output


@dataclass(frozen=True)
class Built:
    """The network of a graph within a node, called with the graph's inputs and then with the captured values."""

    network: nn.Module
    inputs: int
    static: tuple[bool, ...]  # of each output, whether no input's numbers change it


@dataclass(eq=False)
class Node:
    """A node of the graph, as an operator sees it while it is built."""

    name: str  # of its module: an identifier that no other node has
    operator: str
    opset: int
    inputs: tuple[str, ...]  # names of values, "" where an optional one is absent
    outputs: tuple[str, ...]
    attributes: dict[str, object]
    constants: dict[int, Tensor] = field(default_factory=dict)  # the inputs that are known, by position
    batch: WrittenBatch | None = None  # None where the batch size is open
    read: set[str] = field(default_factory=set)
    static: frozenset[str] = frozenset()  # inputs that no number of the network's own input changes
    captured: int = 0  # how many of the inputs, the last ones, are values that graphs within the node use
    make_body: Callable[[str, Sequence[bool]], Built | None] | None = None
    bodies: dict[str, nn.Module] = field(default_factory=dict)  # those that were made, by attribute

    def get(self, attribute: str, default: object = None) -> Any:
        """Return an attribute; what no operator asks for is refused once the node is built."""
        self.read.add(attribute)
        return self.attributes.get(attribute, default)

    def need(self, attribute: str) -> Any:
        """Return an attribute that must be there."""
        value = self.get(attribute)
        if value is None:
            raise ModelError(f"{self} lacks the attribute {attribute!r}.")
        return value

    def ints(self, position: int, attribute: str) -> list[int] | None:
        """Return whole numbers that newer opsets take as an input and older ones as an attribute; None if open."""
        given = self.get(attribute)
        if given is not None:
            return list(given)
        return integers(self.constants[position]) if position in self.constants else None

    def has(self, position: int) -> bool:
        """Return whether an optional input is given."""
        return position < len(self.inputs) and bool(self.inputs[position])

    def known(self, *positions: int) -> bool:
        """Return whether these inputs are constants or absent."""
        return all(position in self.constants or not self.has(position) for position in positions)

    def body(self, attribute: str, least: int, static: Sequence[bool] = ()) -> Built:
        """Return the network of a graph within the node, which gives at least so many results.

        `static` says of each of its inputs whether no number of the network's own input changes it.
        """
        self.need(attribute)
        if self.make_body is None or not (built := self.make_body(attribute, static)):
            raise ModelError(f"{self} has no graph in its attribute {attribute!r}.")
        if len(built.static) < least:
            raise ModelError(f"{self}: its graph {attribute!r} gives {len(built.static)} results; expected {least}.")
        self.bodies[attribute] = built.network
        return built

    def refuse(self, what: str, advice: str = "Export the network without it.") -> UnsupportedOperationError:
        """Return the error for something that an operator allows and that is not supported."""
        return UnsupportedOperationError(f"{self} uses {what}, which is not supported. {advice}")

    @property
    def settings(self) -> str:
        """The attributes as a person reads them."""
        plain = {name: value for name, value in self.attributes.items() if isinstance(value, int | float | str | list)}
        return ", ".join(f"{name} {value}" for name, value in plain.items())[:200] or "no attributes"

    def misfit(self) -> ModelError:
        """Return the error for attributes and constants that do not fit together."""
        constants = described([self.constants.get(place) for place in range(len(self.inputs))])
        return ModelError(
            f"{self} has {self.settings} and the inputs {constants:.200}, which do not fit together. Expected what the "
            f"ONNX standard says of {self.operator}. Export the network again, with settings that it allows or without "
            "this node."
        )

    def __str__(self) -> str:
        return f"Node {self.name!r} ({self.operator}, opset {self.opset})"


Build = Callable[[Node], "nn.Module | Function"]

OPERATORS: dict[str, Build] = {}
"""ONNX operator -> ``build(node)``. A module that it returns is called with the inputs that are not constant, a
function with all of them."""

_B = TypeVar("_B", bound=Build)


def operator(*names: str) -> Callable[[_B], _B]:
    """Enter what builds nodes of these operators."""

    def enter(build: _B) -> _B:
        OPERATORS.update(dict.fromkeys(names, build))
        return build

    return enter


def functions(table: dict[str, Function]) -> None:
    """Enter operators that have no attributes and are one function of their inputs."""

    def constant(function: Function) -> Build:
        return lambda node: function

    OPERATORS.update({name: constant(function) for name, function in table.items()})


def described(arrays: Sequence[Tensor | None]) -> str:
    """Return types and shapes of arrays as a person reads them; one that is not known is open."""
    said = ("open" if x is None else f"{str(x.dtype).removeprefix('torch.')} {list(x.shape)}" for x in arrays)
    return ", ".join(said) or "none"


def integers(x: Tensor) -> list[int]:
    """Return the whole numbers of a tensor of any shape."""
    return [int(value) for value in x.flatten().tolist()]


def room(shape: Sequence[int], what: str = "An array") -> None:
    """Refuse an array that is too large, before it is made."""
    count = prod(shape)
    if count > MOST_ELEMENTS or any(size < 0 for size in shape):
        raise ModelError(
            f"{what} of the shape {list(shape)} would hold {count:,} numbers; at most {MOST_ELEMENTS:,} are allowed. "
            "Export the network without it."
        )
