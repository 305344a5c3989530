"""Every kind of wrong or hostile file, given to the library as a person does: a sentence, and nothing else happens."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from idc_core import library
from idc_core.errors import IdcError
from tests.library.small_files import digits_onnx
from tests.library.wrong_data import DATA
from tests.library.wrong_networks import FOLDERS, NETWORKS
from tests.models.huggingface.folders import text_folder

ROOT = Path(__file__).resolve().parents[2]
KINDS = {"network": NETWORKS, "folder": FOLDERS, "data": DATA}
ALL = [(kind, name) for kind, table in KINDS.items() for name in table]
LONGEST = 2_000


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return text_folder(tmp_path_factory.mktemp("good"), "bert")


def made(kind, name, folder, good):
    """Make one of them; return its path and what must be said."""
    make, said = KINDS[kind][name]
    folder.mkdir()
    if kind == "folder":
        path = shutil.copytree(good, folder / "bert")
        make(path)
        return path, said
    return make(folder), said


def given(path, kind):
    """Add and read a file as the page does; a network's zip file as an upload."""
    kind = "data" if kind == "data" else "network"
    if kind == "network" and path.suffix == ".zip":
        with path.open("rb") as stream:
            return library.understand(library.add_upload(stream, path.name, kind))
    return library.understand(library.add_path(str(path), kind))


def files(folder):
    return sorted((str(one), one.stat().st_size) for one in folder.rglob("*") if one.is_file())


def test_there_are_at_least_sixty():
    assert len(ALL) >= 60


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("kind", "name"), ALL, ids=[f"{kind}, {name}" for kind, name in ALL])
def test_it_is_refused_or_read_in_a_sentence(home, tmp_path, good, kind, name):
    path, said = made(kind, name, tmp_path / "given", good)
    before = files(tmp_path / "given")
    if isinstance(said, tuple):
        assert given(path, kind).data.class_names == said
    elif said.startswith("values"):
        assert said in given(path, kind).data.notes
    else:
        with pytest.raises(IdcError) as caught:
            given(path, kind)
        sentence = str(caught.value)
        assert said in sentence
        assert path.name in sentence
        assert sentence.endswith(".")
        assert len(sentence) < LONGEST
        assert sentence.isprintable()
    assert files(tmp_path / "given") == before, "nothing is executed, and nothing written beside it"
    assert {one.name for one in tmp_path.iterdir()} <= {"given", "home"}


def main(folder):
    """Give all of them to one process, then a good network; tell the memory that it took at most."""
    good = text_folder(folder / "good", "bert")
    tried = 0
    for number, (kind, name) in enumerate(ALL):
        path, said = made(kind, name, folder / str(number), good)
        try:
            given(path, kind)
        except IdcError:
            tried += isinstance(said, str)
    entry = library.understand(library.add_path(str(_good_network(folder)), "network"))
    status = Path("/proc/self/status").read_text()
    peak = int(status.split("VmHWM:")[1].split()[0]) >> 10
    sys.stdout.write(json.dumps([tried, entry.network.parameters, peak]))


def _good_network(folder):
    (folder / "good.onnx").write_bytes(digits_onnx())
    return folder / "good.onnx"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the child process measures itself as only Linux can")
def test_one_process_reads_them_all_in_less_than_a_gigabyte(tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "home"))
    command = "import sys; from pathlib import Path; from tests.library.test_wrong_files import main; "
    done = subprocess.run(
        [sys.executable, "-c", f"{command}main(Path(sys.argv[1]))", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    refused, parameters, peak = json.loads(done.stdout.splitlines()[-1])
    assert refused >= 80
    assert parameters == 784 * 12 + 12 * 10
    assert peak < 1024
