"""Which output of an ONNX file holds the scores, and the way back from probabilities to the scores before them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto

from idc_core.errors import ModelError
from idc_core.lrp.endings import before
from idc_core.models.onnx.subgraphs import needed_names
from idc_core.models.onnx.terms import Terms
from idc_core.models.outputs import Output, likeliest, said_choice

_MOVES = ("Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Flatten")
FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)


@dataclass(frozen=True)
class Asked:
    """What is asked of a file.

    Which output, by name or number, "" for the likeliest; the number of classes, 0 if unknown; and at which numbers
    inputs are held, by name.
    """

    output: str = ""
    classes: int = 0
    held: Mapping[str, float] = field(default_factory=dict)


def keep_scores(graph: GraphProto, asked: Asked, class_names: Sequence[str], where: str) -> tuple[tuple[str, ...], str]:
    """Leave of a graph what its scores need; return a sentence for each thing that was left out, and what was taken.

    What was taken is told where it is neither the first output nor what a softmax there is computed from.

    Of several outputs one of floats is kept; dictionaries made of it (ZipMap of scikit-learn), and a softmax at the
    end, are left out. A graph whose outputs hold no floats stays as it is.

    Raises ModelError if there is no output as asked for.
    """
    terms = Terms(graph)
    floats = {_before_zip(info.name, terms.makers): info for info in graph.output if _may_be_floats(info, terms.makers)}
    if not floats:
        return (), ""
    chosen, remarks = _chosen(floats, asked, class_names, terms, where)
    before, remark, usual = _before_ending(chosen, floats[chosen], terms)
    taken = "" if usual and chosen == next(iter(floats)) else before
    output = ValueInfoProto()
    output.CopyFrom(floats[chosen])
    output.name = before
    del graph.output[:]
    graph.output.append(output)
    _prune(graph, before, {name: node for node in graph.node for name in node.output if name})
    return (*remarks, *remark), taken


def _chosen(
    floats: Mapping[str, ValueInfoProto], asked: Asked, class_names: Sequence[str], terms: Terms, where: str
) -> tuple[str, tuple[str, ...]]:
    """Return which output is taken, and a sentence on it where there are others."""
    known = {info.name: Output(_shape(info), _ending(name, terms)) for name, info in floats.items()}
    numbered = {str(number): name for number, name in enumerate(known)}
    own = {info.name: name for name, info in floats.items()}
    if asked.output and asked.output not in known and asked.output not in numbered:
        raise ModelError(f"{where} has no output {asked.output!r:.60}; its outputs are {', '.join(known)[:400]}.")
    if asked.output:
        taken = asked.output if asked.output in known else numbered[asked.output]
    else:
        taken = likeliest(known, tuple(filter(None, (asked.classes, len(class_names)))))
    return own[taken], tuple(filter(None, (said_choice(taken, known),)))


def _shape(info: ValueInfoProto) -> tuple[int | None, ...] | None:
    """Return the shape that an output is said to have, its batch None."""
    array = info.type.tensor_type
    if info.type.WhichOneof("value") != "tensor_type" or not array.HasField("shape"):
        return None
    sides = [one.dim_value if one.HasField("dim_value") and one.dim_value > 0 else None for one in array.shape.dim]
    return (None, *sides[1:]) if sides else ()


def _ending(name: str, terms: Terms) -> str:
    node = terms.makers.get(name)
    if node is not None and _before_two_probabilities(node, terms):
        return "softmax"
    found = before(terms(name))
    return found[0] if found else ""


def _may_be_floats(value: ValueInfoProto, makers: Mapping[str, NodeProto]) -> bool:
    kind = value.type
    if kind.WhichOneof("value") == "tensor_type":
        return kind.tensor_type.elem_type in FLOATS
    return _before_zip(value.name, makers) != value.name


def _before_zip(name: str, makers: Mapping[str, NodeProto]) -> str:
    """Return the array that a list of dictionaries is made of."""
    node = makers.get(name)
    return node.input[0] if node is not None and node.op_type == "ZipMap" and node.input else name


def _before_ending(name: str, info: ValueInfoProto, terms: Terms) -> tuple[str, tuple[str, ...], bool]:
    """Return the scores that probabilities are made of, a sentence on what made them, and whether that is one softmax.

    Where there are none, they are the name itself, nothing and True. Where the ending is only moved behind it, as into
    another shape, the scores are moved instead.
    """
    node = terms.makers.get(name)
    seen: set[str] = set()
    while node is not None and node.op_type in _MOVES and node.input and node.output[0] not in seen:
        seen.add(node.output[0])
        node = terms.makers.get(node.input[0])
    if node is None or not node.input:
        return name, (), True
    score = _before_two_probabilities(node, terms)
    if score:
        return score, ("The sigmoid at its end is left out: the score before it is analysed.",), True
    found = before(terms(node.output[0]))
    shape = _shape(info)
    one_score = shape is None or len(shape) < 2 or (len(shape) == 2 and shape[1] in (1, None))
    if found is None or not isinstance(found[1].value, str) or (found[0] == "sigmoid" and one_score):
        return name, (), True  # what a single score is the result of, the network tells when it runs
    kind, scores = found[0], found[1].value
    remark = (f"The {kind} at its end is left out: scores before it are analysed.",)
    if all(terms.makers[one].op_type in ("Identity", "Cast") for one in seen):
        return scores, remark, node.op_type in ("Softmax", "LogSoftmax")
    del node.input[:]
    node.input.append(scores)
    node.op_type = "Identity"
    del node.attribute[:]
    return name, remark, False


def _before_two_probabilities(node: NodeProto, terms: Terms) -> str:
    """Return x where a node puts 1 - p and p together, p the sigmoid of x; "" else."""
    if node.op_type != "Concat" or len(node.input) != 2:
        return ""
    rest, sigmoid = (terms.makers.get(name) for name in node.input)
    if rest is None or sigmoid is None or not sigmoid.input or len(rest.input) != 2:
        return ""
    fits = rest.op_type == "Sub" and rest.input[1] == node.input[1] and sigmoid.op_type == "Sigmoid"
    one = terms(rest.input[0])
    return str(sigmoid.input[0]) if fits and one.operation == "number" and one.value == 1 else ""


def _prune(graph: GraphProto, output: str, makers: Mapping[str, NodeProto]) -> None:
    """Remove the nodes and weights that an output does not need."""
    needed, waiting = set(), [output]
    while waiting:
        name = waiting.pop()
        if name in makers and name not in needed:
            waiting += [one for one in needed_names(makers[name]) if one]
        needed.add(name)
    kept = [node for node in graph.node if needed & set(node.output)]
    used = {name for node in kept for name in needed_names(node)} | {output}
    weights = [one for one in graph.initializer if one.name in used]
    for held, values in ((graph.node, kept), (graph.initializer, weights)):
        del held[:]
        held.extend(values)
