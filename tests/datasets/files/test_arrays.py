"""npz and npy files: names, splits, kinds of inputs and targets, and what is refused."""

import numpy as np
import pytest

from idc_core.datasets import load_dataset
from tests.datasets.files.reading import both, entered, refusal

random = np.random.default_rng(0)
BYTES = random.integers(0, 256, (12, 9, 8), dtype=np.uint8)
CLASSES = np.arange(12) % 3


CUT = (BYTES[:8], CLASSES[:8], BYTES[8:], CLASSES[8:])


def write(folder, **arrays):
    np.savez(folder / "it.npz", **arrays)
    return folder / "it.npz"


def rows_of(made, given):
    """For each item of a split, which item of the file it is."""
    flat = given.reshape(len(given), -1)
    return [int(np.flatnonzero((flat == one.reshape(-1)).all(1))[0]) for one in made]


@pytest.mark.parametrize(
    "names",
    [("x_train", "y_train", "x_test", "y_test"), ("train_inputs", "train_targets", "test_inputs", "test_targets"),
     ("X-train", "y-train", "X-val", "y-val"), ("x", "y", "x_test", "y_test")],
)  # fmt: skip
def test_given_splits_hold_the_values_in_their_order(tmp_path, names):
    train, test = both(write(tmp_path, **dict(zip(names, CUT, strict=True))))
    np.testing.assert_array_equal(train.inputs, BYTES[:8, None] / np.float32(255))
    np.testing.assert_array_equal(test.inputs, BYTES[8:, None] / np.float32(255))
    assert train.targets.tolist() == CLASSES[:8].tolist()
    assert test.targets.tolist() == CLASSES[8:].tolist()
    assert train.class_names == test.class_names == ("0", "1", "2")
    assert {"grey pictures of 9 x 8", "values divided by 255"} < set(test.notes)


def test_drawn_splits_are_the_same_for_any_limit(tmp_path):
    path = write(tmp_path, x=BYTES, y=CLASSES)
    train, test = both(path, test_share=0.25)
    assert (len(train), len(test)) == (9, 3)
    found = [*rows_of(np.rint(train.inputs * 255), BYTES), *rows_of(np.rint(test.inputs * 255), BYTES)]
    assert sorted(found) == list(range(12))
    assert CLASSES[found].tolist() == [*train.targets, *test.targets]
    with entered(path, test_share=0.25) as entry:
        first = load_dataset(entry.name, "train", 4)
    np.testing.assert_array_equal(first.inputs, train.inputs[:4])
    assert both(path, test_share=0.25)[0].fingerprint == train.fingerprint


PIXELS = random.random((12, 8, 10, 3)).astype(np.float32)


@pytest.mark.parametrize(
    ("given", "expected", "said"),
    [
        (PIXELS, PIXELS.transpose(0, 3, 1, 2), "RGB pictures of 8 x 10, channels last"),
        (PIXELS.transpose(0, 3, 1, 2), PIXELS.transpose(0, 3, 1, 2), "RGB pictures of 8 x 10, channels first"),
        (PIXELS[..., :1].astype(np.float64), PIXELS[:, None, :, :, 0], "grey pictures of 8 x 10, channels last"),
        (PIXELS[..., 0], PIXELS[:, None, :, :, 0], "grey pictures of 8 x 10"),
        (BYTES.astype(np.float32), BYTES[:, None] / np.float32(255), "values divided by 255"),
        (BYTES[:, None].astype(np.int64), BYTES[:, None] / np.float32(255), "values divided by 255"),
        ((BYTES > 99).astype(np.uint8), (BYTES[:, None] > 99).astype(np.float32), "values 0..1 as they are"),
        (BYTES[:, :3] + 0.5, BYTES[:, :3] + 0.5, "series of 3 x 8 numbers, as they are"),
        (PIXELS[:, 0, :, 0] * 40 - 9, PIXELS[:, 0, :, 0] * 40 - 9, "10 features as they are"),
        (BYTES[:, 0].astype(np.int32), BYTES[:, 0].astype(np.int64), "8 token ids as they are"),
    ],
)  # fmt: skip
def test_every_form_of_inputs_is_understood_and_told(tmp_path, given, expected, said):
    train, test = both(write(tmp_path, x_train=given[:6], y_train=CLASSES[:6], x_test=given[6:], y_test=CLASSES[6:]))
    np.testing.assert_array_equal(np.concatenate([train.inputs, test.inputs]), expected)
    assert train.inputs.dtype == (np.int64 if "token" in said else np.float32)
    assert said in train.notes
    assert train.notes == test.notes


@pytest.mark.parametrize(
    ("given", "numbers", "names"),
    [
        (["dog", "cat", "bird"], [2, 1, 0], ("bird", "cat", "dog")),
        ([2, 0, 1], [2, 0, 1], ("0", "1", "2")),
        ([1, 2, 3], [1, 2, 3], ("0", "1", "2", "3")),
        ([100, 7, 20], [2, 0, 1], ("7", "20", "100")),
        ([True, False, True], [1, 0, 1], ("False", "True")),
        ([[0, 1, 0], [1, 0, 0], [0, 0, 1]], [1, 0, 2], ("0", "1", "2")),
        ([[1], [0], [2]], [1, 0, 2], ("0", "1", "2")),
        (np.array([1, 0, 2], np.uint8), [1, 0, 2], ("0", "1", "2")),
        (["<b>x</b>", "=1+1", "été"], [0, 1, 2], ("<b>x</b>", "=1+1", "été")),
    ],
)  # fmt: skip
def test_every_form_of_labels_is_understood(tmp_path, given, numbers, names):
    labels = np.array(given)
    train, test = both(write(tmp_path, x_train=BYTES[:3], y_train=labels, x_test=BYTES[3:5], y_test=labels[1:]))
    assert train.targets.tolist() == numbers
    assert test.targets.tolist() == numbers[1:]
    assert train.class_names == test.class_names == names


def test_floats_are_targets_of_a_regression_unless_the_task_is_given(tmp_path):
    path = write(tmp_path, x=BYTES, y=CLASSES.astype(np.float64))
    train, _ = both(path)
    assert (train.task, train.targets.dtype, train.class_names) == ("regression", np.float32, ())
    train, _ = both(path, task="classification")
    assert (train.task, train.class_names) == ("classification", ("0", "1", "2"))
    whole, _ = both(write(tmp_path, x=BYTES, y=np.arange(12) * 30 - 5), task="regression")
    assert sorted(whole.targets.tolist() + _.targets.tolist()) == (np.arange(12) * 30 - 5).tolist()


def test_names_of_classes_and_features_are_kept(tmp_path):
    values = random.normal(size=(12, 3))
    path = write(
        tmp_path, data=values, target=CLASSES, target_names=np.array(["a", "b", "c", "d"]),
        feature_names=np.array(["length", "width", "height"]),
    )  # fmt: skip
    train, _ = both(path)
    assert train.class_names == ("a", "b", "c", "d")
    assert train.vocabulary == ("length", "width", "height")


def test_texts_become_words_of_the_training_split(tmp_path):
    path = write(
        tmp_path, x_train=np.array(["a cat", "A dog and a cat"]), y_train=np.array([0, 1]),
        x_test=np.array(["the cat"]), y_test=np.array([1]),
    )  # fmt: skip
    train, test = both(path)
    assert train.vocabulary == test.vocabulary == ("<padding>", "<unknown>", "a", "cat", "and", "dog")
    assert train.inputs.tolist() == [[2, 3, 0, 0, 0], [2, 5, 4, 2, 3]]
    assert test.inputs.tolist() == [[1, 3, 0, 0, 0]]
    assert test.texts == ("the cat",)


def test_flat_pictures_need_their_size(tmp_path):
    path = write(tmp_path, x=BYTES.reshape(12, 72), y=CLASSES)
    assert "72 bytes per item: give the size" in refusal(path)
    train, _ = both(path, size=(9, 8), channels=3)
    assert train.inputs.shape[1:] == (3, 9, 8)
    rows = rows_of(np.rint(train.inputs[:, 0] * 255), BYTES)
    assert CLASSES[rows].tolist() == train.targets.tolist()
    assert "expected 30" in refusal(path, size=(5, 6))


@pytest.mark.parametrize(("fit", "kept"), [("stretch", (0, 0)), ("crop", (0, 0)), ("pad", (2, 0))])
def test_pictures_are_brought_to_a_size(tmp_path, fit, kept):
    grey = np.full((4, 1, 8, 16), 0.5, np.float32)
    train, _ = both(write(tmp_path, x=grey, y=np.array([0, 1, 0, 1])), size=(8, 8), fit=fit)
    rows, columns = kept
    inside = train.inputs[0, 0, rows : 8 - rows, columns : 8 - columns]
    np.testing.assert_allclose(inside, 0.5, atol=1e-6)
    assert train.inputs[0, 0].sum() == pytest.approx(0.5 * inside.size)


def test_npy_files_beside_each_other(tmp_path):
    np.save(tmp_path / "x.npy", BYTES)
    assert "is one array alone: its targets must lie beside it" in refusal(tmp_path / "x.npy")
    np.save(tmp_path / "z.npy", CLASSES)
    assert "expected inputs and targets under names such as x and y" in refusal(tmp_path / "x.npy")
    (tmp_path / "z.npy").unlink()
    np.save(tmp_path / "y.npy", CLASSES)
    train, test = both(tmp_path / "x.npy", inputs="x", targets="y")
    assert len(train) + len(test) == 12
    np.save(tmp_path / "first_kind.npy", CLASSES[::-1] + 1)
    train, _ = both(tmp_path / "x.npy", targets="first_kind")
    assert train.class_names == ("0", "1", "2", "3")


REFUSED = {
    "pixels beyond 255": ({"x": BYTES[:, None].astype(np.float32) * 300}, "0..1, or whole numbers"),
    "floats in 0..255": ({"x": BYTES[:, None] * 0.99}, "divide them by 255"),
    "mean and deviation": ({"x": PIXELS - 0.5}, "belong to the network"),
    "four channels": ({"x": np.zeros((12, 8, 8, 4), np.uint8)}, "--channels 3 leaves the fourth channel out"),
    "five axes": ({"x": np.zeros((12, 1, 1, 8, 8))}, "expected pictures"),
    "one number each": ({"x": np.zeros(12)}, "inputs of shape ()"),
    "complex numbers": ({"x": np.ones((12, 4), complex)}, "such as numpy.stack([array.real, array.imag], -1)."),
    "numbers of 128 bits": ({"x": np.ones((12, 4), np.longdouble)}, "such as array.astype(float)."),
    "nothing": ({"x": BYTES[:0], "y": CLASSES[:0]}, "has no items"),
    "one item": ({"x": BYTES[:1], "y": np.array(["a"])}, "one class only"),
    "one class": ({"y": np.zeros(12, int)}, "one class only, '0'"),
    "negative": ({"y": CLASSES - 1}, "the class -1 at item 0"),
    "not finite": ({"x": np.where(BYTES > 250, np.nan, 0.0)}, "not finite, first in item"),
    "targets not finite": ({"y": np.full(12, np.nan)}, "the target nan at item 0"),
    "several classes": ({"y": np.ones((12, 3), int)}, "Targets of several labels are not analysed"),
    "other lengths": ({"y": CLASSES[:5]}, "12 inputs and 5 targets"),
    "no targets": ({"y": None}, "'x'"),
    "both may be meant": ({"images": BYTES}, "images and x, which may both be meant"),
    "objects": ({"y": np.array(["a", None] * 6, object)}, "holds Python objects, which are not read"),
    "empty names": ({"y": np.array(["", "a"] * 6)}, "the class name ''"),
    "names with a newline": ({"y": np.array(["a\nb", "a"] * 6)}, r"the class name 'a\nb'"),
    "names from right to left": ({"y": np.array(["\u202egnp", "a"] * 6)}, r"the class name '\u202egnp'"),
    "many classes": ({"y": np.arange(12)}, "12 classes in 12 items"),
    "negative token ids": ({"x": np.full((12, 4), -3)}, "token ids from -3"),
    "classes without a name": ({"class_names": np.array(["a", "b"])}, "the class 2 but names 2 classes"),
    "names twice": ({"class_names": np.array(["a", "a", "b"])}, "different names"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_taken_is_a_sentence(tmp_path, what):
    changed, sentence = REFUSED[what]
    arrays = {name: array for name, array in ({"x": BYTES, "y": CLASSES} | changed).items() if array is not None}
    said = refusal(write(tmp_path, **arrays))
    assert sentence in said
    assert str(tmp_path / "it.npz") in said


def test_four_channels_lose_the_last_where_three_are_asked_for(tmp_path):
    given = random.integers(0, 256, (12, 8, 8, 4), dtype=np.uint8)
    train, _ = both(write(tmp_path, x=given, y=CLASSES), channels=3)
    assert train.inputs.shape[1:] == (3, 8, 8)
    rows = rows_of(np.rint(train.inputs * 255), given[..., :3].transpose(0, 3, 1, 2))
    assert CLASSES[rows].tolist() == train.targets.tolist()


def test_a_file_that_is_absent_or_of_no_format(tmp_path):
    assert "is not there" in refusal(tmp_path / "none.npz")
    (tmp_path / "it.xyz").write_text("x")
    assert "is no data that can be read; expected" in refusal(tmp_path / "it.xyz")
