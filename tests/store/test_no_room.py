"""Without room, or in a folder that cannot be written to, a sentence says so; what is there can still be read."""

import contextlib
import ctypes
import io
import multiprocessing
import os
import resource
from pathlib import Path

import pytest
import torch

from idc_core import library, runs, store
from idc_core.cli import main
from idc_core.datasets import load_dataset
from idc_core.errors import DataError
from idc_core.store import notes
from idc_core.suites import SAVED, change_saved, save_suite

FORK = multiprocessing.get_context("fork")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A home with one of each thing."""
    place = tmp_path_factory.mktemp("no-room")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IDC_HOME", str(place / "home"))
        upload()
        suite()
        note()
        store.kept("sums", (1,), lambda: 1, settings={"network": "a", "tests": "b", "layer": "c"})
        mark()
        assert len(runs.find_runs()) == 1
        yield place


def digits():
    return load_dataset("digits", "test", 40)


def upload():
    library.add_upload(io.BytesIO(b"1,2\n3,4\n"), "some.csv", "data")


def suite():
    save_suite("Mine", digits().inputs[:3], digits().targets[:3], like=digits())


def note():
    notes.write_note("Text", "test 3", "LeNet-5", {"input": "3"})


def mark():
    store.mark(run_id(), store.Mark("name", pinned=True))


def run_id():
    return next(path.stem for path in store.results_folder().glob("*.safetensors"))


CHANGES = {
    "upload": upload,
    "suite": suite,
    "note": note,
    "mark": mark,
    "name": lambda: library.rename(next(iter(library.ENTRIES.listed().values())), "Other"),
    "suite's name": lambda: change_saved(next(iter(SAVED.listed())), label="Other"),
}
DELETIONS = {
    "entry": lambda: library.delete(next(iter(library.ENTRIES.listed()))),
    "suite": lambda: SAVED.delete(next(iter(SAVED.listed()))),
    "note": lambda: notes.delete_note(notes.kept_notes()[0].name),
    "run": lambda: store.delete(run_id()),
    "mark": lambda: store.mark(run_id(), store.Mark()),
}


def full():
    """No file can grow, whatever folder it is in: the system's own refusal, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def read_only():
    """Nothing in the home can be written to, by root neither: it gives up its rights over files of others."""
    for path in every_folder():
        path.chmod(0o555)
    ctypes.CDLL(None).capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)())


def every_folder():
    home = Path(os.environ["IDC_HOME"])
    return [home, *(path for path in home.rglob("*") if path.is_dir())]


def told(trouble, work):
    """Do something in a process of its own that has a trouble; return the sentence that it ends with, or its answer."""
    here, there = FORK.Pipe(duplex=False)

    def tell():
        torch.set_num_threads(1)
        trouble()
        try:
            there.send(work())
        except DataError as error:
            there.send(error)
        except BaseException as error:
            there.send(f"{type(error).__name__}: {error}")

    child = FORK.Process(target=tell)
    child.start()
    assert here.poll(60)
    answer = here.recv()
    child.join()
    for path in every_folder():
        path.chmod(0o755)
    return answer


@pytest.mark.parametrize("trouble", [full, read_only])
@pytest.mark.parametrize("change", CHANGES)
def test_what_cannot_be_kept_is_told_in_a_sentence(folder, trouble, change):
    said = told(trouble, CHANGES[change])
    assert isinstance(said, DataError), said
    assert "cannot be kept in" in str(said)
    assert "IDC_HOME" in str(said)
    assert not list(folder.rglob("*.partial"))


@pytest.mark.parametrize("deletion", DELETIONS)
def test_what_cannot_be_deleted_is_told_in_a_sentence(folder, deletion):
    said = told(read_only, DELETIONS[deletion])
    assert isinstance(said, DataError), said
    assert "cannot be" in str(said)


@pytest.mark.parametrize("trouble", [full, read_only])
def test_what_is_there_is_read(folder, trouble):
    def look():
        listed = [len(library.ENTRIES.listed()), len(SAVED.listed()), len(notes.kept_notes()), len(runs.find_runs())]
        return [*listed, store.find(store.place("sums", (1,))), next(iter(store.marks().values())).name]

    store.kept("sums", (2,), lambda: 2, settings={"network": "a", "tests": "b", "layer": "c"})
    assert told(trouble, look) == [1, 1, 1, 2, 1, "name"]
    store.place("sums", (2,)).unlink()


@pytest.mark.parametrize("trouble", [full, read_only])
def test_a_result_comes_all_the_same(folder, trouble):
    def make():
        problems = []
        return store.kept("sums", (3,), lambda: 3, on_problem=problems.append), len(problems)

    assert told(trouble, make) == (3, 1)


@pytest.mark.slow
def test_a_report_is_written_where_the_home_is_read_only_and_refused_on_a_full_disk(folder, tmp_path):
    def report(name):
        words = ("report", "--model", "lenet5-digits", "--limit-test", "40", "--limit-train", "100", "--out")
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
            return main([*words, str(tmp_path / name)]), said.getvalue()

    assert told(read_only, lambda: report("report.html"))[0] == 0
    assert (tmp_path / "report.html").stat().st_size > 10_000
    status, said = told(full, lambda: report("other.html"))
    assert status == 2
    assert "cannot be written" in said
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
