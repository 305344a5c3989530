import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from idc_core.datasets import archived_pictures, load_dataset
from idc_core.errors import DataError
from idc_core.guarded import open_archive
from tests.datasets.dataset_files import CIFAR_ZIP, cifar_members, picture, tree, write_zip

FIRST = "test/airplane/0000.jpg"


def check(path):
    with open_archive(path, str(path), expansion=100) as archive:
        return [archive.read(name) for name in archive.names]


def test_members_are_read_as_they_were_written(tmp_path):
    path = write_zip(tmp_path / "x.zip", {"b": b"2", "a": b"1" * 3000, "d/": b""}, zipfile.ZIP_DEFLATED)
    with open_archive(path, str(path), expansion=100) as archive:
        assert archive.names == ("a", "b")
        assert archive.read("a") == b"1" * 3000
        with pytest.raises(DataError, match="no member c"):
            archive.read("c")


@pytest.mark.parametrize(
    "name", ["../x.jpg", "test/../../x.jpg", "/etc/x.jpg", "..", "\\x.jpg", "..\\x.jpg", "C:/x.jpg", "C:x.jpg"]
)
def test_names_that_lead_out_are_refused_and_nothing_is_written(places, name):
    data, _ = places
    write_zip(data / "cifar10" / CIFAR_ZIP, {**cifar_members(1), name: b"x"})
    before = tree(data.parent)
    with pytest.raises(DataError, match=rf"{CIFAR_ZIP} holds the member .*leads out of its folder"):
        load_dataset("cifar10", limit=1)
    assert tree(data.parent) == before


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_a_thousandfold_expansion_is_refused_before_it_takes_memory(places, method):
    path = write_zip(places[0] / "cifar10" / CIFAR_ZIP, {**cifar_members(1), FIRST: bytes(50_000_000)}, method)
    tracemalloc.start()
    with pytest.raises(DataError, match=f"{CIFAR_ZIP}: the member"):
        load_dataset("cifar10")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert path.stat().st_size < 100_000
    assert peak < 5_000_000


def test_many_small_members_may_not_expand_either(tmp_path):
    path = write_zip(tmp_path / "x.zip", {str(n): bytes(90_000) for n in range(40)}, zipfile.ZIP_DEFLATED)
    with pytest.raises(DataError, match=r"expands from .* in all"):
        check(path)


def test_a_member_that_expands_to_more_than_it_says_is_refused_before_it_takes_memory(tmp_path):
    path = write_zip(tmp_path / "x.zip", {"a": bytes(50_000_000)}, zipfile.ZIP_DEFLATED)
    content = path.read_bytes().replace(struct.pack("<I", 50_000_000), struct.pack("<I", 500))
    path.write_bytes(content)
    tracemalloc.start()
    with pytest.raises(DataError, match="member a is damaged"):
        check(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000


def test_a_member_that_is_shorter_than_it_says_is_refused(tmp_path):
    path = write_zip(tmp_path / "x.zip", {"a": b"abc" * 500, "b": b""}, zipfile.ZIP_DEFLATED)
    path.write_bytes(path.read_bytes().replace(struct.pack("<I", 1500), struct.pack("<I", 1501)))
    with pytest.raises(DataError, match="member a"):
        check(path)


def test_a_damaged_member_is_refused(tmp_path):
    path = write_zip(tmp_path / "x.zip", {"a": b"hello world"})
    path.write_bytes(path.read_bytes().replace(b"hello", b"jello"))
    with pytest.raises(DataError, match=r"x\.zip: the member a is damaged"):
        check(path)


def test_an_encrypted_member_is_refused(tmp_path):
    path = write_zip(tmp_path / "x.zip", {"a": b"hello"})
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="member a is encrypted"):
        check(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_that_comes_twice_is_refused(tmp_path):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", "1")
        archive.writestr("a", "2")
    with pytest.raises(DataError, match="member a twice"):
        check(path)


@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.99])
def test_a_cut_off_archive_is_refused(places, keep):
    path = write_zip(places[0] / "cifar10" / CIFAR_ZIP, cifar_members(1))
    content = path.read_bytes()
    path.write_bytes(content[: keep if keep in (0, 10) else int(keep * len(content))])
    with pytest.raises(DataError, match=f"{CIFAR_ZIP} is cut off or not a zip file"):
        load_dataset("cifar10", limit=1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (picture(32)[:-200], "not a whole JPEG"),
        (picture(32)[:30], "not a whole JPEG"),
        (b"", "not a whole JPEG"),
        (b"no picture", "not a whole JPEG"),
        (picture(32, form="PNG"), "not a whole JPEG"),
        (picture(31), r"31x31 pixels, mode RGB; expected 32x32, RGB"),
        (picture(5000), r"5000x5000 pixels, mode RGB; expected 32x32, RGB"),
        (picture(32, mode="L"), r"mode L; expected 32x32, RGB"),
    ],
)
def test_a_wrong_picture_is_refused_by_name_and_reason(places, content, message):
    write_zip(places[0] / "cifar10" / CIFAR_ZIP, {**cifar_members(1), FIRST: content})
    with pytest.raises(DataError, match=f"{CIFAR_ZIP}: the member {FIRST} is .*{message}"):
        load_dataset("cifar10")


def test_an_unknown_class_is_refused(places):
    write_zip(places[0] / "cifar10" / CIFAR_ZIP, {**cifar_members(1), "test/tram/0000.jpg": picture(32)})
    with pytest.raises(DataError, match=r"test/tram/0000.jpg is of no known class; expected one of airplane"):
        load_dataset("cifar10")


def test_a_split_without_pictures_is_refused(places):
    members = {name: content for name, content in cifar_members(1).items() if name.startswith("train/")}
    write_zip(places[0] / "cifar10" / CIFAR_ZIP, members)
    with pytest.raises(DataError, match=f"{CIFAR_ZIP} has no images test/<class>"):
        load_dataset("cifar10")


def test_decoded_pictures_are_kept_until_the_file_changes(places, monkeypatch):
    monkeypatch.setattr(archived_pictures, "_WORTH", 2)
    path, decoded = write_zip(places[0] / "cifar10" / CIFAR_ZIP, cifar_members(1)), archived_pictures.read_picture
    first = load_dataset("cifar10").inputs
    with monkeypatch.context() as patch:
        patch.setattr(archived_pictures, "read_picture", lambda *given, **how: pytest.fail("it was decoded again"))
        np.testing.assert_array_equal(load_dataset("cifar10").inputs, first)
    write_zip(path, {**cifar_members(1), FIRST: picture(32, 99)})
    seen = []
    monkeypatch.setattr(
        archived_pictures, "read_picture", lambda *given, **how: seen.append(1) or decoded(*given, **how)
    )
    assert not np.array_equal(load_dataset("cifar10").inputs, first)
    assert len(seen) == len(first)
    (next(iter((places[1] / "decoded").glob("*.npz")))).write_bytes(b"damaged")
    assert len(load_dataset("cifar10").inputs) == len(first)
