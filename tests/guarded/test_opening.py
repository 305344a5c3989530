"""What is given as a file and is none; pictures; the limit of memory that an owner sets."""

import io
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from idc_core.base.config import config
from idc_core.errors import DataError, SettingError
from idc_core.guarded import (
    Budget,
    check_sealed_zip,
    pack_arrays,
    read_array,
    read_arrays,
    read_content,
    read_picture,
    seal_zip,
)
from tests.guarded.hostile import by_message, png


def pipe(folder):
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def dangling(folder):
    (folder / "link").symlink_to(folder / "nowhere")
    return folder / "link"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (pipe, "is a pipe; expected a file"),
        (lambda folder: folder, "is a folder; expected a file"),
        (lambda folder: Path("/dev/zero"), "is a device; expected a file"),
        (dangling, "cannot be read: No such file or directory"),
        (lambda folder: folder / ("x" * 300), "cannot be read: File name too long"),
        (lambda folder: folder / "a\0b", "cannot be read: embedded null byte"),
    ],
)
@pytest.mark.parametrize("read", [read_content, read_array, read_arrays])
def test_only_files_are_read(tmp_path, make, message, read):
    with pytest.raises(DataError, match=f"The file {message}"):
        read(make(tmp_path), "The file")


def picture(mode, size=(4, 3), form="PNG"):
    file = io.BytesIO()
    Image.new(mode, size).save(file, form)
    return file.getvalue()


def test_a_picture_is_what_it_is_expected_to_be():
    assert read_picture(picture("RGB"), "The file", "PNG", convert="L").shape == (3, 4)
    assert read_picture(picture("RGB"), "The file", "PNG", mode="RGB", size=(4, 3)).shape == (3, 4, 3)


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (png(100_000, 10_000), {}, "The file is"),
        (png(31_623, 31_623), {}, "The file is"),
        (png(9_000, 9_000), {"size": (8, 8)}, "9000x9000 pixels, mode L; expected 8x8"),
        (png(13_000, 13_000), {}, "its pixels would take 2,028,000,000 bytes"),
        (png(40_000, 1), {}, "at most 32,768 a side"),
        (png(8, 8), {}, "not a whole PNG"),
        (png(0, 8), {}, "The file is"),
        (picture("RGB", form="JPEG"), {}, "not a whole PNG"),
        (picture("RGB")[:44], {}, "not a whole PNG"),
        (picture("RGB"), {"mode": "L"}, "4x3 pixels, mode RGB; expected L"),
        (picture("I;16"), {}, "expected 8 bits a channel"),
        (b"", {}, "not a whole PNG"),
    ],
    ids=by_message,
)
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_a_picture_is_refused_before_its_pixels_take_memory(content, options, message):
    tracemalloc.start()
    with pytest.raises(DataError, match=message):
        read_picture(content, "The file", "PNG", **options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3_000_000


def test_the_owner_sets_the_limit(tmp_path, monkeypatch):
    path = tmp_path / "config.toml"
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    assert config().memory == 1 << 30
    path.write_text("[limits]\nmemory_mib = 3\n", encoding="utf-8")
    assert config().memory == 3 << 20
    with pytest.raises(DataError, match=r"The file: its rows would take 3,145,729 bytes .* raise memory_mib .*config"):
        Budget("The file").take((3 << 20) + 1, "its rows")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[limits]\nmemory_mib = 0\n", "memory_mib is not known or no whole number from 1"),
        ("[limits]\nmemory_mib = true\n", "memory_mib is not known or no whole number from 1"),
        ("[limits]\nmemory = 5\n", "memory is not known"),
        ("limits = 5\n", "limits"),
        ("[limits\n", "cannot be read"),
        ("x" * (1 << 21), "is no file of at most"),
    ],
    ids=by_message,
)
def test_a_config_file_that_makes_no_sense_is_refused(tmp_path, monkeypatch, text, message):
    path = tmp_path / "own.toml"
    path.write_text(text, encoding="utf-8")
    monkeypatch.setenv("IDC_CONFIG", str(path))
    with pytest.raises(SettingError, match=message):
        config()


def test_a_sealed_zip_is_read_as_any_other_and_its_damage_found_out():
    content = seal_zip(pack_arrays({"a": np.arange(5)}))
    check_sealed_zip(content, "The file")
    assert read_arrays(content, "The file")["a"].tolist() == [0, 1, 2, 3, 4]
    for place in (0, 30, len(content) // 2, len(content) - 1):
        damaged = bytearray(content)
        damaged[place] ^= 1
        with pytest.raises(DataError, match="The file is damaged"):
            check_sealed_zip(bytes(damaged), "The file")
    with pytest.raises(DataError, match="The file is damaged"):
        check_sealed_zip(b"", "The file")
