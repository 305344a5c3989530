"""Weights on disk: what fits is read unchanged, what does not is refused by name."""

import json
import os

import pytest
import torch
from safetensors.torch import load_file, save_file

from idc_core.errors import ModelError
from idc_core.models import find_entry, load_model
from idc_core.models.card import WEIGHTS_FOLDER
from idc_core.models.weights import fingerprint, read_weights, write_weights

NAME = "lenet1-digits"


@pytest.fixture
def copied(tmp_path):
    """A copy of committed weights and card."""
    for ending in (".safetensors", ".json"):
        (tmp_path / (NAME + ending)).write_bytes((WEIGHTS_FOLDER / (NAME + ending)).read_bytes())
    return tmp_path / f"{NAME}.safetensors"


def change(path, **changes):
    state = load_file(path)
    for name, value in changes.items():
        key = name.replace("__", ".")
        if value is None:
            del state[key]
        else:
            state[key] = value
    save_file(state, path)


def test_copy_loads_in_eval_mode_with_its_card(copied):
    network = load_model(NAME, weights=copied)
    assert not network.training
    assert all(parameter.requires_grad for parameter in network.parameters())
    assert network.card.name == NAME
    assert network.card.fingerprint == fingerprint(network)
    assert torch.equal(network.conv1.weight, load_file(copied)["conv1.weight"])


def test_missing_weights_name_the_command(tmp_path):
    with pytest.raises(ModelError, match="python -m idc_core train lenet1-digits"):
        load_model(NAME, weights=tmp_path / "absent.safetensors")


@pytest.mark.parametrize("size", [0, 4, 100, 20_000])
def test_truncated_file_is_refused(copied, size):
    copied.write_bytes(copied.read_bytes()[:size])
    with pytest.raises(ModelError, match=r"lenet1-digits\.safetensors is not a complete safetensors file"):
        load_model(NAME, weights=copied)


def test_pickle_is_refused(copied):
    torch.save({"conv1.weight": torch.zeros(1)}, copied)
    with pytest.raises(ModelError, match="not a complete safetensors file"):
        load_model(NAME, weights=copied)


def test_wrong_shape_is_refused_with_both_shapes(copied):
    change(copied, conv1__weight=torch.zeros(4, 1, 3, 3))
    with pytest.raises(ModelError, match=r"'conv1.weight' must have .*\(4, 1, 5, 5\).*\(4, 1, 3, 3\)"):
        load_model(NAME, weights=copied)


def test_missing_and_left_over_parameters_are_refused(copied):
    change(copied, logits__bias=None, extra=torch.zeros(2))
    with pytest.raises(ModelError, match=r"lacks \['logits.bias'\] and has \['extra'\] too many"):
        load_model(NAME, weights=copied)


def test_wrong_type_is_refused(copied):
    change(copied, logits__bias=torch.zeros(10, dtype=torch.float64))
    with pytest.raises(ModelError, match=r"'logits.bias' must be F32, but is F64"):
        load_model(NAME, weights=copied)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_values_that_are_not_finite_are_refused(copied, value):
    change(copied, logits__bias=torch.full((10,), value))
    with pytest.raises(ModelError, match=r"'logits.bias' holds values that are not finite"):
        load_model(NAME, weights=copied)


def test_refused_state_leaves_the_network_unchanged(copied):
    network = find_entry(NAME).build()
    before = fingerprint(network)
    change(copied, logits__bias=torch.zeros(9))
    with pytest.raises(ModelError):
        read_weights(network, copied)
    assert fingerprint(network) == before


def test_card_of_other_weights_is_refused(copied):
    change(copied, logits__bias=torch.zeros(10))
    with pytest.raises(ModelError, match="do not belong together"):
        load_model(NAME, weights=copied)


def test_damaged_card_is_refused(copied):
    copied.with_suffix(".json").write_text('{"name": ', encoding="utf-8")
    with pytest.raises(ModelError, match="cannot be read as JSON"):
        load_model(NAME, weights=copied)


def test_card_without_a_field_is_refused(copied):
    card = copied.with_suffix(".json")
    content = json.loads(card.read_text(encoding="utf-8"))
    del content["seed"]
    card.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ModelError, match="must have the fields"):
        load_model(NAME, weights=copied)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layers": []}, "expected layers with different names"),
        ({"layers": ["conv1", "conv1", "conv2"]}, "expected layers with different names"),
        ({"default_layer": "fc9"}, "the default layer among them"),
        ({"layers": ["conv2", "fc9"]}, "says the layers fc9, which its network of 7,206 parameters has not"),
        ({"layers": "conv2"}, "Expected `array`, got `str`"),
        ({"parameters": -1}, "expected a number of parameters and a seed from 0"),
        ({"parameters": 7207}, "says 7,207 parameters, which its network of 7,206 parameters has not"),
        ({"parameters": 7206.5}, "Expected `int`, got `float`"),
        ({"parameters": True}, "Expected `int`, got `bool`"),
        ({"seed": -1}, "expected a number of parameters and a seed from 0"),
        ({"seed": 10**400}, "expected a number of parameters and a seed from 0"),
        ({"dataset": "../../etc/passwd"}, "'../../etc/passwd' cannot be names of a network or a data set"),
        ({"name": None}, "Expected `str`, got `null`"),
        ({"task": "guessing"}, "Invalid enum value 'guessing'"),
        ({"metrics": {"test_accuracy": "high"}}, "Expected `float`, got `str`"),
        ({"metrics": {"test_accuracy": 7}}, "expected accuracies from 0 to 1"),
        ({"metrics": {"test_rmse": 0.1}}, "expected no 'test_rmse' of a classification"),
        ({"task": "regression"}, "expected no 'test_accuracy' of a regression"),
        ({"task": "regression", "metrics": {}}, "says regression, but lenet1-digits is for classification"),
        ({"fingerprint": "x"}, "16 hexadecimal digits"),
        ({"more": 1}, "must have the fields"),
    ],
)
def test_a_card_that_cannot_be_is_refused_by_field(copied, change, message):
    card = copied.with_suffix(".json")
    content = json.loads(card.read_text(encoding="utf-8")) | change
    card.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ModelError, match=message) as caught:
        load_model(NAME, weights=copied)
    assert str(card) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "cannot be read as JSON"),
        ('{"name": 1, "name": 2}', "a key comes twice"),
        ('{"metrics": NaN}', "NaN is no finite number"),
        ('{"metrics": 1e999}', "1e999 is no finite number"),
        ("null", "Expected `object`, got `null`"),
    ],
    ids=["brackets", "twice", "nan", "infinite", "null"],
)
def test_a_card_that_is_no_plain_object_is_refused(copied, text, message):
    copied.with_suffix(".json").write_text(text, encoding="utf-8")
    with pytest.raises(ModelError, match=message):
        load_model(NAME, weights=copied)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32-le"])
def test_a_card_in_another_encoding_is_refused(copied, encoding):
    card = copied.with_suffix(".json")
    card.write_text(card.read_text(encoding="utf-8"), encoding=encoding)
    with pytest.raises(ModelError, match="cannot be read as JSON"):
        load_model(NAME, weights=copied)


def header(changes):
    """A safetensors file of which there is a header alone."""
    content = json.dumps(changes).encode()
    return len(content).to_bytes(8, "little") + content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff" * 8 + b"{}", "its header of 18,446,744,073,709,551,615 bytes is cut off"),
        (
            header({"a": {"dtype": "F32", "shape": [10**15], "data_offsets": [0, 4 * 10**15]}}),
            "0 bytes of values where",
        ),
        (header({"a": {"dtype": "F32", "shape": [-1], "data_offsets": "0"}}), "Expected `array`, got `str`"),
        (header([]), "its header is not of the form expected"),
        ((3).to_bytes(8, "little") + b"{]}", "its header cannot be read as JSON"),
    ],
)
def test_a_header_is_compared_before_any_tensor_is_made(copied, content, message):
    copied.write_bytes(content)
    with pytest.raises(ModelError, match=message):
        load_model(NAME, weights=copied)


def test_only_files_are_opened(copied):
    copied.unlink()
    os.mkfifo(copied)
    with pytest.raises(ModelError, match="is a pipe; expected a file"):
        load_model(NAME, weights=copied)


def test_written_weights_come_back_the_same_and_alone(tmp_path):
    network = find_entry(NAME).build()
    path = tmp_path / "made" / "weights.safetensors"
    write_weights(network, path)
    other = find_entry(NAME).build()
    assert fingerprint(other) != fingerprint(network)
    read_weights(other, path)
    assert fingerprint(other) == fingerprint(network)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_folder_that_is_a_file_is_explained(tmp_path):
    (tmp_path / "taken").write_text("", encoding="utf-8")
    with pytest.raises(ModelError, match="cannot be made"):
        write_weights(find_entry(NAME).build(), tmp_path / "taken" / "weights.safetensors")
