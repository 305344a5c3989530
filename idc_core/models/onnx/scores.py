"""Which output of an ONNX file holds the scores, and the way back from probabilities to the scores before them."""

from __future__ import annotations

from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, ValueInfoProto

from idc_core.models.onnx.tensors import tensor_of

_NAMES = ("logits", "scores", "output", "out", "probabilities", "output_probability")
"""Names that exporters give scores, where a network has several outputs."""

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)


def keep_scores(graph: GraphProto) -> tuple[str, ...]:
    """Leave of a graph what its scores need; return a sentence for each thing that was left out.

    Of several outputs one of floats is kept; dictionaries made of it (ZipMap of scikit-learn), and a softmax at the
    end, are left out. A graph whose outputs hold no floats stays as it is.
    """
    makers = {name: node for node in graph.node for name in node.output if name}
    floats = {_before_zip(info.name, makers): info for info in graph.output if _may_be_floats(info, makers)}
    if not floats:
        return ()
    names = list(floats)
    originals = {floats[name].name: name for name in names}
    chosen = next((originals[name] for name in _NAMES if name in originals), names[0])
    remarks = []
    if len(graph.output) > 1:
        others = ", ".join(repr(info.name[:60]) for info in graph.output if info is not floats[chosen])
        remarks.append(f"Its output {floats[chosen].name[:60]!r} is analysed; {others[:200]} is left out.")
    before, remark = _before_probabilities(chosen, makers, graph)
    output = ValueInfoProto()
    output.CopyFrom(floats[chosen])
    output.name = before
    del graph.output[:]
    graph.output.append(output)
    _prune(graph, before, makers)
    return (*remarks, *remark)


def _may_be_floats(value: ValueInfoProto, makers: dict[str, NodeProto]) -> bool:
    kind = value.type
    if kind.WhichOneof("value") == "tensor_type":
        return kind.tensor_type.elem_type in _FLOATS
    return _before_zip(value.name, makers) != value.name


def _before_zip(name: str, makers: dict[str, NodeProto]) -> str:
    """Return the array that a list of dictionaries is made of."""
    node = makers.get(name)
    return node.input[0] if node is not None and node.op_type == "ZipMap" and node.input else name


def _before_probabilities(name: str, makers: dict[str, NodeProto], graph: GraphProto) -> tuple[str, tuple[str, ...]]:
    """Return the scores that probabilities are made of, and a sentence on what made them; the name itself else."""
    node = makers.get(name)
    seen = set()
    while node is not None and node.op_type in ("Identity", "Cast") and node.input and node.output[0] not in seen:
        seen.add(node.output[0])
        node = makers.get(node.input[0])
    if node is None or not node.input:
        return name, ()
    if node.op_type in ("Softmax", "LogSoftmax") and _integer(node, "axis", -1) in (-1, 1):
        return node.input[0], ("The softmax at its end is left out: scores before it are analysed.",)
    score = _before_two_probabilities(node, makers, graph)
    if score:
        return score, ("The sigmoid at its end is left out: the score before it is analysed.",)
    return name, ()


def _before_two_probabilities(node: NodeProto, makers: dict[str, NodeProto], graph: GraphProto) -> str:
    """Return x where a node puts 1 - p and p together, p the sigmoid of x; "" else."""
    if node.op_type != "Concat" or len(node.input) != 2:
        return ""
    rest, sigmoid = (makers.get(name) for name in node.input)
    if rest is None or sigmoid is None or not sigmoid.input or len(rest.input) != 2:
        return ""
    fits = rest.op_type == "Sub" and rest.input[1] == node.input[1] and sigmoid.op_type == "Sigmoid"
    return str(sigmoid.input[0]) if fits and _is_one(rest.input[0], graph) else ""


def _integer(node: NodeProto, name: str, default: int) -> int:
    values = [
        attribute.i for attribute in node.attribute if attribute.name == name and attribute.type == AttributeProto.INT
    ]
    return int(values[0]) if values else default


def _is_one(name: str, graph: GraphProto) -> bool:
    """Whether a weight of the file is the number 1."""
    tensors = [tensor for tensor in graph.initializer if tensor.name == name]
    if len(tensors) != 1 or tensors[0].data_location == TensorProto.EXTERNAL:
        return False
    value = tensor_of(tensors[0], lambda location, offset, length: bytearray(), "the number 1")
    return bool(value.numel() == 1 and float(value) == 1)


def _prune(graph: GraphProto, output: str, makers: dict[str, NodeProto]) -> None:
    """Remove the nodes and weights that an output does not need."""
    needed, waiting = set(), [output]
    while waiting:
        name = waiting.pop()
        if name in makers and name not in needed:
            waiting += [one for one in makers[name].input if one]
        needed.add(name)
    kept = [node for node in graph.node if needed & set(node.output)]
    used = {name for node in kept for name in node.input} | {output}
    weights = [one for one in graph.initializer if one.name in used]
    for field, values in ((graph.node, kept), (graph.initializer, weights)):
        del field[:]
        field.extend(values)
