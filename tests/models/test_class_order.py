"""Outputs of a network and classes of its data, matched by name or number: in another order, with more outputs."""

import json
import re
import subprocess

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

import idc_core as idc
from idc_core.analysis.network_check import check_network
from idc_core.cli import main
from idc_core.datasets import DATASETS
from idc_core.errors import ModelError
from idc_core.models import MODELS
from idc_core.models.class_order import class_order, names_option

NAMES = ("noise", "flower", "china")


@pytest.fixture(autouse=True)
def registries():
    before = dict(DATASETS), dict(MODELS)
    yield
    for registry, old in zip((DATASETS, MODELS), before, strict=True):
        registry.clear()
        registry.update(old)


@pytest.mark.parametrize(
    ("own", "classes", "order"),
    [
        (NAMES, ("china", "flower", "noise"), (2, 1, 0)),
        (("Great White_shark", "tench, Tinca tinca"), ("tench", "great-white shark"), (1, 0)),
        (("n01440764 tench", "n01443537 goldfish"), ("n01443537", "n01440764"), (1, 0)),
        (("tench", "goldfish"), ("n01443537_goldfish", "n01440764-tench"), (1, 0)),
        (("NEGATIVE", "POSITIVE"), ("0", "1"), (0, 1)),
        (("no", "yes"), ("False", "True"), (0, 1)),
        (("a", "b", "c", "d"), ("d", "b"), (3, 1)),
        (("a", "b", "c", "d"), ("1", "3"), (1, 3)),
        ((), ("7", "3"), (7, 3)),
        (("LABEL_0", "LABEL_1"), ("cat", "dog"), (0, 1)),
        ((), ("cat", "dog"), (0, 1)),
        (("crane", "crane, bird", "house"), ("house",), (2,)),
    ],
)
def test_outputs_are_matched_by_name_or_number(own, classes, order):
    outputs = len(own) or (10 if order == (7, 3) else len(classes))
    assert class_order(own, outputs, classes, "It").outputs == order


@pytest.mark.parametrize(
    ("own", "classes", "said"),
    [
        (("cat", "dog"), ("Katze", "Hund"), "no output is called 'Katze', 'Hund'"),
        (
            ("cat", "dog", "fox"),
            ("cat", "cow"),
            "no output is called 'cow'. Rename the classes, or say what the outputs",
        ),
        (("1 star", "2 stars"), ("1", "2"), "--class-names 1,2 in the order of the outputs"),
        (("cat", "dog"), ("cat", "Cat"), "several classes are called as one output"),
        (("cat", "dog"), ("cat", "dog", "fox"), "choose data of its classes"),
    ],
)
def test_names_of_other_classes_are_refused_side_by_side(own, classes, said):
    with pytest.raises(ModelError, match=r"^It has") as caught:
        class_order(own, len(own), classes, "It")
    assert said in str(caught.value)
    assert all(repr(name) in str(caught.value) for name in (*own, *classes))


@pytest.mark.parametrize("own", [(), ("tench, Tinca tinca", *map(str, range(998)), "toilet tissue")])
def test_ids_of_wordnet_are_outputs_of_networks_for_imagenet(own):
    classes = ("n01440764", "n02102040", "n03888257_parachute")
    assert class_order(own, 1000, classes, "It").outputs == (0, 217, 701)
    assert class_order((), 1001, classes, "It").outputs == (1, 218, 702)
    assert class_order((), 999, classes, "It") is None


def test_without_names_other_numbers_of_classes_fit_nothing():
    assert class_order((), 3, ("cat", "dog"), "It") is None


def data_of(name, targets, class_names, noise=0.05):
    """Points around one corner per class, in the order of `NAMES`; tests and training inputs."""

    @idc.dataset(name, class_names=class_names)
    def read(split):
        random = np.random.default_rng(split == "train")
        return (np.eye(3)[targets] + random.normal(0, noise, (len(targets), 3))).astype(np.float32), (
            np.array([class_names.index(NAMES[target]) for target in targets])
        )


def near_corners(hidden=4):
    """A network whose output k is highest near corner k."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(3, hidden), nn.ReLU(), nn.Linear(hidden, 3))
    with torch.no_grad():
        network[0].weight.zero_()
        network[0].weight[:3] = 4 * torch.eye(3)
        network[0].bias.zero_()
        network[2].weight.zero_()
        network[2].weight[:, :3] = torch.eye(3)
        network[2].bias.copy_(torch.tensor([0.1, 0.0, -0.1]))
    return network


def as_onnx(path, network, metadata=(), more=0):
    """Write it, with a softmax, as ONNX; `more` outputs stand in front that are never the highest."""
    first, last = network[0], network[2]
    weight = np.concatenate([np.zeros((more, last.in_features)), last.weight.detach().numpy()]).astype(np.float32)
    bias = np.concatenate([np.full(more, -9), last.bias.detach().numpy()]).astype(np.float32)
    arrays = {"v": first.weight.detach().numpy().T, "a": first.bias.detach().numpy(), "w": weight.T, "b": bias}
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["x", "v", "a"], ["h"], "fc1"),
            helper.make_node("Relu", ["h"], ["r"], "relu"),
            helper.make_node("Gemm", ["r", "w", "b"], ["s"], "fc2"),
            helper.make_node("Softmax", ["s"], ["y"], "softmax"),
        ],
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", len(bias)])],
        [numpy_helper.from_array(np.ascontiguousarray(value), name) for name, value in arrays.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, dict(metadata))
    path.write_bytes(model.SerializeToString())
    return path


TARGETS = np.arange(60) % 3


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("names", str(dict(enumerate(NAMES)))),
        ("class_names", json.dumps(NAMES)),
        ("id2label", json.dumps(dict(enumerate(NAMES)))),
        ("classes", "Noise, Flower, China"),
        ("labels", json.dumps({"china": 2, "flower": 1, "noise": 0})),
    ],
)
def test_the_metadata_of_onnx_say_the_order(tmp_path, key, text):
    data_of("photos", TARGETS, ("china", "flower", "noise"))
    network = idc.load_model(as_onnx(tmp_path / "it.onnx", near_corners(), {key: text}), data="photos")
    inputs, targets = DATASETS["photos"].load("test", None, None).inputs, 2 - TARGETS
    with torch.no_grad():
        assert (network(torch.tensor(inputs)).argmax(1).numpy() == targets).all()
    said = next(remark for remark in network.remarks if remark.startswith("Outputs and classes"))
    assert "2 'china' is 'china', 1 'flower' is 'flower', 0 'noise' is 'noise'" in said.lower()
    for layer, values in idc.relevance(network, inputs, ["fc2", "fc1"], bias="redistribute").items():
        start = network(torch.tensor(inputs)).detach().max(1).values
        np.testing.assert_allclose(values.sum(1), start, rtol=1e-4, err_msg=layer)


def test_without_names_the_order_is_that_of_the_data(tmp_path):
    data_of("photos", TARGETS, ("china", "flower", "noise"))
    network = idc.load_model(as_onnx(tmp_path / "it.onnx", near_corners()), data="photos")
    with torch.no_grad():
        predicted = network(torch.tensor(DATASETS["photos"].load("test", None, None).inputs)).argmax(1).numpy()
    assert (predicted == 2 - TARGETS).mean() == pytest.approx(1 / 3, abs=0.01)


def test_setup_files_say_the_order_and_a_network_its_own(tmp_path):
    data_of("photos", TARGETS, ("china", "flower", "noise"))
    inputs = torch.tensor(DATASETS["photos"].load("test", None, None).inputs)
    idc.network("told", data="photos", class_names=NAMES)(near_corners)

    @idc.network("tells", data="photos")
    def build():
        network = near_corners()
        network.class_names = NAMES
        return network

    plain = {"told": idc.load_model("told"), "tells": idc.load_model("tells")}
    for network in plain.values():
        with torch.no_grad():
            assert (network(inputs).argmax(1).numpy() == 2 - TARGETS).all()
    idc.network("unordered", data="photos")(near_corners)
    assert idc.load_model("unordered").card.fingerprint != plain["told"].card.fingerprint


def test_other_names_are_asked_for_by_the_command_line(tmp_path, capsys):
    folder = tmp_path / "photos"
    random = np.random.default_rng(0)
    np.savez(
        tmp_path / "photos.npz",
        x=(np.eye(3)[TARGETS] + random.normal(0, 0.05, (60, 3))).astype(np.float32),
        y=np.array(["Geräusch", "Blume", "China"])[TARGETS],
    )
    path = as_onnx(tmp_path / "it.onnx", near_corners(), {"names": str(dict(enumerate(NAMES)))})
    words = ["check-network", "--model", str(path), "--data", str(tmp_path / "photos.npz")]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "no output is called 'Blume', 'Geräusch'" in said
    assert main([*words, "--class-names", "Geräusch,Blume,China"]) == 0
    assert "100.0 %" in capsys.readouterr().out
    assert not folder.exists()


def test_more_classes_in_the_network_than_in_the_data(tmp_path):
    data_of("photos", TARGETS, ("china", "flower", "noise"), noise=0.4)
    own = (*(f"other {number}" for number in range(5)), *NAMES)
    path = as_onnx(tmp_path / "it.onnx", near_corners(), {"names": str(dict(enumerate(own)))}, more=5)
    found = check_network(str(path), data="photos")
    share = f"{100 * found.quality[1].value:.1f} %"
    assert 0.5 < found.quality[1].value <= 1
    assert any("5 other outputs are left out" in note for note in found.notes)
    assert any(f"over all 8 outputs and {share} over those of the data's 3 classes" in note for note in found.notes)


def test_integer_labels_are_numbers_of_outputs(tmp_path):
    random = np.random.default_rng(0)
    np.savez(
        tmp_path / "photos.npz",
        x=(np.eye(3)[TARGETS] + random.normal(0, 0.05, (60, 3))).astype(np.float32),
        y=TARGETS + 30,
    )
    network = idc.load_model(as_onnx(tmp_path / "it.onnx", near_corners(), more=30), data=tmp_path / "photos.npz")
    data = idc.load_dataset(network.card.dataset)
    with torch.no_grad():
        predicted = network(torch.tensor(data.inputs.copy())).argmax(1).numpy()
    assert [data.class_names[number] for number in predicted] == [data.class_names[target] for target in data.targets]


def test_metadata_that_are_no_names_are_left_alone(tmp_path):
    data_of("photos", TARGETS, ("china", "flower", "noise"))
    for text in ("{'a'", "[[" * 500, "[1, 2, 3]", "x" * (1 << 21), "", "['a', 'a', 'b']", "{0: 'a', 2: 'b', 3: 'c'}"):
        network = idc.load_model(as_onnx(tmp_path / "it.onnx", near_corners(), {"names": text}), data="photos")
        assert not getattr(network, "class_names", ())
    assert onnx.load(tmp_path / "it.onnx").metadata_props


def test_one_of_several_labels_is_no_class_of_them():
    for own in ((), ("toxic", "insult", "threat", "hate")):
        with pytest.raises(ModelError, match=r"of several labels are not analysed.*--class-names 0,1,2,3 \(in"):
            class_order(own, 4, ("0", "1"), "It")
    assert class_order(("0", "1", "2", "3"), 4, ("0", "1"), "It").outputs == (0, 1)
    with pytest.raises(ModelError) as caught:
        class_order((), 300, ("0", "1"), "It")
    said = re.search(r"by --class-names (\$\(.+?\)) \(in Python", str(caught.value))[1]
    names = subprocess.run(["sh", "-c", f"echo {said}"], capture_output=True, text=True).stdout.strip().split(",")
    assert class_order(names, 300, ("0", "1"), "It").outputs == (0, 1)
    assert names_option(["a b", "c"]) == "--class-names 'a b,c'"
    assert class_order((), 4, ("0", "1", "3"), "It").outputs == (0, 1, 3)


@pytest.mark.parametrize(("names", "ending", "refused"), [
    ((), True, True), (("toxic", "insult"), True, True), (("0", "1"), True, False), ((), False, False),
])  # fmt: skip
def test_two_sigmoids_are_not_yes_and_no(names, ending, refused):
    @idc.dataset("yes-or-no", class_names=("0", "1"))
    def read(split):
        return np.eye(3)[[0, 1, 0, 1]].astype(np.float32), np.array([0, 1, 0, 1])

    @idc.network("two-labels", "x", data="yes-or-no", class_names=names)
    def build():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2), *([nn.Sigmoid()] * ending))

    if refused:
        with pytest.raises(ModelError, match=r"that are probabilities each, as of two labels.*--class-names 0,1"):
            idc.load_model("two-labels")
    else:
        assert idc.load_model("two-labels") is not None
