"""Networks that are wrong or meant to harm, as a person may be given them: how each is made, what is said of it."""

import io
import json
import pickle
import struct
import zipfile

import numpy as np
import torch
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file, save_file

from tests.guarded.hostile import npy
from tests.library.small_files import digits_onnx

X = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
BILLION = 1_000_000_000


class Trap:
    """Makes the file "executed" in a folder when it is unpickled."""

    def __init__(self, folder):
        self.path = str(folder / "executed")

    def __reduce__(self):
        return open, (self.path, "w")


def pickled(name, beside=None):
    """A pickle under a name, and another one beside it."""

    def make(folder):
        if beside:
            pickled(beside)(folder)
        (folder / name).write_bytes(pickle.dumps(Trap(folder)))
        return folder / name

    return make


def saved_by_torch(name):
    """A pickle as `torch.save` writes it, under a name."""

    def make(folder):
        torch.save(Trap(folder), folder / name)
        return folder / name

    return make


def code(folder):
    """A setup file."""
    (folder / "setup.py").write_text(f"open({str(folder / 'executed')!r}, 'w')")
    return folder / "setup.py"


def onnx_file(nodes, constants=()):
    """An ONNX file of a graph over four numbers."""

    def make(folder):
        graph = helper.make_graph(
            nodes, "g", [X], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], list(constants)
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
        (folder / "net.onnx").write_bytes(model.SerializeToString())
        return folder / "net.onnx"

    return make


def node(operator, inputs, outputs=("y",), **more):
    return helper.make_node(operator, list(inputs), list(outputs), **more)


def numbers(name, values, kind=np.int64):
    return numpy_helper.from_array(np.array(values, kind), name)


def outside(location):
    """An ONNX file whose weight lies in another file."""

    def make(folder):
        (folder / "inner").mkdir()
        (folder / "secret").write_bytes(bytes(16))
        (folder / "inner" / "link").symlink_to(folder / "secret")
        tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=(4,), data_location=TensorProto.EXTERNAL)
        tensor.external_data.add(key="location", value=location)
        return onnx_file([node("Add", ["x", "w"])], [tensor])(folder / "inner")

    return make


def whole_onnx(change):
    """A good ONNX file, changed."""

    def make(folder):
        (folder / "net.onnx").write_bytes(change(digits_onnx()))
        return folder / "net.onnx"

    return make


def safetensors(header, data=bytes(16), said=None):
    """A safetensors file with any header."""

    def make(folder):
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        (folder / "net.safetensors").write_bytes(struct.pack("<Q", len(text) if said is None else said) + text + data)
        return folder / "net.safetensors"

    return make


def tensor(begin, end, shape=(2,)):
    return {"dtype": "F32", "shape": list(shape), "data_offsets": [begin, end]}


def config(**values):
    """Change settings of a folder; ... takes one out."""

    def change(path):
        content = json.loads((path / "config.json").read_text()) | values
        (path / "config.json").write_text(json.dumps({name: one for name, one in content.items() if one is not ...}))

    return change


def weight(change):
    """Change the tensors of a folder."""

    def changed(path):
        found = load_file(path / "model.safetensors")
        change(found)
        save_file(found, path / "model.safetensors")

    return changed


def only_pickled(path):
    (path / "model.safetensors").unlink()
    torch.save(Trap(path.parent), path / "pytorch_model.bin")


def not_a_number(tensors):
    tensors["classifier.bias"][1] = np.nan


def renamed(tensors):
    tensors["classifier\u202e.<b>\n"] = tensors.pop("classifier.bias")


def parts_elsewhere(path):
    names = load_file(path / "model.safetensors")
    (path / "model.safetensors").replace(path.parent / "model.safetensors")
    index = {"weight_map": dict.fromkeys(names, "../model.safetensors")}
    (path / "model.safetensors.index.json").write_text(json.dumps(index))


def linked(path):
    (path / "config.json").replace(path.parent / "config.json")
    (path / "config.json").symlink_to(path.parent / "config.json")


def zipped(*members):
    """The zip file of a network's folder, to be uploaded."""

    def make(folder):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content, mode in ((*one, 0o100644)[:3] for one in members):
                about = zipfile.ZipInfo(name)
                about.external_attr, about.compress_type = mode << 16, zipfile.ZIP_DEFLATED
                archive.writestr(about, content)
        (folder / "net.zip").write_bytes(file.getvalue())
        return folder / "net.zip"

    return make


LINK = 0o120777
BOMB = npy(f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({BILLION},), }}\n")

NETWORKS = {
    "a pickle, .pt": (saved_by_torch("net.pt"), "may be a pickle, which can run code"),
    "a pickle, .pth": (saved_by_torch("net.pth"), "may be a pickle, which can run code"),
    "a pickle, .ckpt": (saved_by_torch("net.ckpt"), "may be a pickle, which can run code"),
    "a pickle, .bin": (saved_by_torch("net.bin"), "may be a pickle, which can run code"),
    "a pickle, .pkl": (pickled("net.pkl"), "may be a pickle, which can run code"),
    "a pickle, .joblib": (pickled("net.joblib"), "may be a pickle, which can run code"),
    "a pickle, .h5": (pickled("net.h5"), "Save it by model.export"),
    "a pickle, .pt2": (saved_by_torch("net.pt2"), "command line only (--trust)"),
    "a pickle named .safetensors": (pickled("net.safetensors"), "it was not opened. Save it as"),
    "what torch.save writes named .safetensors": (saved_by_torch("net.safetensors"), "it was not opened. Save it as"),
    "a pickle named .onnx": (pickled("net.onnx"), "it was not opened. Save it as"),
    "code": (code, "command line only (--setup)"),
    "safetensors: nothing": (safetensors(b"", b"", 0), "its header cannot be read as JSON"),
    "safetensors: a header that is cut off": (safetensors({"a": tensor(0, 8)}, b"", 4_000), "is cut off, or longer"),
    "safetensors: a header of 2^60 bytes": (safetensors(b"{}", b"", 1 << 60), "is cut off, or longer"),
    "safetensors: values that are cut off": (
        safetensors({"a": tensor(0, 8)}, bytes(4)), "4 bytes of values where its header says 8"),
    "safetensors: tensors over each other": (
        safetensors({"a": tensor(0, 8), "b": tensor(4, 12)}, bytes(12)), "'b' lies over another one"),
    "safetensors: 2^80 values": (
        safetensors({"a": tensor(0, 8, (1 << 40, 1 << 40))}, bytes(8)), "'a' needs 4,835,703,278,458,516,698,824,704"),
    "safetensors: a name twice": (
        safetensors(b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},'
                    b'"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}'), "a key comes twice"),
    "safetensors: a name from right to left, with HTML and a newline": (
        safetensors({"a\u202e<b>\n": tensor(0, 8)}, bytes(8)), "fit no architecture"),
    "ONNX: weights above its folder": (outside("../secret"), "leads out of its folder"),
    "ONNX: weights at an absolute path": (outside("/etc/hostname"), "leads out of its folder"),
    "ONNX: weights behind a link": (outside("link"), "link that leads out"),
    "ONNX: a cycle": (
        onnx_file([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"])]), "a later node"),
    "ONNX: a constant of 10^9 elements": (
        onnx_file([node("ConstantOfShape", ["s"], ["c"]), node("Add", ["x", "c"])], [numbers("s", [BILLION])]),
        "1,000,000,000 numbers"),
    "ONNX: a range of 10^9 elements": (
        onnx_file([node("Range", ["a", "b", "d"], ["c"]), node("Add", ["x", "c"])],
                  [numbers("a", 0.0, np.float32), numbers("b", 1e9, np.float32), numbers("d", 1.0, np.float32)]),
        "1,000,000,000 numbers"),
    "ONNX: a weight that says 10^9 elements": (
        onnx_file([node("Add", ["x", "w"])],
                  [TensorProto(name="w", data_type=TensorProto.FLOAT, dims=(BILLION,), raw_data=bytes(16))]),
        "damaged"),
    "ONNX: cut off": (whole_onnx(lambda content: content[: len(content) // 2]), "net.onnx"),
    "ONNX: no network": (whole_onnx(lambda content: b"\0\1\2" * 99), "net.onnx"),
    "ONNX: an operator that is not there": (onnx_file([node("Det", ["x"], name="here")]), "node 'here' (Det"),
    "ONNX: an operator of its own": (onnx_file([node("Relu", ["x"], domain="evil.com")]), "'evil.com'"),
    "ONNX: a value made twice": (onnx_file([node("Relu", ["x"]), node("Tanh", ["x"])]), "more than once"),
    "ONNX: NaN weights": (
        onnx_file([node("MatMul", ["x", "w"])], [numbers("w", [[np.nan]] * 4, np.float32)]), "not finite"),
    "zip: above its folder": (zipped(("config.json", b"{}"), ("../out", b"1")), "leads out of its folder"),
    "zip: an absolute path": (zipped(("config.json", b"{}"), ("/out", b"1")), "leads out of its folder"),
    "zip: a link": (zipped(("config.json", b"{}"), ("link", b"/etc/passwd", LINK)), "link"),
    "zip: a bomb": (zipped(("config.json", b"{}"), ("model.safetensors", bytes(30_000_000))), "trap"),
    "zip: a file that is a folder too": (zipped(("a", b"1"), ("a/b", b"2")), "net.zip"),
}  # fmt: skip
"""Kind of file -> how it is made, and what must be said of it."""

FOLDERS = {
    "auto_map": (config(auto_map={"AutoModelForSequenceClassification": "evil.Net"}), "never run"),
    "only pytorch_model.bin": (only_pickled, "pytorch_model.bin can run code"),
    "NaN weights": (weight(not_a_number), "not finite"),
    "10^9 layers": (config(num_hidden_layers=BILLION), "1,000,000,000"),
    "gaps among classes": (config(id2label={"0": "a", "2": "b"}), "without gaps"),
    "a weight named with HTML and a newline": (weight(renamed), "missing, which would be"),
    "weights above its folder": (parts_elsewhere, "names"),
    "a link out of it": (linked, "a link that leads out of its folder"),
    "no config": (lambda path: (path / "config.json").write_bytes(b"{"), "config.json"),
}  # fmt: skip
"""Kind of Hugging Face folder -> what is changed in a good one, and what must be said of it."""
