"""Arrays of files that lie: refused by their headers, in a sentence, before anything is allocated."""

import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from idc_core.errors import DataError
from idc_core.guarded import open_arrays, pack_arrays, read_array, read_arrays
from tests.guarded.hostile import by_message, npy, plain


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no NumPy array"),
        (b"\x93NUMPY", "is no NumPy array"),
        (b"\x93NUMPY\x09\x00", "is no NumPy array"),
        (plain("(-1,)"), "header that is damaged"),
        (plain("(1000000000,)"), "its header says 8,000,000,000 bytes, the file has"),
        (plain("(1000000000000000,)"), "its header says 8,000,000,000,000,000 bytes"),
        (plain("(4611686018427387904, 4)"), "shape that is damaged"),
        (plain("(1000000000, 1000000000)"), "which no memory holds"),
        (plain("(" + "9" * 5000 + ",)"), "header that is damaged"),
        (plain("(" + "9" * 900 + ",)"), "shape that is damaged"),
        (plain("(" + "1, " * 33 + ")"), "shape that is damaged"),
        (plain("(,)"), "shape that is damaged"),
        (plain("(2.5,)"), "header that is damaged"),
        (plain("__import__('os').abort()"), "header that is damaged"),
        (plain(kind="'|O'"), "holds Python objects"),
        (plain(kind="[('a', '<f8'), ('b', '|O')]"), "holds Python objects"),
        (plain(kind="[('a', '<f8')]"), "records with named fields, which are not read"),
        (plain(kind="'<U0'", data=b""), "values of type <U0; expected numbers"),
        (plain(kind="'<U999999999'"), "its header says|unknown type"),
        (plain(kind="'<f3'"), "unknown type '<f3'"),
        (plain(kind="'<M8'"), "values of type|unknown type"),
        (plain(kind="'|S3'", data=b"abcabcabc"), "expected numbers, truth values or text"),
        (plain(kind="'<c16'"), "expected numbers, truth values or text"),
        (plain(order="1"), "header that is damaged"),
        (npy("{'descr': '<f8', 'descr': '<f8', 'shape': (3,)}", bytes(24)), "header that is damaged"),
        (npy("{'descr': '<f8', 'shape': (3,)}", bytes(24)), "header that is damaged"),
        (npy("{" * 9_000, bytes(24)), "header that is damaged"),
        (npy("{" + " " * 9_900 + "}", bytes(24)), "header that is damaged"),
        (npy("{}", version=2, length=(1 << 32) - 1), "header of 4,294,967,295 bytes"),
        (npy("{}", version=1, length=20_000), "header of 20,000 bytes"),
        (plain(data=bytes(23)), "ends early"),
        (plain(data=bytes(25)), "more bytes than its header says"),
        (plain(kind="'|b1'", data=b"\x00\x01\x02"), "neither true nor false"),
        (plain("(1,)", "'<U1'", data=b"\xff\xff\xff\x7f"), "characters that do not exist"),
        (plain("(1,)", "'<U1'", data=b"\x00\xd8\x00\x00"), "characters that do not exist"),
        (pack_arrays({"a": np.zeros(3)}), "holds several arrays; save a single one"),
        (b"PK\x03\x04 but no more", "holds several arrays; save a single one"),
    ],
    ids=by_message,
)
def test_a_header_that_lies_is_refused_before_anything_is_allocated(content, message):
    tracemalloc.start()
    with pytest.raises(DataError, match=message) as caught:
        read_array(content, "The mask")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert str(caught.value).startswith("The mask")
    assert str(caught.value).endswith(".")
    assert peak < 3_000_000


@pytest.mark.parametrize("kind", ["<f4", ">f4", "<f8", "<f2", "|u1", ">i8", "|b1", "<U3", ">U3"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_what_is_whole_is_read_as_numpy_reads_it(kind, order):
    values = np.arange(2 * 3 * 5).reshape(2, 3, 5) % 2
    array = np.asarray(values.astype(kind), order=order)
    file = io.BytesIO()
    np.save(file, array)
    found = read_array(file, "The file")
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype.newbyteorder("=")
    assert found.flags.c_contiguous
    with pytest.raises(DataError, match=r"has the shape \(2, 3, 5\); expected \(2, 3\)"):
        read_array(file, "The file", (2, 3))


def test_scalars_and_arrays_without_values_are_read():
    found = read_arrays(pack_arrays({"one": np.float32(3), "none": np.zeros((0, 7))}), "The file")
    assert found["one"].shape == ()
    assert found["none"].shape == (0, 7)


def test_names_of_parts_are_no_drives():
    content = pack_arrays({"weight:conv1.weight": np.ones(2), "f/kernel": np.ones(3)})
    assert sorted(read_arrays(content, "The file")) == ["f/kernel", "weight:conv1.weight"]


def test_converting_holds_no_second_copy():
    content = pack_arrays({"a": np.arange(2_000_000, dtype=np.int64)})
    with open_arrays(content, "The file") as arrays:
        assert arrays.header("a").shape == (2_000_000,)
        tracemalloc.start()
        found = arrays.read("a", np.float32)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    np.testing.assert_array_equal(found, np.arange(2_000_000, dtype=np.float32))
    assert peak < 16_000_000, "an int64 and a float32 copy would be 24 MB"


@pytest.mark.usefixtures("one_mebibyte")
def test_all_arrays_count_in_one_limit():
    content = pack_arrays({name: np.zeros(50_000) for name in "abc"})
    assert read_arrays(content, "The file", ["a", "b"])["b"].shape == (50_000,)
    with pytest.raises(DataError, match=r"The file: the array would take 1,20\d,\d+ bytes .* raise memory_mib"):
        read_arrays(content, "The file")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(("names", "message"), [(("a.npy", "a.npy"), "member a.npy twice"), (("a", "a.npy"), "twice")])
def test_an_array_that_is_there_twice_is_refused(names, message):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, plain())
    with pytest.raises(DataError, match=message):
        read_arrays(file, "The file")


def test_bytes_after_the_end_are_refused():
    with pytest.raises(DataError, match="more bytes follow its end"):
        read_arrays(pack_arrays({"a": np.zeros(3)}) + b"more", "The file")
