"""ONNX files with several inputs: what goes with token ids is told by its name, and computed from them."""

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import idc_core as idc
from idc_core.cli import _make_parser
from idc_core.cli.own_options import open_paths
from idc_core.datasets import Items
from idc_core.errors import ModelError, SettingError
from idc_core.models.onnx import load_onnx

PADDING = 3
RNG = np.random.default_rng(0)
IDS = RNG.integers(4, 12, (30, 6))
IDS[:, 4:] = PADDING


def write(path, names):
    """Embeddings of tokens and of their types, a masked sum, a dense layer: as BERT, without the attention."""
    shapes = {"words": (12, 5), "types": (2, 5), "w": (5, 3), "b": (3,)}
    weights = [numpy_helper.from_array(RNG.normal(size=s).astype(np.float32), n) for n, s in shapes.items()]
    weights += [numpy_helper.from_array(np.array(v, np.int64), n) for n, v in (("one", [1]), ("two", [2]))]
    ids, mask, kinds = names
    nodes = [
        helper.make_node("Gather", ["words", ids], ["x"]),
        helper.make_node("Gather", ["types", kinds], ["y"]),
        helper.make_node("Add", ["x", "y"], ["z"]),
        helper.make_node("Unsqueeze", [mask, "two"], ["m"]),
        helper.make_node("Cast", ["m"], ["mf"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["z", "mf"], ["shown"]),
        helper.make_node("ReduceSum", ["shown", "one"], ["sum"], keepdims=0),
        helper.make_node("Gemm", ["sum", "w", "b"], ["scores"], name="head"),
    ]
    given = [helper.make_tensor_value_info(name, TensorProto.INT64, ["n", 6]) for name in sorted(names)]
    out = [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", 3])]
    graph = helper.make_graph(nodes, "texts", given, out, weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_ids_alone_are_enough_and_the_padding_is_that_of_the_data(tmp_path):
    path = write(tmp_path / "texts.onnx", ("input_ids", "attention_mask", "token_type_ids"))
    words = tuple("abcdefghijkl")
    idc.dataset("onnx-texts")(lambda split: Items(IDS, np.arange(30) % 3, words, special=(PADDING, 1)))
    network, tests = idc.load_model(path, data="onnx-texts"), idc.load_dataset("onnx-texts")
    mask = (IDS != PADDING).astype(np.int64)
    given = {"input_ids": IDS, "attention_mask": mask, "token_type_ids": np.zeros_like(IDS)}
    expected = onnxruntime.InferenceSession(path).run(None, given)[0]
    with torch.no_grad():
        np.testing.assert_allclose(network(torch.tensor(IDS)), expected, atol=1e-5)
    assert network.remarks[-2] == (
        "Inputs beside 'input_ids': attention_mask is 1 where the main input is not 3, the id of padding; "
        "token_type_ids is 0."
    )
    assert network.card.layers == ("head",)
    found = idc.relevance(network, tests, ["input"], "z")["input"]
    by_name = {"input_ids": torch.tensor(IDS)} | {name: torch.tensor(value) for name, value in given.items()}
    np.testing.assert_allclose(found, idc.relevance(load_onnx(path), by_name, ["input"], "z")["input"], atol=1e-6)
    assert np.abs(found[:, 4:]).max() < 1e-6
    assert idc.analyze(network, idc.load_dataset("onnx-texts", "train"), tests, layer="head", m=2).covered > 0


def test_names_that_are_not_known_are_refused_unless_the_data_tell(tmp_path):
    names = ("ids", "read", "kinds")
    path = write(tmp_path / "texts.onnx", names)
    given = {"ids": IDS, "read": (IDS != PADDING).astype(np.int64), "kinds": np.zeros_like(IDS)}
    idc.dataset("ids-alone")(lambda split: (IDS, np.arange(30) % 3))
    idc.dataset("all-inputs")(lambda split: (given, np.arange(30) % 3))
    with pytest.raises(ModelError, match="takes ids, kinds, read; got 1 inputs in order, and by name none"):
        idc.load_model(path, data="ids-alone")
    network = idc.load_model(path, data="all-inputs")
    expected = onnxruntime.InferenceSession(path).run(None, given)[0]
    with torch.no_grad():
        np.testing.assert_allclose(network(torch.tensor(IDS)), expected, atol=1e-5)


def test_a_file_with_scores_per_pixel_is_opened_with_what_is_explained(tmp_path):
    weights = [numpy_helper.from_array(RNG.normal(size=s).astype(np.float32), n) for n, s in (("w", (3, 1, 3, 3)),)]
    nodes = [helper.make_node("Conv", ["x", "w"], ["maps"], name="conv")]
    ends = [("x", ["n", 1, 6, 6]), ("maps", ["n", 3, 4, 4])]
    given, out = ([helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)] for name, shape in ends)
    graph = helper.make_graph(nodes, "maps", given, out, weights)
    path = tmp_path / "maps.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    pictures = RNG.uniform(size=(12, 1, 6, 6)).astype(np.float32)
    idc.dataset("small-pictures")(lambda split: (pictures, np.arange(12) % 3))
    with pytest.raises(ModelError, match=r"shape \(2, 3, 4, 4\); .*explain='mean-pixels'"):
        idc.load_model(path, data="small-pictures")
    words = ["check-network", "--model", str(path), "--data", "small-pictures", "--explain"]
    with pytest.raises(SettingError, match=r"--explain must be mean-pixels, .* or token-N, not 'pixels'"):
        _make_parser().parse_args([*words, "pixels"])
    arguments = _make_parser().parse_args([*words, "mean-pixels"])
    open_paths(arguments)
    assert arguments.own_files.words == ["--data=small-pictures", "--explain=mean-pixels"]
    with torch.no_grad():
        found = idc.load_model("maps")(torch.tensor(pictures))
    expected = onnxruntime.InferenceSession(path).run(None, {"x": pictures})[0].mean((2, 3))
    np.testing.assert_allclose(found, expected, atol=1e-5)
