"""Files appear whole or not at all, with the rights any other new file has, and nothing is left behind."""

import os
import subprocess
import sys

import pytest

from idc_core.base.files import cache_folder, keeping, partial_file, sweep, write_whole
from idc_core.errors import DataError


def test_a_file_is_replaced_whole_and_alone(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("an older one")
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]
    other = tmp_path / "b.txt"
    other.write_text("")
    assert path.stat().st_mode == other.stat().st_mode  # readable by those who read other files


def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("an older one")

    def fail():
        with partial_file(tmp_path) as partial:
            partial.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert path.read_text() == "an older one"
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_is_taken_by_a_folder_is_an_error(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        write_whole(tmp_path / "taken", b"new")
    assert [file.name for file in tmp_path.iterdir()] == ["taken"]


def test_a_folder_that_cannot_be_made_is_explained(tmp_path):
    (tmp_path / "taken").write_text("")
    refused = pytest.raises(DataError, match=r"Finished work cannot be kept in .*taken.*IDC_HOME")
    with refused, keeping(tmp_path / "taken", "Finished work"):
        pytest.fail("there is no folder to write into")


def test_the_cache_is_where_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.setenv("IDC_HOME", "")
    assert cache_folder().name == "idc-studio"


def test_only_what_killed_processes_left_is_swept(tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    script = (
        "import os, sys; from pathlib import Path; from idc_core.base import files\n"
        "with files.partial_file(Path(sys.argv[1])) as path:\n"
        "    path.write_text('half'); folder = files.partial_folder(Path(sys.argv[1])); os._exit(9)"
    )
    (tmp_path / "deep" / "down").mkdir(parents=True)
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "deep" / "down")], check=False)
    left = set((tmp_path / "deep" / "down").iterdir())
    assert len(left) == 2
    other = tmp_path / ".00000000-1-0123456789abcdef.partial"
    other.write_text("of another machine, and young")
    with partial_file(tmp_path) as mine:
        mine.write_text("half")
        assert set(sweep()) == left
        assert mine.exists()
    assert other.exists()
    os.utime(other, (0, 0))
    assert sweep() == [other]
    assert not other.exists()
