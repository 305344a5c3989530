"""Networks from files: the same predictions as before, conserved relevance, and one sentence for what is refused."""

import copy
import json
import pickle
import struct
from collections import OrderedDict
from dataclasses import replace

import numpy as np
import onnx
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import idc_core as idc
from idc_core.cli import main
from idc_core.errors import IdcError, ModelError
from idc_core.models import MODELS
from idc_core.models.formats import REFUSED
from idc_core.models.network_file import NetworkFile, open_network
from idc_core.models.scaling import Scaling


class Small(nn.Module):
    """Convolutions with a branch that is summed, a normalisation, and a dictionary as output."""

    def __init__(self, bias=True):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, padding=1, bias=bias)
        self.norm = nn.BatchNorm2d(4)
        self.block = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1, bias=bias), nn.ReLU())
        self.pool = nn.AdaptiveAvgPool2d(4)
        self.fc1 = nn.Linear(64, 8, bias=bias)
        self.fc2 = nn.Linear(8, 10, bias=bias)

    def forward(self, pictures):
        seen = torch.relu(self.norm(self.conv1(pictures)))
        seen = self.pool(seen + self.block(seen)).flatten(1)
        scores = self.fc2(torch.relu(self.fc1(seen)))
        return {"hidden": seen, "logits": scores}


@pytest.fixture(scope="module")
def small():
    torch.manual_seed(0)
    network = Small()
    network(torch.rand(64, 1, 28, 28))  # statistics of the normalisation
    return network.eval()


@pytest.fixture(scope="module")
def exported(small, tmp_path_factory):
    path = tmp_path_factory.mktemp("exported") / "small.pt2"
    torch.export.save(torch.export.export(small, (torch.rand(2, 1, 28, 28),), dynamic_shapes=({0: N},)), path)
    return path


N = torch.export.Dim("n")
PICTURES = torch.rand(6, 1, 28, 28, generator=torch.Generator().manual_seed(1))


def sums(model, inputs, layers, **options):
    """Relevance summed over each layer, for the predicted classes."""
    found = idc.relevance(model, inputs, layers, **options)
    return [found[layer].reshape(len(inputs), -1).sum(1) for layer in layers]


# -- programs of torch.export


def test_an_exported_program_predicts_the_same_under_its_old_names(small, exported):
    network = idc.load_model(exported, trust=True)
    with torch.no_grad():
        np.testing.assert_allclose(network(PICTURES), small(PICTURES)["logits"], atol=1e-5)
        np.testing.assert_array_equal(copy.deepcopy(network)(PICTURES), network(PICTURES))
    assert {"conv1", "norm", "block.0", "block", "fc1", "fc2"} <= {name for name, _ in network.named_modules()}
    assert (network.card.dataset, network.card.default_layer) == ("", "fc1")
    assert not network.training


@pytest.mark.parametrize("layer", ["input", "conv1", "block", "fc1"])
def test_relevance_in_an_exported_program_is_that_of_the_network(small, exported, layer):
    network = idc.load_model(exported, trust=True)
    scores = nn.Sequential(OrderedDict(own=small, pick=Pick())).eval()
    name = layer if layer == "input" else f"own.{layer}"
    theirs, own = idc.relevance(scores, PICTURES, [name])[name], idc.relevance(network, PICTURES, [layer])[layer]
    np.testing.assert_allclose(own, theirs, atol=1e-5)


class Pick(nn.Module):
    def forward(self, output):
        return output["logits"]


def test_a_program_for_one_size_of_batch_is_refused_with_the_remedy(small, tmp_path):
    torch.export.save(torch.export.export(small, (torch.rand(3, 1, 28, 28),)), tmp_path / "fixed.pt2")
    with pytest.raises(ModelError, match=r"for batches of 3 inputs; export it for any number: .*dynamic_shapes"):
        idc.load_model(tmp_path / "fixed.pt2", trust=True)


class Payload:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


NAMES = [f"net{ending}" for ending in (*REFUSED, ".pt2", ".onnx", ".safetensors")]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("save", ["pickle", "torch", "torch before 1.6"])
def test_a_pickle_is_never_opened_under_any_name(tmp_path, capsys, name, save):
    path, made = tmp_path / name, tmp_path / "made"
    if save == "pickle":
        path.write_bytes(pickle.dumps(Payload(made)))
    else:
        torch.save(Payload(made), path, _use_new_zipfile_serialization=save == "torch")
    with pytest.raises(ModelError) as error:
        idc.load_model(str(path), data="digits")
    assert str(path) in str(error.value)
    assert main(["analyze", "--model", str(path), "--data", "digits"]) == 2
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    assert not made.exists()
    if path.suffix in REFUSED:
        assert "which can run code when it is opened; save it by" in said
        assert "onnx" in said
    elif path.suffix == ".pt2":
        assert "give --trust if you made it" in said
    else:
        assert "it was not opened. Save it as" in said


# -- safetensors


def test_weights_find_their_architecture_and_their_data_where_one_fits(tmp_path):
    known = idc.load_model("charlstm-sql")
    save_file(known.state_dict(), tmp_path / "mine.safetensors")
    network = idc.load_model(tmp_path / "mine.safetensors")
    assert network.card.dataset == "sql"
    assert network.card.layers == known.card.layers
    assert network.remarks == ("The weights are those of the architecture of charlstm-sql.",)
    ids = torch.from_numpy(idc.load_dataset("sql", "test", 4).inputs.copy())
    with torch.no_grad():
        np.testing.assert_array_equal(network(ids), known(ids))


def test_weights_that_fit_several_data_sets_need_one_and_may_name_the_architecture(tmp_path):
    path = tmp_path / "mine.safetensors"
    known = idc.load_model("lenet5-digits")
    save_file({name: value.half() for name, value in known.state_dict().items()}, path)
    assert idc.load_model(path).card.dataset == ""
    with pytest.raises(ModelError, match="does not say what it takes: name its data"):
        open_network(NetworkFile(path))
    named = idc.load_model(path, architecture="lenet5-digits")
    assert (named.card.dataset, named.card.name) == ("digits", "mine")
    tests = idc.load_dataset("digits", "test", 100)
    found = idc.analyze(named, idc.load_dataset("digits", "train", 200), tests, "fc2", 3)
    with torch.no_grad():
        np.testing.assert_array_equal(found.predictions, known(torch.from_numpy(tests.inputs.copy())).argmax(1))


def test_weights_that_fit_nothing_are_refused_with_what_nearly_fits(tmp_path):
    state = idc.load_model("lenet5-digits").state_dict()
    save_file({**state, "logits.weight": torch.zeros(7, 84)}, tmp_path / "near.safetensors")
    with pytest.raises(ModelError, match=r"holds 10 tensors that fit no architecture .*lenet5-digits \(9 of 10\)"):
        idc.load_model(tmp_path / "near.safetensors")


def tensors(header, data=b""):
    """A safetensors file with any header."""
    text = json.dumps(header).encode() if isinstance(header, dict) else header
    return struct.pack("<Q", len(text)) + text + data


ONE = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        bytes(7),
        struct.pack("<Q", 1 << 60),
        struct.pack("<Q", 100) + b"{}",
        tensors(b"[]"),
        tensors(b"{"),
        tensors({"a": ONE}, bytes(4)),
        tensors({"a": ONE, "b": {**ONE, "data_offsets": [4, 12]}}, bytes(12)),
        tensors({"a": {**ONE, "data_offsets": [8, 0]}}, bytes(8)),
        tensors({"a": {**ONE, "data_offsets": [-8, 0]}}, bytes(8)),
        tensors({"a": {**ONE, "dtype": "F99"}}, bytes(8)),
        tensors({"a": {**ONE, "shape": [1 << 40, 1 << 40]}}, bytes(8)),
        tensors({"a": {**ONE, "shape": [-2]}}, bytes(8)),
        tensors({"a": {"shape": [2]}}, bytes(8)),
        tensors({"a\u202e<b>\n": ONE}, bytes(8)),
    ],
)
def test_a_damaged_file_of_weights_is_one_sentence(tmp_path, capsys, content):
    path = tmp_path / "bad.safetensors"
    path.write_bytes(content)
    for given in (path, f"lenet5-digits={path}"):
        assert main(["analyze", "--model", str(given), "--data", "digits"]) == 2
        said = capsys.readouterr().err
        assert len(said.splitlines()) == 1, said
        assert str(path) in said
        assert len(said) < 1500


@pytest.mark.parametrize("change", ["nan", "int", "double"])
def test_weights_of_another_kind_are_refused(tmp_path, change):
    state = {name: value.clone() for name, value in idc.load_model("lenet5-digits").state_dict().items()}
    if change == "nan":
        state["fc1.bias"][3] = float("nan")
    else:
        state["fc1.bias"] = state["fc1.bias"].to(torch.int32 if change == "int" else torch.float64)
    save_file(state, tmp_path / "bad.safetensors")
    with pytest.raises(ModelError, match=r"'fc1.bias' (holds values that are not finite|must be F32, but is)"):
        idc.load_model(tmp_path / "bad.safetensors")


# -- ONNX


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"coefficients": [1.0, 2.0, 3.0], "intercepts": [0.0, 1.0]}, "has 3 coefficients for 2 outputs"),
        ({"intercepts": [0.0, 1.0]}, "has 0 coefficients"),
        ({"coefficients": 3}, "has 0 coefficients"),
        ({"coefficients": [1.0, 2.0], "post_transform": "PROBIT"}, "uses the transform 'PROBIT'"),
        ({"coefficients": [1.0, 2.0], "post_transform": 3}, "uses the transform ''"),
    ],
)
def test_a_damaged_linear_model_is_one_sentence(tmp_path, attributes, said):
    node = onnx.helper.make_node("LinearRegressor", ["x"], ["y"], "linear", domain="ai.onnx.ml", **attributes)
    path = onnx_of([node], [2], ["y"], {}, tmp_path / "net.onnx", ["ai.onnx.ml"])
    with pytest.raises(IdcError, match=said):
        idc.load_model(path)


def onnx_of(nodes, inputs, outputs, weights, path, domain=()):
    numbers = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        nodes,
        "g",
        [onnx.helper.make_tensor_value_info("x", numbers, ["n", *inputs])],
        [onnx.helper.make_tensor_value_info(name, numbers, None) for name in outputs],
        [onnx.numpy_helper.from_array(np.asarray(value, np.float32), name) for name, value in weights.items()],
    )
    opsets = [onnx.helper.make_opsetid("", 17), *(onnx.helper.make_opsetid(one, 1) for one in domain)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def flat(path, classes=10):
    """A dense network over pixels laid out flat."""
    rng = np.random.default_rng(0)
    nodes = [
        onnx.helper.make_node("Gemm", ["x", "w", "b"], ["y"], "fc1"),
        onnx.helper.make_node("Relu", ["y"], ["r"], "relu1"),
        onnx.helper.make_node("Gemm", ["r", "v"], ["z"], "fc2"),
    ]
    weights = {"w": rng.normal(size=(784, 6)), "b": rng.normal(size=6), "v": rng.normal(size=(6, classes))}
    return onnx_of(nodes, [784], ["z"], weights, path), weights


def test_pictures_are_laid_out_as_the_file_asks(tmp_path):
    path, weights = flat(tmp_path / "flat.onnx")
    network = idc.load_model(path, data="digits")
    assert network.remarks == ("Inputs are laid out flat, as the network's file asks.",)
    pictures = idc.load_dataset("digits", "test", 5).inputs
    expected = np.maximum(pictures.reshape(5, -1) @ weights["w"] + weights["b"], 0) @ weights["v"]
    with torch.no_grad():
        np.testing.assert_allclose(network(torch.from_numpy(pictures.copy())), expected, atol=1e-4)
    assert idc.relevance(network, pictures, ["input"])["input"].shape == pictures.shape


@pytest.mark.parametrize(("channels", "data"), [(3, "digits"), (1, "coloured")])
def test_grey_pictures_for_rgb_and_rgb_for_grey_are_refused_with_the_remedy(tmp_path, channels, data):
    nodes = [
        onnx.helper.make_node("Conv", ["x", "k"], ["c"], "conv1"),
        onnx.helper.make_node("GlobalAveragePool", ["c"], ["p"], "pool"),
        onnx.helper.make_node("Flatten", ["p"], ["z"], "flat"),
    ]
    path = onnx_of(nodes, [channels, 28, 28], ["z"], {"k": np.ones((10, channels, 3, 3))}, tmp_path / "net.onnx")
    idc.dataset("coloured")(lambda split: (np.zeros((20, 3, 28, 28), np.float32), np.arange(20) % 10))
    with pytest.raises(
        ModelError, match=rf"It takes (RGB|grey) pictures, .*: read them with --channels {channels}, or"
    ):
        idc.load_model(path, data=data)


def test_the_fingerprint_tells_graphs_with_equal_weights_apart(tmp_path):
    prints = set()
    for kind in ("Relu", "Tanh"):
        nodes = [
            onnx.helper.make_node("MatMul", ["x", "w"], ["y"], "fc1"),
            onnx.helper.make_node(kind, ["y"], ["r"], "act"),
            onnx.helper.make_node("MatMul", ["r", "v"], ["z"], "fc2"),
        ]
        path = onnx_of(nodes, [3], ["z"], {"w": np.ones((3, 4)), "v": np.ones((4, 2))}, tmp_path / f"{kind}.onnx")
        prints.add(idc.load_model(path).card.fingerprint)
    again = idc.load_model(path, scaling=Scaling((0.5,), (0.25,)))
    assert len({*prints, again.card.fingerprint}) == 3
    assert again.remarks == ("Inputs are mean 0.5 subtracted, divided by 0.25.",)


def test_weights_that_are_no_numbers_are_refused(tmp_path):
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["y"], "fc1")]
    path = onnx_of(nodes, [2], ["y"], {"w": [[1, 2], [float("nan"), 1]]}, tmp_path / "nan.onnx")
    with pytest.raises(ModelError, match=r"nan.onnx: weight 'fc1.weight' holds values that are not finite"):
        idc.load_model(path)


def test_truncated_files_are_one_sentence(tmp_path, exported):
    path, _ = flat(tmp_path / "flat.onnx")
    for file, ending in ((path, ".onnx"), (exported, ".pt2")):
        content = file.read_bytes()
        for part in (0, 1, 50, len(content) // 2, len(content) - 1):
            cut = tmp_path / f"cut{ending}"
            cut.write_bytes(content[:part])
            with pytest.raises(ModelError, match="cut") as error:
                idc.load_model(cut, trust=True)
            assert len(str(error.value)) < 1000


# -- the command line


def test_the_command_line_takes_a_path(tmp_path, capsys):
    path, _ = flat(tmp_path / "my net.onnx")
    assert main(["analyze", "--model", str(path), "--data", "digits", "--layer", "fc1", "--m", "3",
                 "--limit-train", "150", "--limit-test", "80", "--factor", "2"]) == 0  # fmt: skip
    said = capsys.readouterr().out
    assert "my-net" in said
    assert MODELS["my-net"].dataset == "digits"
    assert main(["analyze", "--model", str(path)]) == 2
    assert "name its data with --data" in capsys.readouterr().err
    assert main(["analyze", "--model", str(tmp_path / "none.onnx"), "--data", "digits"]) == 2
    assert "where there is no file and no folder" in capsys.readouterr().err
    assert main(["analyze", "--model", "lenet5-digits", "--factor", "2"]) == 2
    assert "--factor is for a network that is given by a path" in capsys.readouterr().err


def test_differential_takes_paths_and_bits(tmp_path, capsys):
    path, _ = flat(tmp_path / "flat.onnx")
    models = ["--models", "lenet5-digits", str(path), f"{path}:4"]
    assert main(["differential", *models, "--data", "digits", "--seeds", "2", "--iterations", "2"]) == 0
    capsys.readouterr()
    assert main(["differential", "--models", "lenet5-digits", f"{path}:99", "--data", "digits"]) == 2
    assert "bits" in capsys.readouterr().err


def test_a_server_opens_what_its_command_line_named(tmp_path, monkeypatch):
    from idc_core.cli import _make_parser, own_options
    from idc_core.opening import server_files
    from idc_core.opening.files import FileOptions

    path, _ = flat(tmp_path / "flat.onnx")
    arguments = _make_parser().parse_args(["studio", str(path), "--data", "digits"])
    own_options.open_paths(arguments)
    assert arguments.files == ["flat"]
    del MODELS["flat"]
    monkeypatch.setenv(server_files.VARIABLE, arguments.own_files.to_json())
    assert server_files.pending()
    assert server_files.open_once() == (["flat"], "")
    assert not server_files.pending()
    assert MODELS["flat"].default_layer == "fc1"
    path.unlink()
    changed = replace(arguments.own_files, options=FileOptions(scaling={"factor": 2}))
    monkeypatch.setenv(server_files.VARIABLE, changed.to_json())
    models, problem = server_files.open_once()
    assert not models
    assert "flat.onnx cannot be read: No such file" in problem


def test_a_folder_or_a_file_of_no_kind_is_refused(tmp_path):
    (tmp_path / "net.txt").write_text("x")
    for path in (tmp_path / "net.txt", tmp_path / "absent.onnx"):
        with pytest.raises(IdcError, match=path.name):
            idc.load_model(path)
