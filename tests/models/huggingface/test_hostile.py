"""Folders that are damaged or meant to harm: each is refused with a sentence, and nothing of them is run."""

import json
import os
import shutil
import socket
import struct

import numpy as np
import pytest
import torch
import transformers
from safetensors.numpy import load_file, save_file

from idc_core.errors import ModelError
from idc_core.models.formats import NETWORK_FORMATS
from idc_core.models.huggingface.reading import load_folder
from tests.models.huggingface.folders import picture_folder, text_folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return {
        "bert": text_folder(tmp_path_factory.mktemp("bert"), "bert"),
        "vit": picture_folder(tmp_path_factory.mktemp("vit"), "vit"),
    }


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    def refuse(*given, **named):
        raise AssertionError("the network was asked")

    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def bert(made, tmp_path):
    return shutil.copytree(made["bert"], tmp_path / "bert")


@pytest.fixture
def vit(made, tmp_path):
    return shutil.copytree(made["vit"], tmp_path / "vit")


def change(folder, name="config.json", **values):
    """Change settings of a JSON file; None takes one out."""
    content = json.loads((folder / name).read_text()) | values
    (folder / name).write_text(json.dumps({key: value for key, value in content.items() if value is not ...}))


def refused(folder, said):
    with pytest.raises(ModelError, match=said) as caught:
        load_folder(folder)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 900 + len(str(folder))


def weights(folder, **changes):
    """Change tensors of a folder; None takes one out."""
    path = folder / "model.safetensors"
    found = {name: value for name, value in (load_file(path) | changes).items() if value is not None}
    save_file(found, path)
    return found


CONFIGS = {
    "code": ({"auto_map": {"AutoModelForSequenceClassification": "evil.Net"}}, "auto_map.*never run"),
    "nested code": ({"text_config": {"auto_map": {"AutoConfig": "evil.Config"}}}, "auto_map.*never run"),
    "quantised": ({"quantization_config": {"quant_method": "gptq"}}, "quantised weights.*gptq"),
    "unknown": ({"model_type": "nonesuch"}, "model_type 'nonesuch'.*does not know"),
    "path as type": ({"model_type": "../../evil"}, "model_type"),
    "no type": ({"model_type": ...}, "model_type None"),
    "number as type": ({"model_type": 7}, "model_type 7"),
    "no classifier": ({"architectures": ["BertForMaskedLM"]}, "BertForMaskedLM, which classifies neither"),
    "other architecture": ({"architectures": ["GPT2ForSequenceClassification"]}, "expected BertForSequence"),
    "two architectures": ({"architectures": ["A", "B"]}, "names the architectures"),
    "no architecture": ({"architectures": ...}, "names the architectures None"),
    "architecture in a module": ({"architectures": ["os.systemForSequenceClassification"]}, "names the architectures"),
    "10^12 parameters": ({"hidden_size": 10**6, "vocab_size": 10**6}, "divisible|different networks"),
    "huge vocabulary": ({"vocab_size": 16_000_000}, "different networks"),
    "10^12 words": ({"vocab_size": 10**12}, "vocab_size 1,000,000,000,000; expected at most"),
    "10^9 layers": ({"num_hidden_layers": 10**9}, "num_hidden_layers 1,000,000,000; expected at most"),
    "10^9 layers within": ({"extra": {"deep": [[10**9]]}}, "deep 1,000,000,000"),
    "10^9 classes": ({"id2label": ..., "num_labels": 10**9}, "num_labels 1,000,000,000"),
    "negative size": ({"hidden_size": -16}, "BertForSequenceClassification cannot be used"),
    "text as size": ({"hidden_size": "16; import os"}, "cannot be used"),
    "no heads": ({"num_attention_heads": 0}, "cannot be used"),
    "unknown activation": ({"hidden_act": "__import__('os')"}, "cannot be used"),
    "method replaced": ({"to_dict": 1, "get_text_config": 2, "num_labels": 3}, "cannot be used"),
    "other sizes": ({"intermediate_size": 48}, "intermediate.*of another shape"),
    "more layers": ({"num_hidden_layers": 3}, "missing, which would be random"),
    "fewer layers": ({"num_hidden_layers": 1}, "left over"),
    "gaps in classes": ({"id2label": {"0": "a", "2": "b"}}, "without gaps"),
    "classes as list": ({"id2label": ["a", "b"]}, "without gaps"),
    "more classes": ({"id2label": {str(n): f"c{n}" for n in range(9)}}, "classifier.*another shape"),
    "no padding": ({"pad_token_id": -4}, "pad_token_id -4"),
    "padding outside": ({"pad_token_id": 10**6}, "cannot be used"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_configurations(bert, name):
    changes, said = CONFIGS[name]
    change(bert, **changes)
    refused(bert, said)


def test_names_of_fewer_classes_than_outputs(tmp_path):
    sizes = {"image_size": 32, "hidden_sizes": [8] * 4, "depths": [1] * 4, "num_attention_heads": [1] * 4}
    config = transformers.PvtConfig(id2label={0: "a", 1: "b", 2: "c"}, **sizes)  # which has 1,000 outputs all the same
    transformers.PvtForImageClassification(config).save_pretrained(tmp_path)
    picture_settings = {"size": {"height": 32, "width": 32}, "image_processor_type": "PvtImageProcessor"}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(picture_settings))
    refused(tmp_path, "names 3 classes, but describes a network with 1,000 outputs")


def test_code_beside_it_is_never_run(bert, tmp_path):
    code = f"open({str(tmp_path / 'ran')!r}, 'w')"
    for name in ("modeling_bert.py", "evil.py", "__init__.py", "configuration_bert.py"):
        (bert / name).write_text(code)
    load_folder(bert)
    change(bert, auto_map={"AutoConfig": "evil.Config", "AutoModelForSequenceClassification": "evil--evil.Net"})
    refused(bert, "never run")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["kernel", "attention", "fusion", "weights", "adapter"])
def test_settings_that_would_fetch_something_do_nothing(bert, name):
    changes = {
        "kernel": {"use_kernels": True, "kernel_config": {"a": "kernels-community/evil"}},
        "attention": {"_attn_implementation": "kernels-community/evil", "attn_implementation": "hub/evil"},
        "fusion": {"fusion_config": {"patch_embeddings": True}},
        "weights": {"transformers_weights": "../../evil.safetensors", "_name_or_path": "evil/evil"},
        "adapter": {"name_or_path": "evil/evil", "dtype": "evil", "torch_dtype": "evil", "distributed_config": {}},
    }[name]
    change(bert, **changes)
    network = load_folder(bert)
    assert network.config._attn_implementation == "eager"


@pytest.mark.parametrize(
    "content", [b"", b"[1]", b"{", b'{"a": NaN}', b'{"a":1,"a":2}', b"[" * 10**5, b"\xff\xfe{\0}\0"]
)
def test_config_files(bert, content):
    (bert / "config.json").write_bytes(content)
    refused(bert, "config.json")


def test_only_pickled_weights(bert):
    (bert / "model.safetensors").unlink()
    torch.save({}, bert / "pytorch_model.bin")
    refused(bert, "pytorch_model.bin can run code.*save_pretrained")
    (bert / "pytorch_model.bin").unlink()
    refused(bert, "has no model.safetensors. Where")


def test_an_empty_folder(tmp_path):
    refused(tmp_path, "no Hugging Face folder")


def test_weights_that_do_not_fit(bert):
    good = load_file(bert / "model.safetensors")
    weights(bert, **{"classifier.weight": None, "classifier.bias": None})
    refused(bert, "classifier.bias, classifier.weight are missing, which would be random")
    weights(bert, **good, **{"evil\nname": np.zeros(3, np.float32)})
    refused(bert, "left over")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite(bert, value):
    weights(bert, **{"classifier.bias": np.array([0, value, 0], np.float32)})
    refused(bert, "'classifier.bias' holds values that are not finite")


def test_damaged_weights(bert):
    path = bert / "model.safetensors"
    good = path.read_bytes()
    header = json.loads(good[8 : 8 + struct.unpack("<Q", good[:8])[0]])
    tensors = good[8 + struct.unpack("<Q", good[:8])[0] :]

    def write(changed):
        text = json.dumps(changed).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + tensors)

    for content in (b"", good[:4], good[:200], good[:-5], b"\x80\x04pickle", struct.pack("<Q", 1 << 62) + good[8:]):
        path.write_bytes(content)
        refused(bert, "safetensors")
    one, other = [name for name in header if name != "__metadata__"][:2]
    write(header | {one: header[other]})
    refused(bert, "not a complete safetensors")
    write(header | {one: header[one] | {"shape": [1 << 40, 1 << 40]}})
    refused(bert, "not a complete safetensors")
    write(header | {one: header[one] | {"dtype": "F8_E4M3"}})
    refused(bert, "F8_E4M3; expected.*float weights")
    write(header | {one: header[one] | {"shape": "big"}})
    refused(bert, "not a complete safetensors.*shape")


def test_files_in_parts(bert):
    good = load_file(bert / "model.safetensors")
    (bert / "model.safetensors").unlink()
    names = sorted(good)
    half = {"part-1.safetensors": names[::2], "part-2.safetensors": names[1::2]}
    for file, own in half.items():
        save_file({name: good[name] for name in own}, bert / file)

    def index(files):
        places = {name: file for file, own in files.items() for name in own}
        (bert / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))

    index(half)
    assert len(load_folder(bert).state_dict()) >= len(good)
    for bad in ("../part-1.safetensors", "/etc/passwd", "part-9.safetensors", "config.json", ".."):
        index(half | {bad: names[:1]})
        refused(bert, "names")
    save_file(good, bert / "part-3.safetensors")
    index(half | {"part-3.safetensors": names[:1]})
    refused(bert, "is in another file, too")
    (bert / "model.safetensors.index.json").write_text("{}")
    refused(bert, "no weight_map")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_links_out_of_the_folder(bert, tmp_path, name):
    (bert / name).replace(tmp_path / name)
    (bert / name).symlink_to(tmp_path / name)
    refused(bert, "a link that leads out of its folder")


def test_links_of_a_download_are_followed(bert, tmp_path):
    snapshot = tmp_path / "models--x" / "snapshots" / "1a2b"
    blobs = tmp_path / "models--x" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for file in bert.iterdir():
        file.replace(blobs / file.name)
        (snapshot / file.name).symlink_to(f"../../blobs/{file.name}")
    assert load_folder(snapshot).class_names == ("good", "bad", "neither")


def test_special_files(bert):
    (bert / "model.safetensors").unlink()
    os.mkfifo(bert / "model.safetensors")
    refused(bert, "is a pipe")


def test_names_of_classes_are_shown_on_one_line(bert):
    change(bert, id2label={"0": "a\nb\x1b[31m", "1": "<script>\u202egood", "2": "a b [31m"})
    assert load_folder(bert).class_names == ("a b [31m (0)", "<script> good (1)", "a b [31m (2)")


@pytest.mark.parametrize(
    "changes",
    [
        {"size": {"height": 10**9, "width": 10**9}},
        {"size": "big"},
        {"size": {"height": 1e9, "width": 8}},
        {"crop_pct": 1e-9, "image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 32}},
        {"max_num_patches": 10**9, "image_processor_type": "Siglip2ImageProcessor"},
        {"image_processor_type": "NoneSuchImageProcessor"},
        {"size": {"height": 0, "width": 8}},
        {"image_std": [0, 0, 0]},
        {"image_mean": "dark"},
        {"image_std": None},
        {"resample": 77},
        {"rescale_factor": "1/255"},
    ],
)
def test_processors(vit, changes):
    change(vit, "preprocessor_config.json", **changes)
    refused(vit, "mage ?[pP]rocessor in")
    with pytest.raises(ModelError):
        NETWORK_FORMATS["/"].expects(vit)


def test_transformers_is_as_silent_as_it_was(bert, capfd):
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    load_folder(bert)
    change(bert, num_hidden_layers=3)
    refused(bert, "missing")
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before
    said = capfd.readouterr()
    assert not said.out
    assert not said.err
