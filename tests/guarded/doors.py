"""The program that gives hostile files to every door: `python -m tests.guarded.doors WORK`.

A door is a way by which a file of somebody else is named: a path, an upload, a setup file or the file of a check, the
environment, an import, a URL. `fuzz.py` tries what reads files; here every door must lead to something that is bounded.
A process of its own, whose memory is its own. It writes `report.json` into the folder WORK: by case what was said, and
the most bytes that the process has held until then.
"""

import contextlib
import io
import json
import os
import resource
import struct
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import onnx
import torch

import idc_core as idc
from idc_core import library
from idc_core.base.config import config
from idc_core.cli import main as command
from idc_core.confusion import own_evidence
from idc_core.errors import DataError, IdcError
from idc_core.models.network_file import NetworkFile, open_network
from idc_core.opening import server_files, setup_files
from idc_core.opening.files import DATA, NETWORKS, FileOptions, OwnFile, OwnFiles
from idc_core.runs import import_runs
from idc_core.store import result_file
from idc_core.suites import custom_suite
from tests.guarded.measured import Hang, no_longer_than, peak

SECONDS = 60
"""A case that has not ended after so many seconds waits for something."""

MOST_DATA = 3 << 30
"""Bytes beyond which the system gives no more, so that a mistake takes nothing else down."""

LIMITS = "[limits]\nupload_mib = 8\nfetched_mib = 8\n"
RESULT = f"{'0' * 32}{result_file.ENDING}"


def commanded(*words):
    """Run a command; raise what it says where it refuses."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        status = command(list(map(str, words)))
    if status:
        raise DataError(said.getvalue())


def checked(path, key):
    """Run a check whose file names another file under a key."""
    file = path.with_name("check.toml")
    names = {"model": "lenet1-digits", key: str(path)}
    top = {name: names.pop(name) for name in ("setup", "baseline") if name in names}
    lines = [f"{name} = {json.dumps(value)}" for name, value in top.items()]
    lines += ["[[check]]", *(f"{name} = {json.dumps(value)}" for name, value in names.items())]
    file.write_text("\n".join([*lines, "[[check.limit]]", "may_fall_by = 0.1", ""]), encoding="utf-8")
    commanded("check", file)


@contextlib.contextmanager
def environment(name, value):
    """Set a variable of the environment in a block."""
    before = os.environ.get(name)
    os.environ[name] = str(value)
    try:
        yield
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before


def watched(path):
    """Read a setup file that the environment names, as a server does."""
    with environment(setup_files.VARIABLE, path):
        setup_files.watch()
        try:
            setup_files.refresh()
            if problems := setup_files.problems():
                raise DataError(problems[0])
        finally:
            setup_files._close_all()


def served(path, kind):
    """Open a file that the environment names, as a server does."""
    files = OwnFiles((OwnFile(kind, str(path)),), FileOptions(), "digits" if kind == NETWORKS else "")
    with environment(server_files.VARIABLE, files.to_json()):
        server_files.named().enter()


def configured(path):
    """Read a config file that the environment names."""
    with environment("IDC_CONFIG", path):
        config()


def imported(path):
    """Take a run."""
    if refused := import_runs([path]).refused:
        raise DataError(refused[0])


def added(path, kind):
    """Add a file by its path on the Library page."""
    library.understand(library.add_path(str(path), kind))


def uploaded(path, kind):
    """Upload a file on the Library page."""
    with path.open("rb") as stream:
        library.understand(library.add_upload(stream, path.name, kind))


def digits():
    return idc.load_dataset("digits", "test", 2)


DOORS = {
    "a setup file on the command line": (".py", lambda path: commanded("check-network", "--setup", path)),
    "a setup file in Python": (".py", idc.open_setup),
    "a setup file in the file of a check": (".py", lambda path: checked(path, "setup")),
    "a setup file in the environment": (".py", watched),
    "the file of a check": (".toml", lambda path: commanded("check", path)),
    "a network in the file of a check": (".onnx", lambda path: checked(path, "model")),
    "data in the file of a check": (".npz", lambda path: checked(path, "data")),
    "a baseline in the file of a check": (".json", lambda path: checked(path, "baseline")),
    "the config file in the environment": (".toml", configured),
    "a network in the environment": (".onnx", lambda path: served(path, NETWORKS)),
    "data in the environment": (".npz", lambda path: served(path, DATA)),
    "a network on the command line": (".onnx", lambda path: commanded("check-network", "--model", path)),
    "data on the command line": (".npz", lambda path: commanded("analyze", "--data", path)),
    "a network in Python": (".onnx", lambda path: idc.load_model(str(path))),
    "data in Python": (".npz", lambda path: idc.load_dataset(str(path))),
    "weights in Python": (".safetensors", lambda path: idc.load_model("lenet1-digits", weights=path)),
    "a criterion in Python": (".npz", lambda path: idc.load_criterion(path, idc.load_model("lenet1-digits"))),
    "a network by its path in the library": (".onnx", lambda path: added(path, "network")),
    "data by their path in the library": (".npz", lambda path: added(path, "data")),
    "tests of one's own": (".npz", lambda path: custom_suite(path, digits())),
    "predictions of one's own": (".csv", own_evidence),
    "an import": (RESULT, imported),
    "a URL of a file": (".npz", lambda path: idc.load_dataset(f"file://{path}")),
    "a URL of this computer": (".npz", lambda path: idc.load_dataset(f"local://{path}")),
}
"""Every door by which a file is named: its ending, or name, and who comes in by it."""

SPECIAL = {"a pipe": os.mkfifo, "a device": lambda path: path.symlink_to("/dev/zero")}


def sparse(path, start=b"", size=3 << 30):
    """Write a file that takes no room on the disk and says that it is large."""
    path.write_bytes(start)
    os.truncate(path, size)
    return path


def network(path, nodes, sides, constants):
    """Write a network."""
    kind, numbers = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    made = [onnx.helper.make_node(name, inputs, outputs, **more) for name, inputs, outputs, more in nodes]
    graph = onnx.helper.make_graph(made, "g", [kind("x", numbers, sides)], [kind("y", numbers, None)], constants)
    opset = [onnx.helper.make_opsetid("", 17)]
    path.write_bytes(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString())
    return path


def whole(name, values):
    return onnx.helper.make_tensor(name, onnx.TensorProto.INT64, [len(values)], values)


def branching(path, shape, sides):
    """A network of a kilobyte that makes six large arrays of its input before it adds them up."""
    functions = ("Neg", "Exp", "Tanh", "Sin", "Cos", "Abs")
    nodes = [("Expand", ["x", "shape"], ["e"], {})]
    nodes += [(name, ["e"], [name], {}) for name in functions]
    nodes += [("Sum", list(functions), ["s"], {}), ("ReduceMax", ["s"], ["y"], {"axes": [0], "keepdims": 0})]
    return network(path, nodes, sides, [whole("shape", shape)])


def small(folder):
    return branching(folder / "branches.onnx", [1 << 24, 1, 4], ["n", 4])


def constants(path):
    """A network that makes six large arrays of nothing."""
    nodes = [("ConstantOfShape", ["shape"], [f"c{number}"], {}) for number in range(6)]
    nodes += [("Max", ["x", *(f"c{number}" for number in range(6))], ["y"], {})]
    return network(path, nodes, ["n", 1], [whole("shape", [1 << 26, 1])])


def connected(folder):
    """Run a network whose file does not say what it takes on the digits."""
    path = branching(folder / "any.onnx", [1 << 16, 1, 1, 28, 28], ["n", "a", "b", "c"])
    idc.load_model(open_network(NetworkFile(path), "digits").name)


def run_file(folder, tree, arrays=None, size=0):
    """Write a run with any tree under a checksum of no arrays, and arrays that lie in a sparse file."""
    facts = {"kind": "trace", "version": "0", "made": "2026-01-01T00:00:00+00:00", "seconds": 1.0}
    texts = {"facts": json.dumps(facts | {"settings": {}, "scores": {}}), "tree": tree}
    texts["checksum"] = result_file._checksum(texts, {})
    header = json.dumps({"__metadata__": texts, **(arrays or {})}).encode()
    return sparse(folder / RESULT, struct.pack("<Q", len(header)) + header, 8 + len(header) + size)


def texts(folder):
    long = {"items": ["<U200000000", [1], ["a"]]}
    imported(run_file(folder, json.dumps([long] * 8)))


def array(folder):
    size = 3 << 30
    imported(run_file(folder, "0", {"0": {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}}, size))


def values(folder):
    imported(run_file(folder, f"[{'[],' * 7_000_000}0]"))


class Endless(io.RawIOBase):
    """A stream of zeros that never ends."""

    def readable(self):
        return True

    def readinto(self, buffer):
        buffer[:] = bytes(len(buffer))
        return len(buffer)


class Zeros(BaseHTTPRequestHandler):
    """Answers with zeros that never end."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        with contextlib.suppress(OSError):
            while True:
                self.wfile.write(bytes(1 << 16))

    def log_message(self, *_):
        pass


def fetched(folder):
    with ThreadingHTTPServer(("127.0.0.1", 0), Zeros) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            idc.load_dataset(f"http://127.0.0.1:{server.server_port}/tests.npz")
        finally:
            server.shutdown()


def array_of_inputs(folder):
    np.save(folder / "y.npy", np.zeros(3))
    idc.load_dataset(str(sparse(folder / "x.npy", HEADER.ljust(127) + b"\n")))


HEADER = (
    b"\x93NUMPY\x01\x00\x76\x00" + f"{{'descr': '|u1', 'fortran_order': False, 'shape': (3, {1 << 30}), }}".encode()
)

HEAVY = {
    "six branches, by path": lambda folder: added(small(folder), "network"),
    "six branches, by upload": lambda folder: uploaded(small(folder), "network"),
    "six branches, in Python": lambda folder: idc.load_model(str(small(folder))),
    "six branches, once data are chosen": connected,
    "six constants": lambda folder: added(constants(folder / "constants.onnx"), "network"),
    "a network of 3 GiB": lambda folder: added(sparse(folder / "large.onnx"), "network"),
    "weights of 3 GiB": lambda folder: idc.load_model("lenet1-digits", weights=sparse(folder / "large.safetensors")),
    "a setup file of 3 GiB": lambda folder: checked(sparse(folder / "large.py"), "setup"),
    "a setup file of 3 GiB, in the environment": lambda folder: watched(sparse(folder / "large.py")),
    "the file of a check of 3 GiB": lambda folder: commanded("check", sparse(folder / "large.toml")),
    "a baseline of 3 GiB": lambda folder: checked(sparse(folder / "large.json"), "baseline"),
    "an array of 3 GiB": array_of_inputs,
    "a table of 3 GiB": lambda folder: idc.load_dataset(str(sparse(folder / "large.csv"))),
    "predictions of 3 GiB": lambda folder: own_evidence(sparse(folder / "large.csv")),
    "a run of long texts": texts,
    "a run of 3 GiB": array,
    "a run of many values": values,
    "an upload without end": lambda folder: library.add_upload(Endless(), "tests.npz", "data"),
    "a URL without end": fetched,
}
"""Files that ask for more memory, or more of the disk, than anything may take."""


def cases(work):
    """Yield every case by its name, as a function of nothing."""
    for number, (name, (ending, give)) in enumerate(DOORS.items()):
        for what, make in SPECIAL.items():
            folder = work / f"{number} {what}"
            folder.mkdir()
            path = folder / (ending if ending == RESULT else f"given{ending}")
            make(path)
            yield f"{name}: {what}", lambda give=give, path=path: give(path)
    for number, (name, give) in enumerate(HEAVY.items()):
        folder = work / f"heavy {number}"
        folder.mkdir()
        yield name, lambda give=give, folder=folder: give(folder)


def outcome(give):
    """Return what is said where something is refused; raise nothing."""
    try:
        with no_longer_than(SECONDS):
            give()
    except IdcError as error:
        return str(error)
    except Hang:
        return f"!no end after {SECONDS} s"
    except BaseException as error:
        return f"!{type(error).__name__}: {error}"
    return "!taken"


def main():
    """Give all of them, and tell what came of it."""
    work = Path(sys.argv[1])
    (work / "config.toml").write_text(LIMITS, encoding="utf-8")
    os.environ |= {"IDC_HOME": str(work / "home"), "IDC_CONFIG": str(work / "config.toml")}
    torch.set_num_threads(1)
    digits()
    held = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_DATA, (held + MOST_DATA, resource.RLIM_INFINITY))
    report = {}
    for name, give in cases(work):
        sys.stderr.write(f"{name}\n")  # the last one, where the process is taken down
        report[name] = outcome(give), peak()
    (work / "report.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main()
