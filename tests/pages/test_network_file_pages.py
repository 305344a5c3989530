"""The dashboard on networks that its command line named by their paths."""

import numpy as np
import onnx
import pytest

from idc_core.cli import _make_parser, own_options
from idc_core.opening import server_files
from tests.pages.reading import open_page, text


@pytest.fixture
def network(tmp_path, monkeypatch):
    """A dense network over the pixels of the digits."""
    rng, numbers = np.random.default_rng(0), onnx.TensorProto.FLOAT
    nodes = [
        onnx.helper.make_node("Gemm", ["x", "w"], ["y"], "fc1"),
        onnx.helper.make_node("Relu", ["y"], ["r"], "relu1"),
        onnx.helper.make_node("Gemm", ["r", "v"], ["z"], "fc2"),
    ]
    weights = {"w": rng.normal(size=(784, 8)), "v": rng.normal(size=(8, 10))}
    graph = onnx.helper.make_graph(
        nodes,
        "dense",
        [onnx.helper.make_tensor_value_info("x", numbers, ["n", 784])],
        [onnx.helper.make_tensor_value_info("z", numbers, ["n", 10])],
        [onnx.numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()],
    )
    path = tmp_path / "page dense.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path)
    np.savez(tmp_path / "page numbers.npz", x=rng.random((60, 784), np.float32), y=np.arange(60) % 10)
    words = [str(path), f"--data={tmp_path / 'page numbers.npz'}", "--test-share=0.5"]
    own = own_options._own_files(_make_parser().parse_args(["studio", *words]))
    monkeypatch.setenv(server_files.VARIABLE, own.to_json())
    return path


def test_a_first_visit_opens_on_the_network(network):
    app = open_page("overview")
    assert not app.exception
    assert not app.error
    assert app.selectbox(key="model").value == "page-dense"
    assert "page-dense" in text(app)
    assert "Tests of page-numbers read as: inputs: x; targets: y; 784 features as they are; " in text(app)


def test_what_is_wrong_with_the_file_is_shown(network):
    network.write_bytes(network.read_bytes()[:-100])
    app = open_page("learn")
    assert not app.exception
    assert any(str(network) in one.value.replace("\\", "") for one in app.error)
