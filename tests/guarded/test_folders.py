"""Folders from outside: what is listed, and links that lead out."""

import os

import pytest

from idc_core.errors import DataError
from idc_core.guarded import Folder


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine" / "a").mkdir(parents=True)
    (tmp_path / "mine" / "a" / "1.png").write_bytes(b"one")
    (tmp_path / "secret.png").write_bytes(b"secret")
    return tmp_path / "mine"


def test_files_are_listed_sorted_and_hidden_ones_counted(folder):
    (folder / "2.png").write_bytes(b"two")
    for name in (".DS_Store", ".git", "__MACOSX"):
        (folder / name).mkdir()
        (folder / name / "x.png").write_bytes(b"")
    found = Folder(folder, "x")
    assert found.names == ("2.png", "a/1.png")
    assert found.hidden == 3
    assert found.read("a/1.png") == b"one"
    assert found.stamp("2.png")[0] == 3


@pytest.mark.parametrize("target", ["../secret.png", "/etc/passwd", ".."])
def test_links_that_lead_out_are_refused(folder, target):
    (folder / "a" / "link.png").symlink_to(target if target != "../secret.png" else folder.parent / "secret.png")
    if target == "..":  # still within
        assert Folder(folder, "x").names == ("a/1.png",)
    else:
        with pytest.raises(DataError, match=r"^x: 'a/link.png' is a link that leads out of the folder"):
            Folder(folder, "x")


def test_links_within_are_read_and_circles_are_not_followed(folder):
    (folder / "b.png").symlink_to(folder / "a" / "1.png")
    (folder / "round").symlink_to(folder)
    (folder / "nowhere.png").symlink_to(folder / "none.png")
    (folder / "itself.png").symlink_to("itself.png")
    found = Folder(folder, "x")
    assert found.names == ("a/1.png", "b.png")
    assert found.read("b.png") == b"one"


def test_a_file_that_becomes_a_link_later_is_refused(folder):
    found = Folder(folder, "x")
    (folder / "a" / "1.png").unlink()
    (folder / "a" / "1.png").symlink_to(folder.parent / "secret.png")
    with pytest.raises(DataError, match="leads out of the folder"):
        found.read("a/1.png")
    with pytest.raises(DataError, match="leads out of the folder"):
        found.read("../secret.png")


def test_pipes_are_no_files(folder):
    os.mkfifo(folder / "pipe.png")
    assert Folder(folder, "x").names == ("a/1.png",)


def test_what_is_no_folder_or_too_deep_is_refused(folder, one_mebibyte):
    with pytest.raises(DataError, match=r"^x cannot be read"):
        Folder(folder / "none", "x")
    for number in range(3_000):
        (folder / f"{number}.txt").write_bytes(b"")
    with pytest.raises(DataError, match="the list of its files would take"):
        Folder(folder, "x")
    deep = folder.parent / "deep"
    (deep / "/".join("a" * 20)).mkdir(parents=True)
    with pytest.raises(DataError, match="more than 16 folders deep"):
        Folder(deep, "x")
