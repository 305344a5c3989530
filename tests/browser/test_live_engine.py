"""The script that runs a network in the browser, against the engine: scores, activations and relevance to 1e-4."""

import base64
import json

import numpy as np
import onnx
import pytest

import idc_core as idc
from idc_core.base.files import SHIPPED
from idc_core.lrp.rules import RelevanceSettings
from idc_core.tracing.live_program import live_program
from idc_core.tracing.trace import trace

pytestmark = pytest.mark.browser

LENETS = {f"lenet{number}-digits": layer for number, layer in ((1, "pool2"), (4, "fc1"), (5, "conv1"))}
TESTS = 4
RUN = """({program, weights, inputs}) => {
    const unpacked = text => new Float32Array(Uint8Array.from(atob(text), letter => letter.charCodeAt(0)).buffer);
    const chain = new Chain(program, unpacked(weights), 1e-6);
    return inputs.map(input => {
        const {scores, activations, relevance} = chain.run(unpacked(input));
        return [scores, activations, relevance].map(values => [...values]);
    });
}"""


def packed(values):
    return base64.b64encode(np.ascontiguousarray(values, np.float32).tobytes()).decode()


def small_onnx(folder):
    """A network of ONNX with strides, padding, both kinds of pooling, a normalisation and a softmax."""
    rng, make = np.random.default_rng(0), onnx.helper.make_node
    nodes = [
        make("Conv", ["x", "k", "kb"], ["c"], "conv1", strides=[2, 2], pads=[1, 1, 1, 1]),
        make("BatchNormalization", ["c", "scale", "shift", "mean", "variance"], ["n"], "norm1"),
        make("Relu", ["n"], ["r"], "relu1"),
        make("MaxPool", ["r"], ["p"], "pool1", kernel_shape=[3, 3], strides=[2, 2]),
        make("Tanh", ["p"], ["t"], "tanh1"),
        make("AveragePool", ["t"], ["a"], "pool2", kernel_shape=[2, 2], strides=[2, 2]),
        make("Flatten", ["a"], ["f"], "flat"),
        make("Gemm", ["f", "w", "b"], ["z"], "fc1"),
        make("Softmax", ["z"], ["y"], "end", axis=1),
    ]
    shapes = {"k": (4, 1, 3, 3), "kb": (4,), "scale": (4,), "shift": (4,), "mean": (4,), "w": (36, 10), "b": (10,)}
    weights = {name: rng.normal(size=shape) for name, shape in shapes.items()} | {"variance": rng.random(4) + 0.5}
    numbers, value = onnx.TensorProto.FLOAT, onnx.helper.make_tensor_value_info
    stored = [onnx.numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()]
    graph = onnx.helper.make_graph(
        nodes, "g", [value("x", numbers, ["n", 1, 28, 28])], [value("y", numbers, ["n", 10])], stored
    )
    path = folder / "small.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path)
    return idc.load_model(path, data="digits")


@pytest.fixture(scope="module")
def page(browser):
    page = browser.new_page()
    page.add_script_tag(content=f"{(SHIPPED / 'assets/live/engine.js').read_text()}\nwindow.Chain = Chain;")
    yield page
    page.close()


def neurons(values):
    """The mean of each channel over its positions."""
    return values.flatten(2).mean(2) if values.dim() == 4 else values


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [*LENETS, "onnx"])
def test_it_finds_what_the_engine_finds(page, name, tmp_path):
    model, layer = (small_onnx(tmp_path), "pool1") if name == "onnx" else (idc.load_model(name), LENETS[name])
    inputs = idc.load_dataset("digits", "test", TESTS).inputs
    program = live_program(model, inputs, layer)
    told = json.loads(json.dumps(program.description()))
    pictures = [packed(one) for one in inputs]
    found = page.evaluate(RUN, {"program": told, "weights": packed(program.weights), "inputs": pictures})
    (batch,) = trace(model, inputs, [layer, "input"], RelevanceSettings())
    expected = (batch.scores, neurons(batch.activations[layer]), batch.relevance["input"].flatten(1))
    for number, one in enumerate(found):
        for own, engine in zip(one, (values[number].numpy() for values in expected), strict=True):
            np.testing.assert_allclose(own, engine, atol=1e-4 * max(1, np.abs(engine).max()))
