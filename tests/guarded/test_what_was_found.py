"""What damaged files brought to light, each by its message."""

import gzip
import io
import json
import zipfile
import zlib

import numpy as np
import pytest
from PIL import Image

from idc_core.analysis.overview import Overview
from idc_core.base.config import config
from idc_core.datasets import digits
from idc_core.errors import DataError, ModelError, SettingError
from idc_core.experiments.retraining_results import RetrainedNetwork
from idc_core.guarded import open_archive, open_gzip, read_arrays, read_json, read_picture
from idc_core.models.loading import load_model
from idc_core.models.registry import MODELS
from idc_core.store.cache import ArrayFolder
from tests.guarded.crafted_arrays import packed
from tests.guarded.crafted_binaries import chunks, png_of
from tests.guarded.kept_files import NETWORK, OVERVIEW
from tests.guarded.network_files import PUBLISHED, TRAINED, checkpoints, opened_series, published


def arrays(**named):
    file = io.BytesIO()
    np.savez(file, **named)
    return file.getvalue()


def test_a_retrained_network_is_found_again(tmp_path):
    folder = ArrayFolder(tmp_path)
    folder["one"] = NETWORK.arrays()
    again = RetrainedNetwork.of(folder["one"])
    assert set(again.weights) == set(NETWORK.weights)
    np.testing.assert_array_equal(again.values, NETWORK.values)
    with pytest.raises(DataError, match="arrays inputs, targets are not those of a retrained network"):
        RetrainedNetwork.of({"inputs": np.zeros(1), "targets": np.zeros(1)})


@pytest.mark.parametrize("name", ["C:/x", "C:x", "/x", "a\\b", "../x", "a/../b", "x" * 2000])
def test_names_that_lead_elsewhere_are_refused(name):
    content = packed([("abcdefgh"[: len(name)].ljust(len(name), "z"), b"")], zipfile.ZIP_STORED)
    changed = content.replace(zipfile.ZipFile(io.BytesIO(content)).namelist()[0].encode(), name.encode())
    with pytest.raises(DataError, match=r"leads out of its folder, or is none|another one lies where it should"):
        read_arrays(changed, "The file")


def test_a_member_without_a_name_is_refused():
    with pytest.raises(DataError, match="leads out of its folder, or is none"):
        read_arrays(packed([("", b"")]), "The file")


def test_a_name_that_is_damaged_in_the_list_alone_is_refused():
    content = arrays(inputs=np.zeros(2), class_names=np.array(["a"]))
    place = content.rindex(b"class_names.npy")
    with pytest.raises(DataError, match=r"the member clbss_names\.npy is damaged: another one lies where it should"):
        read_arrays(content[: place + 2] + b"b" + content[place + 3 :], "The file", ["inputs"])


def test_a_member_that_is_swallowed_by_the_one_before_is_missed():
    content = arrays(inputs=np.zeros(2), class_names=np.array(["a"]))
    first = content.index(b"PK\x01\x02")
    changed = content[: first + 32] + b"\x80" + content[first + 33 :]
    with pytest.raises(DataError, match="lists 1 members where its end says 2"):
        read_arrays(changed, "The file", ["inputs"])


def test_messages_stay_short_where_names_are_long():
    content = packed([("x" * 60_000, b"")])
    with pytest.raises(DataError) as raised, open_archive(content, "The file"):
        pass
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize(
    ("prepare", "change", "message"),
    [
        (published, lambda about: about["layers"][0].update(type="y" * 9000), r"'conv1' is a y{100}, but the network"),
        (published, lambda about: about["layers"][0].update(name="y" * 9000), r"lacks 'y{99};"),
        (checkpoints, lambda about: about["card"]["recipe"].update(note="y" * 9000), "training with the recipe"),
    ],
)
def test_messages_stay_short_where_values_are_long(tmp_path, monkeypatch, prepare, change, message):
    for one in (PUBLISHED, TRAINED):
        monkeypatch.setitem(MODELS, one.name, one)
    (tmp_path / "data").mkdir()
    path = prepare(tmp_path).with_suffix(".json")
    about = json.loads(path.read_text())
    change(about)
    path.write_text(json.dumps(about))
    with pytest.raises(ModelError, match=message) as raised:
        opened_series(path) if prepare is checkpoints else load_model("toy-published", weights=path.with_suffix(".npz"))
    assert len(str(raised.value)) < 2000


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": "\\ud800"}', "surrogates not allowed"),
        (b'{"\\udfff": 1}', "surrogates not allowed"),
        (b"[" * 200 + b"]" * 200, "nested more than 100 deep"),
        (b'{"a": ' * 200 + b"1" + b"}" * 200, "nested more than 100 deep"),
        (b"[" * 100_000, "recursion"),
        (b'{"a": 1, "a": 1}', "a key comes twice"),
    ],
)
def test_json_that_could_not_be_written_again_is_refused(content, message):
    with pytest.raises(DataError, match=message):
        read_json(content, "The file", object)


def test_json_with_whole_characters_beyond_the_first_plane_is_read():
    assert read_json(b'["\\ud83d\\ude00", "\\u00e9"]', "The file", list[str]) == ["\U0001f600", "é"]


def test_a_gzip_file_ends_where_its_stream_ends():
    content = gzip.compress(b"abc" * 1000)
    with open_gzip(content, "The file") as stream:
        assert stream.read() == b"abc" * 1000
    for changed in (
        content[:-1],
        content[:20],
        content + b"\0",
        content + content,
        b"",
        b"abc",
        content[:-6] + bytes(6),
    ):
        with (
            pytest.raises(DataError, match=r"The file is cut off or not a gzip file"),
            open_gzip(changed, "The file") as s,
        ):
            s.read()


def test_damaged_digits_are_refused(tmp_path):
    path = tmp_path / "digits.csv.gz"
    content = digits._find().read_bytes()
    for changed in (content[:5000] + b"\0" * 40 + content[5040:], gzip.compress(b"9" * 5000), gzip.compress(b"\xff")):
        path.write_bytes(changed)
        with pytest.raises(DataError, match="install scikit-learn again"):
            digits._read(path)


def test_other_pixels_of_a_png_are_found():
    file = io.BytesIO()
    Image.fromarray(np.eye(4, dtype=np.uint8) * 255).save(file, "PNG")
    content = file.getvalue()
    raw = bytearray(zlib.decompress(dict(chunks(content))[b"IDAT"]))
    raw[2] ^= 1
    forged = png_of([(name, zlib.compress(raw) if name == b"IDAT" else inner) for name, inner in chunks(content)])
    assert read_picture(forged, "The mask", "PNG")[0, 1] == 1
    place = forged.index(b"IDAT") + 8
    damaged = forged[:place] + bytes([forged[place] ^ 1]) + forged[place + 1 :]
    with pytest.raises(DataError, match="a part of it does not have its checksum"):
        read_picture(damaged, "The mask", "PNG")
    with pytest.raises(DataError, match="is not a whole PNG picture"):
        read_picture(content[:-12], "The mask", "PNG")


@pytest.mark.parametrize("text", ["limits = 5", "limits = []", "limits = 'memory_mib'", "[[limits]]\nmemory_mib = 1"])
def test_limits_that_are_no_section_are_refused(tmp_path, monkeypatch, text):
    (tmp_path / "mine.toml").write_text(text)
    monkeypatch.setenv("IDC_CONFIG", str(tmp_path / "mine.toml"))
    with pytest.raises(SettingError, match=r"expected a section \[limits\]"):
        config()


@pytest.mark.parametrize(
    "change",
    [
        {"cells": [[0, 300], [1, 2]]},
        {"cells": [[0, -1], [1, 2]]},
        {"cells": [[0, 3], [1, 2]]},
        {"cells": [[0, 1]]},
        {"counts": [10**400, 1]},
        {"counts": [1 << 63, 1]},
        {"counts": [3]},
        {"wrong": [4, 1]},
        {"wrong": [1.5, 1]},
        {"sizes": "23"},
    ],
)
def test_an_overview_whose_cells_do_not_fit_is_refused(change):
    values = json.loads(OVERVIEW.to_json())
    values["table"] |= change
    with pytest.raises(DataError, match="write it anew"):
        Overview.from_json(json.dumps(values))
    with pytest.raises(DataError, match="write it anew"):
        Overview.from_json("[" * 100_000)
