import io
import os
import tarfile
import time
import zipfile
from http.client import IncompleteRead
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pytest

from idc_core.datasets import cifar10, download, load_dataset, mnist, newsgroups
from idc_core.datasets.newsgroups import GROUPS
from idc_core.datasets.openml import openml_source
from idc_core.errors import CancelledError, DataError
from tests.datasets.dataset_files import CIFAR_ZIP, NEWS_ZIP, cifar_members, news_members, tree, write_mnist, write_zip

COUNTS = {"train": (3,) * 10, "test": (2,) * 10}
PIXELS = np.random.default_rng(0).integers(0, 256, (50, 28 * 28))
LABELS = np.array([str(label) for label in [*range(10)] * 5], object)


@pytest.fixture
def openml(places, monkeypatch):
    """A stand-in for `fetch_openml`: .data and .target can be changed, .calls counts."""
    state = SimpleNamespace(data=PIXELS.astype(float), target=LABELS, calls=0, error=None)

    def fetch(name, *, data_home, **options):
        state.calls += 1
        with open(os.path.join(data_home, "half.arff"), "wb") as stream:  # noqa: PTH118, PTH123
            stream.write(b"half of it")
        if state.error is not None:
            raise state.error
        return SimpleNamespace(data=state.data, target=state.target)

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    monkeypatch.setattr(mnist, "_SOURCE", openml_source("mnist_784", (28, 28), COUNTS, 15))
    return state


def test_what_is_missing_is_downloaded_once_and_read_from_the_cache_afterwards(places, openml):
    home = places[1]
    told = []
    train = load_dataset("mnist", "train", on_progress=lambda *step: told.append(step))
    test = load_dataset("mnist", "test")
    np.testing.assert_array_equal(train.inputs.reshape(30, -1), (PIXELS[:30] / 255.0).astype(np.float32))
    np.testing.assert_array_equal(test.inputs.reshape(20, -1), (PIXELS[30:] / 255.0).astype(np.float32))
    assert test.targets.tolist() == [*range(10)] * 2
    assert openml.calls == 1
    assert sorted(path.name for path in home.iterdir()) == ["mnist"]
    assert len(list((home / "mnist").iterdir())) == 5
    assert ("Downloading MNIST, MB") in {label for _, _, label in told}


@pytest.mark.parametrize(
    "error",
    [
        URLError("Name or service not known"),
        ValueError("md5 checksum of local file does not match"),
        IncompleteRead(b"half"),
        EOFError("ended"),
        ImportError("pandas is missing"),
        PermissionError(13, "Permission denied"),
    ],
)
def test_a_failed_download_is_one_sentence_and_leaves_nothing(places, openml, error):
    openml.error = error
    with pytest.raises(DataError, match=r"MNIST is not on this computer and could not be downloaded \(.*set IDC_DATA"):
        load_dataset("mnist")
    assert tree(places[1]) == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: setattr(s, "target", np.sort(LABELS)), "train images per class"),
        (lambda s: setattr(s, "target", np.array(["x"] * 50, object)), "invalid literal"),
        (lambda s: setattr(s, "data", s.data[:, :-1]), r"shape \(50, 783\)"),
        (lambda s: setattr(s, "data", s.data + 1), "whole numbers in 0..255"),
        (lambda s: setattr(s, "data", s.data - 1), "whole numbers in 0..255"),
        (lambda s: setattr(s, "data", s.data / 255), "whole numbers in 0..255"),
        (lambda s: s.data.__setitem__((7, 7), np.nan), "whole numbers in 0..255"),
        (lambda s: (setattr(s, "data", s.data[:49]), setattr(s, "target", LABELS[:49])), "test images per class"),
        (
            lambda s: (setattr(s, "data", np.r_[s.data, s.data]), setattr(s, "target", np.r_[LABELS, LABELS])),
            "100 images, not 50",
        ),
    ],
)
def test_a_download_of_other_content_is_refused_and_leaves_nothing(places, openml, change, message):
    change(openml)
    with pytest.raises(DataError, match=message):
        load_dataset("mnist")
    assert tree(places[1]) == {}


def test_an_interruption_leaves_nothing(places, openml):
    openml.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        load_dataset("mnist")
    assert tree(places[1]) == {}


def test_a_stopped_download_leaves_nothing_even_if_it_goes_on_writing(places, monkeypatch):
    home = places[1]
    go_on, done = Event(), Event()

    def make(scratch, ready):
        (scratch / "half").write_bytes(b"half")
        go_on.wait(30)
        scratch.mkdir(parents=True, exist_ok=True)
        (scratch / "whole").write_bytes(b"whole")
        done.set()

    monkeypatch.setattr(mnist, "_SOURCE", download.Source(15, make))
    with pytest.raises(CancelledError, match="Downloading MNIST"):
        load_dataset("mnist", on_progress=lambda *step: False)
    assert tree(home) == {}
    go_on.set()
    assert done.wait(30)
    deadline = time.monotonic() + 30
    # Only the folder itself is listed: what is in it is being removed meanwhile, from the inside out.
    while any(home.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert tree(home) == {}


def test_a_connection_that_never_answers_is_given_up(places, monkeypatch):
    silence = Event()
    monkeypatch.setattr(mnist, "_SOURCE", download.Source(15, lambda scratch, ready: silence.wait(30)))
    monkeypatch.setattr(download, "_PATIENCE_SECONDS", 0)
    with pytest.raises(DataError, match="nothing came for 0 s"):
        load_dataset("mnist")
    silence.set()


def test_a_cached_file_that_changed_is_refused(places, openml):
    load_dataset("mnist")
    path = places[1] / "mnist" / "t10k-images-idx3-ubyte.gz"
    path.write_bytes(write_mnist(places[1] / "other").joinpath(path.name).read_bytes())
    with pytest.raises(DataError, match=f"{path.name} is no longer the file that was downloaded.*delete"):
        load_dataset("mnist")


def test_files_put_into_the_cache_by_hand_are_read(places):
    write_mnist(places[1] / "mnist")
    assert len(load_dataset("mnist")) == 40


def test_a_folder_in_the_way_is_said(places, openml):
    (places[1] / "mnist").mkdir()
    (places[1] / "mnist" / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match="mnist is in the way: delete it"):
        load_dataset("mnist")
    assert list(tree(places[1]).values()) == [False, b"mine"]


def test_the_data_folder_goes_before_the_cache(places, openml):
    load_dataset("mnist")
    write_mnist(places[0] / "mnist")
    assert len(load_dataset("mnist")) == 40


def test_without_settings_the_platforms_cache_is_used(tmp_path, monkeypatch):
    monkeypatch.delenv("IDC_DATA", raising=False)
    monkeypatch.delenv("IDC_HOME", raising=False)
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    write_mnist(tmp_path / "idc-studio" / "mnist")
    assert len(load_dataset("mnist")) == 40


def test_two_downloads_at_once_do_not_disturb_each_other(places, openml):
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


def test_what_a_killed_process_left_is_swept_away_by_the_next_download(places, openml):
    old, young = places[1] / ".partial-mnist-old", places[1] / ".partial-mnist-young"
    for folder in (old, young):
        folder.mkdir()
        (folder / "half").write_bytes(b"half")
    os.utime(old, (0, 0))
    load_dataset("mnist")
    assert sorted(path.name for path in places[1].iterdir()) == [".partial-mnist-young", "mnist"]


def test_cifar_is_downloaded_in_original_pixels(places, openml, monkeypatch):
    pixels = np.random.default_rng(1).integers(0, 256, (50, 3 * 32 * 32))
    openml.data = pixels
    monkeypatch.setattr(cifar10, "_SOURCE", openml_source("CIFAR_10", (3, 32, 32), COUNTS, 200))
    data = load_dataset("cifar10", "test")
    np.testing.assert_array_equal(data.inputs.reshape(20, -1), (pixels[30:] / 255.0).astype(np.float32))
    write_zip(places[0] / "cifar10" / CIFAR_ZIP, cifar_members(1))
    assert len(load_dataset("cifar10", "test")) == 10


def test_newsgroups_are_downloaded_into_the_layout_that_is_read(places, monkeypatch):
    data, home = places
    members = news_members(2)

    def fetch(*, data_home, subset, categories, shuffle, n_retries):
        assert categories == list(GROUPS)
        names = [name for name in members if f"-{subset}/" in name]
        return SimpleNamespace(
            data=[members[name].decode("latin-1") for name in names],
            target=np.array([GROUPS.index(name.split("/")[1]) for name in names]),
            target_names=list(GROUPS),
            filenames=np.array([f"{data_home}/{name}" for name in names]),
        )

    monkeypatch.setattr("sklearn.datasets.fetch_20newsgroups", fetch)
    with pytest.raises(DataError, match="12 train messages came, not 3563"):
        load_dataset("20newsgroups")
    assert tree(home) == {}
    monkeypatch.setattr(newsgroups, "_MESSAGES", {"train": 12, "test": 12})
    downloaded = load_dataset("20newsgroups", "train")
    write_zip(data / "20newsgroups" / NEWS_ZIP, members)
    assert load_dataset("20newsgroups", "train").fingerprint == downloaded.fingerprint


def test_the_real_fetcher_of_the_newsgroups_brings_the_messages_unchanged(places, monkeypatch):
    """Everything of scikit-learn but the connection: unpacking, reading, choosing the groups."""
    home = places[1]
    members = {**news_members(2), "20news-bydate-train/alt.atheism/1": b"x", "20news-bydate-test/alt.atheism/1": b"x"}
    members["20news-bydate-test/sci.med/1001"] = "S: x\n\nd\xe9j\xe0 vu\r\n\tand \x85 more".encode("latin-1")

    def fetch_remote(remote, dirname, n_retries, delay):
        path = Path(dirname) / remote.filename
        with tarfile.open(path, "w:gz") as archive:
            for name, content in members.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        return str(path)

    monkeypatch.setattr("sklearn.datasets._twenty_newsgroups._fetch_remote", fetch_remote)
    monkeypatch.setattr(newsgroups, "_MESSAGES", {"train": 12, "test": 12})
    load_dataset("20newsgroups")
    with zipfile.ZipFile(home / "20newsgroups" / NEWS_ZIP) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    assert found == {name: content for name, content in members.items() if "alt.atheism" not in name}


def test_udacity_has_no_source_and_says_so(places):
    with pytest.raises(DataError, match=r"no public source.*udacity/udacity-center-100x100\.zip"):
        load_dataset("udacity")
