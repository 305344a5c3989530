"""Folders of arrays, IDX pairs and tables; what is chosen where there are several."""

import gzip

import numpy as np
import pytest

from tests.datasets.dataset_files import idx_bytes
from tests.datasets.files.reading import both, refusal
from tests.datasets.files.test_tables import ROWS, write

random = np.random.default_rng(0)
IMAGES = random.integers(0, 256, (12, 9, 8), dtype=np.uint8)
CLASSES = (np.arange(12) % 3).astype(np.uint8)


def published(folder, names, zipped):
    for name, items in zip(names, (IMAGES[:8], CLASSES[:8], IMAGES[8:], CLASSES[8:]), strict=True):
        content = idx_bytes(items)
        (folder / name).write_bytes(gzip.compress(content) if zipped else content)


@pytest.mark.parametrize(
    ("names", "zipped"),
    [
        (["train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz",
          "t10k-labels-idx1-ubyte.gz"], True),
        (["train-images.idx3-ubyte", "train-labels.idx1-ubyte", "t10k-images.idx3-ubyte", "t10k-labels.idx1-ubyte"],
         False),
        (["train.idx", "train_labels.idx", "test.idx", "test_labels.idx"], False),
    ],
)  # fmt: skip
def test_idx_pairs_are_read_as_they_are_published(tmp_path, names, zipped):
    published(tmp_path, names, zipped)
    for path in (tmp_path, tmp_path / names[0]):
        train, test = both(path)
        np.testing.assert_array_equal(train.inputs, IMAGES[:8, None] / np.float32(255))
        np.testing.assert_array_equal(test.inputs, IMAGES[8:, None] / np.float32(255))
        assert test.targets.tolist() == CLASSES[8:].tolist()
        assert "split as given" in train.notes


def test_idx_files_of_other_types(tmp_path):
    values = random.normal(size=(6, 5)).astype(">f4")
    (tmp_path / "x.idx").write_bytes(b"\0\0\x0d\x02" + b"\0\0\0\6\0\0\0\5" + values.tobytes())
    (tmp_path / "x_labels.idx").write_bytes(b"\0\0\x0c\x01" + b"\0\0\0\6" + np.array([0, 1] * 3, ">i4").tobytes())
    train, test = both(tmp_path)
    assert sorted(np.concatenate([train.inputs, test.inputs]).tolist()) == sorted(values.astype(np.float32).tolist())


IDX_REFUSED = {
    "cut off": (lambda content: content[:-1], "holds 863 bytes of data where its header says 864"),
    "longer": (lambda content: content + b"\0", "holds more bytes"),
    "cut off in its header": (lambda content: content[:7], "ends inside its header"),
    "another file": (lambda content: b"PK" + content, "is no IDX file"),
    "nothing": (lambda content: b"", "is no IDX file"),
    "a promise": (lambda content: content[:4] + b"\xff" * 12 + content[16:], "holds 864 bytes of data where its"),
    "other sides": (lambda content: content[:4] + b"\0\0\0\6" + content[8:], "holds more bytes"),
}


@pytest.mark.parametrize("what", IDX_REFUSED)
def test_damaged_idx_files_are_a_sentence(tmp_path, what):
    change, sentence = IDX_REFUSED[what]
    (tmp_path / "images.idx").write_bytes(change(idx_bytes(IMAGES)))
    (tmp_path / "labels.idx").write_bytes(idx_bytes(CLASSES))
    assert sentence in refusal(tmp_path / "images.idx")


def test_idx_files_that_are_no_pairs(tmp_path):
    (tmp_path / "images.idx").write_bytes(idx_bytes(IMAGES))
    assert "expected images and labels in pairs" in refusal(tmp_path)
    (tmp_path / "pictures.idx").write_bytes(idx_bytes(IMAGES))
    assert "'images.idx', 'pictures.idx', which may both be meant" in refusal(tmp_path)


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_tables_named_train_and_test(tmp_path, ending):
    write(tmp_path / f"train-00000-of-00002.{ending}", ROWS[:4])
    write(tmp_path / f"train-00001-of-00002.{ending}", ROWS[4:8])
    write(tmp_path / f"test-00000-of-00001.{ending}", ROWS[8:])
    (tmp_path / ".hidden.csv").write_text("x")
    train, test = both(tmp_path)
    assert train.inputs[:, 1].tolist() == [-n for n in range(8)]
    assert test.inputs[:, 1].tolist() == [-n for n in range(8, 12)]
    assert train.class_names == ("cat", "dog")
    write(tmp_path / f"other.{ending}", ROWS)
    assert "expected one, or names that begin with train and test" in refusal(tmp_path)


def test_pieces_with_other_columns(tmp_path):
    write(tmp_path / "train-1.csv", ROWS)
    write(tmp_path / "train-2.csv", [{"width": 1, "label": "cat"}])
    write(tmp_path / "test.csv", ROWS)
    assert "pieces of a split have other columns" in refusal(tmp_path)
    (tmp_path / "train-2.csv").unlink()
    write(tmp_path / "test.csv", [{"width": 1, "label": "cat"}])
    assert "training and tests have other columns" in refusal(tmp_path)


def test_npy_files_of_a_folder(tmp_path):
    for name, array in (("x_train", IMAGES[:8]), ("y_train", CLASSES[:8]), ("x_test", IMAGES[8:])):
        np.save(tmp_path / f"{name}.npy", array)
    assert "'x_test', 'x_train', 'y_train'; expected inputs and targets" in refusal(tmp_path)
    np.save(tmp_path / "y_test.npy", CLASSES[8:])
    assert [len(one) for one in both(tmp_path)] == [8, 4]


def test_a_folder_with_one_table_and_one_without_anything_known(tmp_path):
    write(tmp_path / "it.csv", ROWS)
    (tmp_path / "README.md").write_text("about")
    assert sum(map(len, both(tmp_path))) == 12
    (tmp_path / "it.csv").unlink()
    np.savez(tmp_path / "it.npz", x=IMAGES, y=CLASSES)
    assert "'README.md', 'it.npz'; open one of them" in refusal(tmp_path)
