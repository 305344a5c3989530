import hashlib
import io
import os
import tarfile
import zipfile
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from idc_core.datasets import cifar10, fashion_mnist, load_dataset, mnist, newsgroups, sources
from idc_core.datasets.idx import idx_files, mnist_layout
from idc_core.errors import CancelledError, DataError
from tests.datasets.dataset_files import CIFAR_ZIP, NEWS_ZIP, cifar_members, news_members, tree, write_mnist, write_zip

NAMES = (*idx_files("train", 3), *idx_files("test", 3))
KINDS = ("train_images", "train_labels", "test_images", "test_labels")


def sha256(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def remote_mnist(places, server, tmp_path, monkeypatch):
    """The four files of a small MNIST on a server, and their hashes in the code."""
    folder = write_mnist(tmp_path / "remote")
    server.files = {name: (folder / name).read_bytes() for name in NAMES}
    pinned = [(sha256(server.files[name]), 1) for name in NAMES]

    monkeypatch.setattr(mnist, "_SOURCE", mnist_layout(server.url, **dict(zip(KINDS, pinned, strict=True))))
    return server


def packed(members):
    """A tar.gz file of members by name."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def offer(server, monkeypatch, module, name, content):
    """Put one file on the server and pin its hash in the source of a dataset."""
    server.files = {name: content}
    remote = sources.RemoteFile(server.url + name, sha256(content), 1)
    monkeypatch.setattr(module, "_SOURCE", sources.Source((remote,), module._SOURCE.convert))


@pytest.mark.parametrize("source", [mnist._SOURCE, fashion_mnist._SOURCE, cifar10._SOURCE, newsgroups._SOURCE])
def test_every_download_is_encrypted_and_has_its_hash_in_the_code(source):
    for file in source.files:
        assert file.url.startswith("https://")
        assert len(bytes.fromhex(file.sha256)) == 32


@pytest.mark.skipif(not (Path(os.environ.get("IDC_DATA", "")) / "mnist").is_dir(), reason="IDC_DATA has no mnist/")
def test_the_pinned_hashes_of_mnist_are_those_of_the_real_files():
    folder = Path(os.environ["IDC_DATA"]) / "mnist"
    for file in mnist._SOURCE.files:
        content = (folder / file.name).read_bytes()
        assert sha256(content) == file.sha256
        assert len(content) <= file.megabytes << 20


def test_what_is_missing_is_downloaded_once_and_read_from_the_cache_afterwards(places, remote_mnist, capfd):
    home = places[1]
    told = []
    train = load_dataset("mnist", "train", on_progress=lambda *step: told.append(step))
    test = load_dataset("mnist", "test")
    assert (len(train), len(test)) == (60, 40)
    assert remote_mnist.asked == [f"/{name}" for name in NAMES]
    assert sorted(path.name for path in home.iterdir()) == ["mnist"]
    assert len(list((home / "mnist").iterdir())) == 5
    downloading = [step for step in told if step[2] == "Downloading MNIST, MB"]
    assert (downloading[0][:2], downloading[-1][:2]) == ((0, 4), (4, 4))
    assert capfd.readouterr() == ("", "")


def refuse(server, monkeypatch):
    monkeypatch.setattr(mnist, "_SOURCE", mnist_layout("http://127.0.0.1:9/", **dict.fromkeys(KINDS, ("00" * 32, 1))))


def withhold(server, monkeypatch):
    server.cut = 10


def change(server, monkeypatch):
    server.files[NAMES[3]] += b"x"


def forget(server, monkeypatch):
    del server.files[NAMES[3]]


def flood(server, monkeypatch):
    server.files[NAMES[1]] = bytes(3 << 20)


def forbid(server, monkeypatch):
    def denied(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pooch.retrieve", denied)


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        (refuse, r"the connection to 127\.0\.0\.1:9 failed"),
        (withhold, "the connection to .* failed"),
        (change, "t10k-labels-idx1-ubyte.gz is not the file it was"),
        (forget, "refused .*t10k-labels.* [(]404"),
        (flood, "sends more than the 1 MB expected"),
        (forbid, "Permission denied"),
    ],
)
def test_a_failed_download_is_one_sentence_and_leaves_nothing(places, remote_mnist, monkeypatch, trouble, message):
    trouble(remote_mnist, monkeypatch)
    with pytest.raises(DataError, match=r"MNIST is not on this computer and could not be downloaded \(.*set IDC_DATA"):
        load_dataset("mnist")
    with pytest.raises(DataError, match=message):
        load_dataset("mnist")
    assert tree(places[1]) == {}


def test_an_interruption_leaves_nothing(places, remote_mnist, monkeypatch):
    def interrupt(meter, count):
        raise KeyboardInterrupt

    monkeypatch.setattr(sources._Meter, "update", interrupt)
    with pytest.raises(KeyboardInterrupt):
        load_dataset("mnist")
    assert tree(places[1]) == {}


@pytest.mark.parametrize("steps", [1, 3, 6])
def test_a_stopped_download_leaves_nothing(places, remote_mnist, steps):
    told = []
    with pytest.raises(CancelledError, match="Downloading MNIST"):
        load_dataset("mnist", on_progress=lambda *step: told.append(step) or len(told) < steps)
    assert len(told) == steps
    assert tree(places[1]) == {}


def test_a_connection_that_never_answers_is_given_up(places, remote_mnist, monkeypatch):
    remote_mnist.silent = True
    monkeypatch.setattr(sources, "_PATIENCE_SECONDS", 0.2)
    with pytest.raises(DataError, match=r"nothing came from 127\.0\.0\.1:\d+ for 0.2 s"):
        load_dataset("mnist")
    assert tree(places[1]) == {}


def test_a_cached_file_that_changed_is_refused(places, remote_mnist):
    load_dataset("mnist")
    path = places[1] / "mnist" / "t10k-images-idx3-ubyte.gz"
    path.write_bytes(write_mnist(places[1] / "other", test=39).joinpath(path.name).read_bytes())
    with pytest.raises(DataError, match=f"{path.name} is no longer the file that was downloaded.*delete"):
        load_dataset("mnist")


def test_files_put_into_the_cache_by_hand_are_read(places):
    write_mnist(places[1] / "mnist")
    assert len(load_dataset("mnist")) == 40


def test_a_folder_in_the_way_is_said(places, remote_mnist):
    (places[1] / "mnist").mkdir()
    (places[1] / "mnist" / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match="mnist is in the way: delete it"):
        load_dataset("mnist")
    assert list(tree(places[1]).values()) == [False, b"mine"]


def test_the_data_folder_goes_before_the_cache(places, remote_mnist):
    load_dataset("mnist")
    write_mnist(places[0] / "mnist", test=30)
    assert len(load_dataset("mnist")) == 30


def test_without_settings_the_platforms_cache_is_used(tmp_path, monkeypatch):
    monkeypatch.delenv("IDC_DATA", raising=False)
    monkeypatch.delenv("IDC_HOME", raising=False)
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    write_mnist(tmp_path / "idc-studio" / "mnist")
    assert len(load_dataset("mnist")) == 40


def test_two_downloads_at_once_do_not_disturb_each_other(places, remote_mnist):
    found, failed = [], []

    def work():
        try:
            found.append(load_dataset("mnist").fingerprint)
        except Exception as error:
            failed.append(error)

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(found) == 4
    assert len(set(found)) == 1
    assert [path.name for path in places[1].iterdir()] == ["mnist"]


def test_files_that_appear_while_one_looks_are_not_called_incomplete(places, monkeypatch):
    """As when another process renames its finished download into place between two looks."""
    really = Path.is_file

    def look(path):
        there = really(path)
        if path.parent == places[1] / "mnist" and not there:
            write_mnist(path.parent)
        return there

    monkeypatch.setattr(Path, "is_file", look)
    assert len(load_dataset("mnist")) == 40


def test_what_a_killed_process_left_is_swept_away_by_the_next_download(places, remote_mnist):
    old, young = places[1] / ".partial-mnist-old", places[1] / ".partial-mnist-young"
    for folder in (old, young):
        folder.mkdir()
        (folder / "half").write_bytes(b"half")
    os.utime(old, (0, 0))
    load_dataset("mnist")
    assert sorted(path.name for path in places[1].iterdir()) == [".partial-mnist-young", "mnist"]


def test_cifar_is_downloaded_in_original_pixels(places, server, monkeypatch):
    records = np.random.default_rng(1).integers(0, 256, (60, 1 + 3 * 32 * 32), np.uint8)
    records[:, 0] = np.arange(60) % 10
    names = [name for batches in cifar10._BATCHES.values() for name in batches]
    batches = {
        f"cifar-10-batches-bin/{name}": part.tobytes() for name, part in zip(names, np.split(records, 6), strict=True)
    }
    offer(server, monkeypatch, cifar10, "cifar-10-binary.tar.gz", packed(batches))
    data, test = load_dataset("cifar10", "train"), load_dataset("cifar10", "test")
    np.testing.assert_array_equal(data.inputs.reshape(50, -1), (records[:50, 1:] / 255.0).astype(np.float32))
    np.testing.assert_array_equal(test.inputs.reshape(10, -1), (records[50:, 1:] / 255.0).astype(np.float32))
    assert data.targets.tolist() == [*range(10)] * 5
    write_zip(places[0] / "cifar10" / CIFAR_ZIP, cifar_members(2))
    assert len(load_dataset("cifar10", "test")) == 20


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no archive", "cannot be read"),
        (packed({"cifar-10-batches-bin/data_batch_1.bin": b"x"}), "cannot be read: .*data_batch_2"),
        (packed({f"cifar-10-batches-bin/{name}": b"x" for name in cifar10._BATCHES["train"]}), "cannot be read"),
    ],
)
def test_a_download_of_other_content_is_refused_and_leaves_nothing(places, server, monkeypatch, content, message):
    offer(server, monkeypatch, cifar10, "cifar-10-binary.tar.gz", content)
    with pytest.raises(DataError, match=message):
        load_dataset("cifar10")
    assert tree(places[1]) == {}


def test_newsgroups_are_downloaded_unchanged_into_the_layout_that_is_read(places, server, monkeypatch):
    data, home = places
    members = news_members(2)
    members["20news-bydate-test/sci.med/1001"] = "S: x\n\nd\xe9j\xe0 vu\r\n\tand \x85 more".encode("latin-1")
    others = {f"20news-bydate-{split}/alt.atheism/1": b"x" for split in ("train", "test")}
    offer(server, monkeypatch, newsgroups, "5975967", packed({**others, **members}))
    with pytest.raises(DataError, match="12 train messages came, not 3563"):
        load_dataset("20newsgroups")
    assert tree(home) == {}
    monkeypatch.setattr(newsgroups, "_MESSAGES", {"train": 12, "test": 12})
    downloaded = load_dataset("20newsgroups", "train")
    with zipfile.ZipFile(home / "20newsgroups" / NEWS_ZIP) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == members
    write_zip(data / "20newsgroups" / NEWS_ZIP, members)
    assert load_dataset("20newsgroups", "train").fingerprint == downloaded.fingerprint


def test_udacity_has_no_source_and_says_so(places):
    with pytest.raises(DataError, match=r"no public source.*udacity/udacity-center-100x100\.zip"):
        load_dataset("udacity")
