import gzip
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idc_core.datasets import load_dataset
from idc_core.datasets.idx import read_idx, write_idx
from idc_core.errors import DataError
from idc_core.guarded import Budget
from tests.datasets.dataset_files import digits, idx_bytes, tree, write_gz, write_mnist

IMAGES, LABELS = digits(40, 2)
IMAGE_FILE, LABEL_FILE = "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"


def test_pixels_and_labels_are_those_of_the_files(places):
    write_mnist(places[0] / "mnist")
    data = load_dataset("mnist")
    np.testing.assert_array_equal(data.inputs[:, 0], (IMAGES / 255.0).astype(np.float32))
    np.testing.assert_array_equal(data.targets, LABELS)


def test_what_is_written_can_be_read_and_is_the_same_file_twice(tmp_path):
    items = np.arange(2 * 3 * 4 * 5, dtype=np.uint8).reshape(2, 3, 4, 5)
    first, second = tmp_path / "a" / "x.gz", tmp_path / "b" / "x.gz"
    for path in (first, second):
        path.parent.mkdir()
        write_idx(path, items)
    found, count = read_idx(first, Budget("it"), (3, 4, 5))
    np.testing.assert_array_equal(found, items)
    assert count == 2
    assert first.read_bytes() == second.read_bytes()


def test_limit_counts_all_and_keeps_some(tmp_path):
    path = write_gz(tmp_path / "x.gz", idx_bytes(IMAGES))
    found, count = read_idx(path, Budget("it"), (28, 28), 3)
    np.testing.assert_array_equal(found, IMAGES[:3])
    assert count == 40


@settings(max_examples=40, deadline=None)
@given(cut=st.integers(min_value=0))
def test_a_file_cut_off_anywhere_is_refused(tmp_path_factory, cut):
    whole = gzip.compress(idx_bytes(IMAGES[:3]))
    path = tmp_path_factory.mktemp("cut") / "x.gz"
    path.write_bytes(whole[: cut % len(whole)])
    with pytest.raises(DataError, match=r"x\.gz"):
        read_idx(path, Budget("it"), (28, 28))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (idx_bytes(IMAGES, magic=2049), r"expected some of shape \(28, 28\), uint8"),
        (idx_bytes(IMAGES, magic=0x0D03), r"shape \(28, 28\), >f4; expected"),
        (idx_bytes(IMAGES, shape=(41, 28, 28)), "31,360 bytes of data where its header says 32,144"),
        (idx_bytes(IMAGES, shape=(39, 28, 28)), "more bytes of data where its header says 30,576"),
        (idx_bytes(IMAGES, shape=(40, 32, 28)), r"shape \(32, 28\), uint8; expected"),
        (idx_bytes(IMAGES, shape=(0, 28, 28)), "0 items"),
        (idx_bytes(IMAGES, shape=(2**32 - 1, 28, 28)), "times its size"),
        (b"\x00\x00\x08\x03\x00", "header"),
        (b"", "header"),
    ],
)
@pytest.mark.parametrize("limit", [None, 5])
def test_damaged_image_files_are_refused_by_name_and_reason(places, content, message, limit):
    data, _ = places
    write_mnist(data / "mnist")
    write_gz(data / "mnist" / IMAGE_FILE, content)
    before = tree(data.parent)
    with pytest.raises(DataError, match=f"{IMAGE_FILE}.*{message}"):
        load_dataset("mnist", limit=limit)
    assert tree(data.parent) == before


@pytest.mark.parametrize("name", [IMAGE_FILE, LABEL_FILE])
@pytest.mark.parametrize("limit", [None, 5])
def test_a_cut_off_gzip_is_refused_also_when_only_its_beginning_is_wanted(places, name, limit):
    path = write_mnist(places[0] / "mnist") / name
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match=f"{name} is cut off"):
        load_dataset("mnist", limit=limit)


def test_a_flipped_bit_is_found(places):
    path = write_mnist(places[0] / "mnist") / IMAGE_FILE
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=IMAGE_FILE):
        load_dataset("mnist")


def test_no_gzip_at_all_is_refused(places):
    path = write_mnist(places[0] / "mnist") / LABEL_FILE
    path.write_bytes(idx_bytes(LABELS))
    with pytest.raises(DataError, match=f"{LABEL_FILE} is cut off or not a gzip file"):
        load_dataset("mnist")


@pytest.mark.parametrize("limit", [None, 5])
def test_images_and_labels_must_be_equally_many(places, limit):
    folder = write_mnist(places[0] / "mnist")
    write_gz(folder / LABEL_FILE, idx_bytes(LABELS[:39]))
    with pytest.raises(DataError, match=f"{IMAGE_FILE} holds 40 images but {LABEL_FILE} beside it 39 labels"):
        load_dataset("mnist", limit=limit)


@pytest.mark.parametrize("limit", [None, 5])
def test_labels_out_of_range_are_refused_with_the_first_place(places, limit):
    folder = write_mnist(places[0] / "mnist")
    labels = LABELS.copy()
    labels[[17, 30]] = (10, 255)
    write_gz(folder / LABEL_FILE, idx_bytes(labels))
    with pytest.raises(DataError, match=rf"{LABEL_FILE} gives item 17 the label 10, expected 0..9 \(2 such"):
        load_dataset("mnist", limit=limit)


def test_one_file_without_the_other_is_refused(places):
    (write_mnist(places[0] / "mnist") / LABEL_FILE).unlink()
    with pytest.raises(DataError, match=f"holds {IMAGE_FILE} but not {LABEL_FILE}"):
        load_dataset("mnist")


@pytest.mark.parametrize("count", [10, 200_000])
def test_a_bomb_is_refused_before_it_takes_memory(tmp_path, count):
    # Sixty million zeros in sixty thousand bytes; the header is silent about them or claims even more.
    path = write_gz(tmp_path / "x.gz", idx_bytes(np.zeros((10, 28, 28)), shape=(count, 28, 28)) + bytes(60_000_000))
    tracemalloc.start()
    with pytest.raises(DataError, match="more"):
        read_idx(path, Budget("it"), (28, 28))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000
