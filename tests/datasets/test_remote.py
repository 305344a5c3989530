"""Data by URL: fetched once per content, by whoever reads them; never because a visitor asks."""

import io
import json
import os
import pickle

import fsspec
import numpy as np
import pytest

from idc_core import library
from idc_core.cli import _make_parser, main
from idc_core.cli.executors import _SameFiles
from idc_core.cli.own_options import open_paths
from idc_core.datasets import DATASETS, load_dataset
from idc_core.datasets.remote import local_path
from idc_core.errors import CancelledError, DataError
from idc_core.gate.settings import read_gate
from idc_core.models import MODELS
from idc_core.opening import server_files
from idc_core.work.source import Opener, Source
from studio.state.setup import parse
from tests.datasets.test_picture_folders import loaded, made, write
from tests.library.small_files import digits_onnx

URL = "memory://bucket/tests.npz"


def arrays(seed=0):
    """The content of a file with pictures of the digits' shape."""
    content = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 256, (60, 28, 28), np.uint8)
    np.savez(content, x=pixels, y=np.arange(60) % 10)
    return content.getvalue()


@pytest.fixture
def memory(places):
    """A file system of this process; registries are as before at the end."""
    before = dict(MODELS), dict(DATASETS)
    system = fsspec.filesystem("memory")
    system.pipe("/bucket/tests.npz", arrays())
    yield system
    system.store.clear()
    for registry, kept in zip((MODELS, DATASETS), before, strict=True):
        registry.clear()
        registry.update(kept)


@pytest.fixture
def opened(memory, monkeypatch):
    """Names of what is read from that file system."""
    names, really = [], memory.open
    monkeypatch.setattr(memory, "open", lambda path, *mode, **how: names.append(path) or really(path, *mode, **how))
    return names


def kept(places):
    """What is in the cache folder of fetched files."""
    return [one for one in (places[1] / "fetched").rglob("*") if one.is_file() and one.name != ".lock"]


def test_a_file_is_what_it_is_by_its_path_and_fetched_once(places, opened, tmp_path):
    (tmp_path / "here.npz").write_bytes(arrays())
    told = []
    found = load_dataset(URL, on_progress=lambda *now: told.append(now))
    expected = load_dataset(str(tmp_path / "here.npz"))
    assert found.fingerprint == expected.fingerprint
    assert found.name == "tests"
    assert np.array_equal(found.inputs, expected.inputs)
    assert load_dataset(URL, "train").name == "tests"
    assert opened == ["/bucket/tests.npz"]
    assert told[0][2] == "Fetching tests.npz, MB"


def test_changed_content_takes_the_place_of_what_was_kept(places, memory):
    before = load_dataset(URL).fingerprint
    memory.pipe("/bucket/tests.npz", arrays(1))
    assert load_dataset(URL).fingerprint != before
    assert [one.read_bytes() for one in kept(places)] == [arrays(1)]


def test_a_folder_of_pictures_becomes_one_file(places, memory, tmp_path):
    files = made(("cat", "dog"))
    here = loaded(write(tmp_path / "here", files))
    for name, content in {**files, "cat/notes.txt": b"x"}.items():
        memory.pipe(f"/photos/{name}", content)
    there = load_dataset("memory://photos", "train")
    assert there.fingerprint == here.fingerprint
    assert there.class_names == ("cat", "dog")
    assert [one.name for one in kept(places)] == ["photos.zip"]


def test_what_is_told_by_name_and_size_alone_is_fetched_each_time(places, memory, monkeypatch):
    find = memory.find

    def bare(path, **how):
        return {
            file: {key: about[key] for key in ("name", "size", "type")} for file, about in find(path, **how).items()
        }

    monkeypatch.setattr(memory, "find", bare)
    for content in (arrays(), arrays(1)):
        assert len(content) == len(arrays())
        memory.pipe("/bucket/tests.npz", content)
        assert local_path(URL).read_bytes() == content


def test_over_http_a_mark_tells_whether_it_is_fetched_again(places, memory, server):
    server.files, server.head = {"tests.npz": arrays()}, {"ETag": '"1"'}
    url = f"{server.url}tests.npz?key=1"
    server.files["tests.npz?key=1"] = arrays()
    first = local_path(url)
    assert first.name == "tests.npz"
    when = first.stat().st_mtime_ns
    assert local_path(url) == first
    assert first.stat().st_mtime_ns == when
    server.files["tests.npz?key=1"], server.head = arrays(1), {"ETag": '"2"'}
    assert local_path(url).read_bytes() == arrays(1)
    server.head = {}
    unmarked = local_path(url)
    server.files["tests.npz?key=1"] = arrays(2)
    assert local_path(url) == unmarked
    assert unmarked.read_bytes() == arrays(2)
    assert kept(places) == [unmarked]


def test_a_transfer_that_breaks_off_or_is_stopped_leaves_nothing(places, memory, server):
    server.files, server.cut = {"tests.npz": arrays()}, 1_000
    with pytest.raises(DataError, match=r"tests\.npz' cannot be read"):
        local_path(f"{server.url}tests.npz")
    with pytest.raises(CancelledError):
        local_path(URL, lambda *_: False)
    assert kept(places) == []


def test_a_file_here_is_not_copied(places, tmp_path):
    (tmp_path / "my tests.npz").write_bytes(arrays())
    assert local_path((tmp_path / "my tests.npz").as_uri()) == tmp_path / "my tests.npz"
    assert not (places[1] / "fetched").exists()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("s3://bucket/tests.npz", f"not installed: pip install s3fs fsspec=={fsspec.__version__}"),
        ("sftp://host/tests.npz", r'pip install "fsspec\[sftp\]"'),
        ("nowhere://host/tests.npz", "Protocol not known"),
        ("memory://absent.npz", "There is nothing at 'memory://absent.npz'"),
        ("memory://bucket/setup.py", "is no data"),
        ("memory://bucket", "holds no pictures"),
        ("http://127.0.0.1:9/tests.npz", "cannot be read .*check the URL"),
        ("http://127.0.0.1:9/photos", r"needs to be a \.zip"),
    ],
)
def test_what_cannot_be_fetched_is_refused_in_a_sentence(places, memory, url, said):
    memory.pipe("/bucket/setup.py", b"raise SystemExit")
    with pytest.raises(DataError, match=said) as caught:
        load_dataset(url)
    assert len(str(caught.value).splitlines()) == 1


def test_a_message_holds_no_password(places, server):
    for url in (
        server.url.replace("//", "//me:secret@") + "tests.npz?key=secret",
        "http://me:secret@127.0.0.1:9/a.npz",
    ):
        with pytest.raises(DataError, match=r"'http://127\.0\.0\.1:\d+/\w+\.npz' cannot be read") as caught:
            local_path(url)
        assert "secret" not in str(caught.value)


def test_more_than_the_limit_is_not_fetched(places, memory, opened):
    (places[1] / "config.toml").write_text("[limits]\nfetched_mib = 1\n")
    memory.store["/bucket/tests.npz"].write(bytes(2 << 20))
    with pytest.raises(DataError, match="fetched_mib"):
        local_path(URL)
    assert opened == []


def test_a_worker_fetches_for_itself(places, memory, opened, tmp_path, monkeypatch):
    arguments = _make_parser().parse_args(["analyze", "--data", URL])
    open_paths(arguments)
    source = Source("lenet5-digits", "tests", prepare=_SameFiles((), arguments.own_files.to_json()))
    sent = pickle.dumps(source)
    assert URL.encode() in sent
    assert len(sent) < 1_000
    del DATASETS["tests"]
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "another"))
    assert Opener()(pickle.loads(sent)).data.name == "tests"  # noqa: S301 (as Ray sends it)
    assert opened == 2 * ["/bucket/tests.npz"]


def test_a_command_finds_the_same_by_url_on_an_engine(places, memory, tmp_path):
    (tmp_path / "tests.npz").write_bytes(arrays())
    found = []
    for place, engine in ((URL, ("--engine", "local")), (str(tmp_path / "tests.npz"), ())):
        file = tmp_path / "found.json"
        words = ("analyze", "--data", place, "--limit-train", "200", "--m", "2", "--json", str(file))
        assert main((*words, *engine)) == 0
        found.append(json.loads(file.read_text(encoding="utf-8")))
    assert found[0]["covered"] == found[1]["covered"]
    assert found[0]["test"]["fingerprint"] == found[1]["test"]["fingerprint"]


def test_a_server_and_a_check_take_what_their_owner_names(places, memory, tmp_path, monkeypatch):
    arguments = _make_parser().parse_args(["studio", URL])
    open_paths(arguments)
    del DATASETS["tests"]
    monkeypatch.setenv(server_files.VARIABLE, arguments.own_files.to_json())
    assert server_files.open_once() == ([], "")
    assert "tests" in DATASETS
    file = tmp_path / "idc.toml"
    check = f'[[check]]\nmodel = "lenet5-digits"\ndata = "{URL}"\n'
    file.write_text(f'{check}[[check.limit]]\nkind = "accuracy"\nat_least = 0.1\n')
    assert read_gate(file).checks[0].enter(tmp_path) == ("lenet5-digits", "tests")


def test_a_visitor_names_none(memory, opened):
    assert parse({"model": "lenet5-digits", "data": URL}).data == "digits"
    entry = library.understand(library.add_upload(io.BytesIO(digits_onnx()), "my net.onnx", "network"))
    with pytest.raises(DataError, match="no dataset"):
        library.connect(entry, library.NetworkSettings(URL))
    with pytest.raises(DataError, match="memory:"):
        library.add_path(URL, "data")
    assert opened == []
    assert not os.path.lexists("memory:")
