"""Every test of an operator that the onnx package ships: the expected outputs, or a refusal for a reason given here.

Where onnxruntime gives other outputs than a test expects, its own are expected.
"""

import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.loader import load_model_tests

from idc_core.errors import ModelError, UnsupportedOperationError
from idc_core.models.onnx import OPERATORS, build_network
from idc_core.models.onnx.reading import _graph_of
from idc_core.models.onnx.tensors import tensor_of

REFUSED = {
    "numbers of the type": "strings, complex numbers, unsigned ones beyond 8 bits, and those of less than 8 bits",
    "dropout that stays active": "a network is evaluated, not trained",
    "in training mode": "a network is evaluated, not trained",
    "optional_type": "an input is an array",
    "sequence_type": "an input is an array",
    "linear_before_reset 0": "PyTorch's own GRU resets after the product",
    "peepholes": "PyTorch's own LSTM has none",
    "attention with past keys": "a network is run on whole inputs",
    "window_size": "attention of a limited reach (opset 25)",
    "written for opset 1": "older than opset 6",
    "branch that depends": "the network would be another one for each input",
    "number of steps depends": "the network would be another one for each input",
    "before opset 9": "Scan had another form then",
    "SequenceConstruct": "a layer gives an array",
}
"""What a refusal says -> why it is one."""

COUNTS = {
    "": 1190,
    "numbers of the type": 195,
    "attention with past keys": 42,
    "dropout that stays active": 6,
    "linear_before_reset 0": 6,
    "window_size": 4,
    "written for opset 1": 3,
    "in training mode": 2,
    "optional_type": 2,
    "sequence_type": 2,
    "peepholes": 1,
    "number of steps depends": 5,
    "branch that depends": 3,
    "SequenceConstruct": 2,
    "before opset 9": 1,
}
"""Tests of onnx 1.23.2 for operators that are here: those that pass, and those that are refused."""


COARSE = {"bfloat16": 0.02, "float16": 0.004}
"""Numbers of half precision are computed in single precision, as onnxruntime does: these are their steps."""


def array(value):
    if isinstance(value, onnx.TensorProto):
        return tensor_of(value, None, "the test")
    value = np.asarray(value)
    return torch.from_numpy(value.astype(np.float32) if value.dtype.name in COARSE else value.copy())


def coarseness(value):
    kind = onnx.helper.tensor_dtype_to_np_dtype(value.data_type) if isinstance(value, onnx.TensorProto) else value.dtype
    return COARSE.get(kind.name, 0)


def run(model, inputs):
    graph = _graph_of(model, "the test")
    network = build_network(graph)
    if not graph.inputs:
        return [network._constants[name] for name in graph.outputs]
    with torch.no_grad():
        found = network(*map(array, inputs))
    return found if isinstance(found, tuple) else [found]


def compare(model, data_sets, rtol=1e-3, atol=1e-6):
    """Refuse differences; return the words of `REFUSED` where the network is refused, else ''."""
    for inputs, outputs in data_sets:
        try:
            found = run(model, inputs)
        except (ModelError, UnsupportedOperationError) as error:
            return next((words for words in REFUSED if words in str(error)), str(error))
        assert len(found) == len(outputs)
        for one, output in zip(found, outputs, strict=True):
            expected, coarse = array(output), coarseness(output)
            torch.testing.assert_close(one, expected, rtol=max(rtol, coarse), atol=max(atol, coarse), equal_nan=True)
    return ""


def compare_all(tests):
    """Return how many tests have the expected outputs (''), and how many are refused with which words."""
    found, wrong = Counter(), []
    for test in tests:
        if {node.op_type for node in test.model.graph.node} <= {*OPERATORS, "Constant"}:
            try:
                found[compare(test.model, test.data_sets, max(test.rtol, 1e-3), max(test.atol, 1e-6))] += 1
            except AssertionError as error:
                if as_onnxruntime(test):
                    found[""] += 1
                else:
                    wrong.append(f"{test.name}: {error}")
    assert not wrong
    assert set(found) <= {"", *REFUSED}, [words for words in found if words not in REFUSED]
    return found


def as_onnxruntime(test):
    """Whether onnxruntime gives what we do, where neither gives what the test expects (docs/ONNX.md)."""
    session = onnxruntime.InferenceSession(test.model.SerializeToString())
    names = [one.name for one in session.get_inputs()]
    theirs = [session.run(None, dict(zip(names, inputs, strict=True))) for inputs, _ in test.data_sets]
    data_sets = [(inputs, outputs) for (inputs, _), outputs in zip(test.data_sets, theirs, strict=True)]
    return compare(test.model, data_sets) == ""


@pytest.fixture
def quietly():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package divides by zero on purpose
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("quietly")
def test_every_test_of_the_operators():
    found = compare_all(collect_testcases(None))
    assert found == COUNTS


def shipped(kind):
    """Return the tests of a kind as parameters: models with stored inputs and outputs."""
    return [pytest.param(test, id=test.name) for test in load_model_tests(kind=kind)]


@pytest.mark.parametrize("test", shipped("pytorch-operator"))
def test_operators_that_pytorch_has_exported(test):
    assert_stored(test)


@pytest.mark.parametrize("test", shipped("pytorch-converted"))
def test_layers_that_pytorch_has_exported(test):
    assert_stored(test)


def assert_stored(test):
    folder = Path(test.model_dir)
    model = onnx.load(folder / "model.onnx")
    for data in sorted(folder.glob("test_data_set_*")):
        inputs, outputs = (
            [onnx.load_tensor(data / f"{kind}_{i}.pb") for i in range(len(list(data.glob(f"{kind}_*.pb"))))]
            for kind in ("input", "output")
        )
        assert compare(model, [(inputs, outputs)]) == ""
