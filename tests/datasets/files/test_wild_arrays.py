"""Arrays, pictures and texts as other people have them: read as meant, or refused by a sentence whose line works."""

import io
import shlex
import zipfile

import numpy as np
import pytest
from PIL import Image

from idc_core.errors import IdcError
from tests.datasets.dataset_files import idx_bytes
from tests.datasets.files.reading import both
from tests.datasets.files.wild import prepared

random = np.random.default_rng(0)
GREY = random.integers(0, 256, (12, 9, 8), dtype=np.uint8)
COLOUR = random.integers(0, 256, (12, 9, 8, 3), dtype=np.uint8)
SQUARE = random.integers(0, 256, (12, 8, 8), dtype=np.uint8)
ROWS = random.normal(size=(12, 5))
SERIES = random.normal(size=(12, 20, 6))
CLASSES = np.arange(12) % 3
NAMES = np.array(["ash", "elm", "oak"])[CLASSES]
DAYS = np.datetime64("2024-01-01") + CLASSES
SPLIT = slice(None, 8), slice(8, None)

GREYS, COLOURS, SQUARES = (
    np.asarray(one, np.float32) / np.float32(255)
    for one in (GREY[:, None], COLOUR.transpose(0, 3, 1, 2), SQUARE[:, None])
)
NUMBERS = tuple(map(str, range(3)))
TREES = ("ash", "elm", "oak")


def cut(inputs, targets, names):
    """The four arrays of two splits."""
    (train, test), (x, y) = SPLIT, (inputs, targets)
    return dict(zip(names, (x[train], y[train], x[test], y[test]), strict=True))


# What is in an npz file, the lines of its sentences, and the inputs and names of classes that it means.
NPZ = {
    "x and y": ({"x": GREY, "y": CLASSES}, (), GREYS, NUMBERS),
    "X and y": ({"X": ROWS, "y": CLASSES}, (), ROWS, NUMBERS),
    "images and labels": ({"images": COLOUR, "labels": CLASSES[:, None]}, (), COLOURS, NUMBERS),
    "data and target, with their names": (
        {"data": ROWS, "target": CLASSES, "target_names": np.array(TREES), "DESCR": np.array("about trees")}, (), ROWS,
        TREES,
    ),
    "Keras": (cut(GREY, CLASSES.astype(np.uint8), ("x_train", "y_train", "x_test", "y_test")), (), GREYS, NUMBERS),
    "MedMNIST": (
        cut(COLOUR, CLASSES[:, None], ("train_images", "train_labels", "val_images", "val_labels")), (), COLOURS,
        NUMBERS,
    ),
    "trainX and testX": (cut(ROWS, CLASSES, ("trainX", "trainY", "testX", "testY")), (), ROWS, NUMBERS),
    "XTrain and XTest": (cut(ROWS, CLASSES, ("XTrain", "YTrain", "XTest", "YTest")), (), ROWS, NUMBERS),
    "without names": ({"arr_0": ROWS, "arr_1": CLASSES}, ("--inputs arr_0 --targets arr_1",), ROWS, NUMBERS),
    "names of one's own": (
        {"kind": NAMES, "spectra": ROWS}, ("--inputs spectra --targets kind",), ROWS, TREES,
    ),
    "names as bytes": ({"x": ROWS, "y": NAMES.astype("S")}, ("array.astype(str)",), ROWS, TREES),
    "names as objects": ({"x": ROWS, "y": NAMES.astype(object)}, ("numpy.array(array.tolist())",), ROWS, TREES),
    "one-hot": ({"x": ROWS, "y": np.eye(3)[CLASSES]}, (), ROWS, NUMBERS),
    "truth values": ({"x": ROWS, "y": CLASSES > 0}, (), ROWS, ("False", "True")),
    "-1 and 1": ({"x": ROWS, "y": np.where(CLASSES > 0, 1, -1)}, ("--task classification",), ROWS, ("-1", "1")),
    "half precision": ({"x": ROWS.astype(np.float16), "y": CLASSES}, (), ROWS.astype(np.float16), NUMBERS),
    "big-endian, in Fortran's order": (
        {"x": np.asfortranarray(SERIES).astype(">f8"), "y": CLASSES.astype(">i2")}, (), SERIES, NUMBERS,
    ),
    "whole numbers of 16 bits": (
        {"x": SQUARE.astype(np.uint16)[:, None] * 257, "y": CLASSES}, ("inputs / 65535",),
        SQUARE[:, None].astype(np.uint16) * 257 / 65535, NUMBERS,
    ),
    "pixels with fractions": (
        {"x": GREY[:, None] * 0.99, "y": CLASSES}, ("inputs / 255",), GREY[:, None] * 0.99 / 255, NUMBERS,
    ),
    "pixels in -1..1": ({"x": GREYS * 2 - 1, "y": CLASSES}, ("(inputs + 1) / 2",), (GREYS * 2 - 1 + 1) / 2, NUMBERS),
    "floats in 0..255": ({"x": COLOUR.astype(np.float64), "y": CLASSES}, (), COLOURS, NUMBERS),
    "one feature": ({"x": ROWS[:, 0], "y": CLASSES}, ("inputs[:, None]",), ROWS[:, :1], NUMBERS),
    "targets in a row, as MATLAB has them": ({"x": ROWS, "y": CLASSES[None]}, ("targets.ravel()",), ROWS, NUMBERS),
    "names as records": (
        {"x": ROWS, "y": np.array([(name,) for name in NAMES.tolist()], [("kind", "U3")])},
        ("numpy.stack([array[name] for name in array.dtype.names], -1)",), ROWS, TREES,
    ),
    "days as names": (
        {"x": ROWS, "y": DAYS}, ("array.astype(str)",), ROWS, ("2024-01-01", "2024-01-02", "2024-01-03"),
    ),
    "channels first": ({"x": COLOUR.transpose(0, 3, 1, 2), "y": CLASSES}, (), COLOURS, NUMBERS),
    "items last, as MATLAB has them": (
        {"x": np.moveaxis(GREY, 0, -1), "y": CLASSES}, ("numpy.moveaxis(inputs, -1, 0)",), GREYS, NUMBERS,
    ),
    "pictures as rows of bytes": ({"x": SQUARE.reshape(12, 64), "y": CLASSES}, ("--size 8x8",), SQUARES, NUMBERS),
    "series, steps first": ({"x": SERIES, "y": CLASSES}, (), SERIES, NUMBERS),
    "series, channels first": (
        {"x": SERIES.transpose(0, 2, 1).astype(np.float32), "y": CLASSES}, (), SERIES.transpose(0, 2, 1), NUMBERS,
    ),
    "series of one channel": ({"x": ROWS[:, None], "y": CLASSES}, (), ROWS[:, None], NUMBERS),
    "series that could be pictures": (
        {"x": SQUARE.astype(float) * 3, "y": CLASSES}, (), SQUARE * 3.0, NUMBERS,
    ),
    "four channels": (
        {"x": np.concatenate([COLOUR, COLOUR[..., :1]], -1), "y": CLASSES}, ("--channels 3",), COLOURS, NUMBERS,
    ),
}  # fmt: skip


def same_items(splits, inputs, classes, class_names):
    """Whether both splits together hold these inputs, each with its class by name."""
    found = {
        np.ascontiguousarray(one.inputs[at]).tobytes(): one.class_names[one.targets[at]]
        for one in splits
        for at in range(len(one))
    }
    wanted = np.ascontiguousarray(inputs, np.float32)
    assert {one.class_names for one in splits} == {class_names}
    assert sum(map(len, splits)) == len(wanted)
    assert found == {one.tobytes(): str(name) for one, name in zip(wanted, classes, strict=True)}


SIGNS = np.where(CLASSES > 0, 1, -1)
CLASSES_OF = {
    NUMBERS: CLASSES, TREES: NAMES, tuple(map(str, np.unique(DAYS))): DAYS,
    ("False", "True"): CLASSES > 0, ("-1", "1"): SIGNS,
}  # fmt: skip
"""The class of each item by its name, for the names of all classes."""


@pytest.mark.parametrize("what", NPZ)
def test_arrays_are_read_as_meant_or_the_line_of_their_sentence_works(tmp_path, what):
    arrays, lines, inputs, class_names = NPZ[what]
    path, words = tmp_path / "it.npz", []
    np.savez(path, **arrays)
    for line in lines:
        with pytest.raises(IdcError) as caught:
            both(path)
        assert line in str(caught.value)
        if line.startswith("--"):
            words += shlex.split(line)
        else:
            held = {"numpy": np, "inputs": arrays["x"], "array": arrays["y"], "targets": arrays["y"]}
            np.savez(path, **arrays | {"x" if "inputs" in line else "y": eval(line, held)})
    same_items(both(path, **prepared(path, words)), inputs, CLASSES_OF[class_names].astype(str), class_names)


def beside(folder, **arrays):
    """Save arrays as npy files of a folder."""
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)


def idx(folder, names, write=lambda content: content):
    """Save both splits as IDX files of these names."""
    for name, one in zip(names, cut(GREY, CLASSES.astype(np.uint8), "abcd").values(), strict=True):
        (folder / name).write_bytes(idx_bytes(one))


EMNIST = [
    f"emnist-digits-{split}-{kind}"
    for split in ("train", "test")
    for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")
]
FOLDERS = {
    "X.npy and y.npy": (lambda folder: beside(folder, X=GREY, y=CLASSES), "X.npy", GREYS),
    "features.npy and labels.npy": (lambda folder: beside(folder, features=ROWS, labels=CLASSES), "features.npy", ROWS),
    "a folder of x_train.npy and so on": (
        lambda folder: beside(folder, **cut(SERIES, CLASSES, ("x_train", "y_train", "x_test", "y_test"))), "", SERIES,
    ),
    "train_X.npy and val_X.npy": (
        lambda folder: beside(folder, **cut(ROWS, CLASSES, ("train_X", "train_y", "val_X", "val_y"))), "train_X.npy",
        ROWS,
    ),
    "IDX as EMNIST calls it": (lambda folder: idx(folder, EMNIST), "", GREYS),
    "IDX with points": (
        lambda folder: idx(folder, ["train-images.idx3-ubyte", "train-labels.idx1-ubyte", "t10k-images.idx3-ubyte",
                                    "t10k-labels.idx1-ubyte"]), "train-images.idx3-ubyte", GREYS,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", FOLDERS)
def test_arrays_beside_each_other_are_read_as_meant(tmp_path, what):
    write, name, inputs = FOLDERS[what]
    write(tmp_path)
    same_items(both(tmp_path / name), inputs, CLASSES.astype(str), NUMBERS)


# -- pictures


def encoded(pixels, mode="RGB", form="PNG", **options):
    """A picture of one of the modes that pictures have."""
    stream = io.BytesIO()
    picture = Image.fromarray(pixels)
    (picture if picture.mode == mode else picture.convert(mode)).save(stream, form, **options)
    return stream.getvalue()


def turned(pixels):
    """A picture that is to be turned by a quarter, as a telephone saves it."""
    exif = Image.Exif()
    exif[0x0112] = 6
    return encoded(np.rot90(pixels).copy(), exif=exif)


def clear(pixels):
    """A grey picture whose right half is transparent."""
    alpha = np.where(np.arange(pixels.shape[1]) < pixels.shape[1] // 2, 255, 0).astype(np.uint8)
    stream = io.BytesIO()
    Image.merge("LA", [Image.fromarray(pixels), Image.fromarray(np.tile(alpha, (len(pixels), 1)))]).save(stream, "PNG")
    return stream.getvalue()


def moving(pixels):
    """An animation whose first picture is this one."""
    stream = io.BytesIO()
    first, other = Image.fromarray(pixels // 128 * 255), Image.fromarray(255 - pixels)
    first.save(stream, "GIF", save_all=True, append_images=[other], duration=20)
    return stream.getvalue()


PLAIN = ("cat/{}.png", "dog/{}.png")
SPLITS = "train/cat/{}.png", "train/dog/{}.png", "test/cat/{}.png", "test/dog/{}.png"
G, C = GREY, COLOUR  # (12, 9, 8) and (12, 9, 8, 3)


def named(*patterns, ending="png"):
    return [pattern.replace("png", ending) for pattern in patterns]


# Names of files, what encodes a picture, the pixels given, and the pixels that they mean (rows, columns or with RGB).
PICTURES = {
    "PNG in class folders": (PLAIN, encoded, C, C),
    "given splits": (SPLITS, encoded, C, C),
    "upper-case endings and spaces": (("my cats/{} 1.PNG", "my dogs/{} 1.PnG"), encoded, C, C),
    "a palette": (PLAIN, lambda one: encoded(one // 128 * 255, "P"), C, C // 128 * 255),
    "grey": (PLAIN, lambda one: encoded(one, "L"), G, G),
    "grey with transparency": (PLAIN, clear, G, G),
    "RGB with opacity": (PLAIN, lambda one: encoded(one, "RGBA"), C, C),
    "one bit": (PLAIN, lambda one: encoded(one, "1", ), G // 128 * 255, G // 128 * 255),
    "16 bits": (PLAIN, lambda one: encoded(one, "I;16"), G.astype(np.uint16) * 257, G),
    "CMYK": (named(*PLAIN, ending="tif"), lambda one: encoded(one, "CMYK", "TIFF"), C, C),
    "turned by Exif": (PLAIN, turned, C, C),
    "moving": (named(*PLAIN, ending="gif"), moving, G, np.stack([G // 128 * 255] * 3, -1)),
    "WebP and BMP": (("cat/{}.bmp", "dog/{}.bmp"), lambda one: encoded(one, "RGB", "BMP"), C, C),
    "a folder in a folder of the same name": (
        ("seg_train/seg_train/cat/{}.png", "seg_train/seg_train/dog/{}.png", "seg_test/seg_test/cat/{}.png",
         "seg_test/seg_test/dog/{}.png"), encoded, C, C,
    ),
    "training_set and test_set": (
        ("training_set/cat/{}.png", "training_set/dog/{}.png", "test_set/cat/{}.png", "test_set/dog/{}.png"), encoded,
        C, C,
    ),
    "folders in class folders": (("cat/2023/{}.png", "dog/2024/{}.png"), encoded, C, C),
}  # fmt: skip
LEFT = {".DS_Store": b"x", "cat/Thumbs.db": b"x", "cat/._1.png": b"x", "readme.txt": b"x", "cat/notes.txt": b"x"}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", ["folder", "zip"])
@pytest.mark.parametrize("what", PICTURES)
def test_pictures_are_read_as_meant(tmp_path, monkeypatch, what, kind):
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "home"))
    patterns, encode, given, meant = PICTURES[what]
    names = [patterns[n % len(patterns)].format(n) for n in range(12)]
    files = dict(zip(names, map(encode, given), strict=True)) | LEFT
    path = tmp_path / ("it.zip" if kind == "zip" else "it")
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
    else:
        for name, content in files.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(content)
    classes = [
        next(part for part in name.split("/") if part.endswith(("cat", "dog", "cats", "dogs"))) for name in names
    ]
    pixels = np.array(meant, np.float32) / np.float32(255)
    pixels = pixels[:, None] if pixels.ndim == 3 else pixels.transpose(0, 3, 1, 2)
    splits = both(path)
    same_items(splits, pixels, classes, tuple(sorted(set(classes))))
    assert ("split as given" in splits[0].notes) == ("t" in patterns[0].split("/")[0].replace("cat", ""))


TEXTS = {
    "texts in class folders": ("pos/{}.txt", "neg/{}.txt"),
    "texts in folders of splits": ("train/pos/{}.txt", "train/neg/{}.txt", "test/pos/{}.txt", "test/neg/{}.txt"),
    "texts as IMDB has them": ("imdb/train/pos/{}_9.txt", "imdb/train/neg/{}_1.txt", "imdb/test/pos/{}_9.txt",
                               "imdb/test/neg/{}_1.txt"),
}  # fmt: skip


@pytest.mark.parametrize("what", TEXTS)
def test_texts_in_folders_are_read_as_meant(tmp_path, what):
    for n in range(12):
        file = tmp_path / "it" / TEXTS[what][n % len(TEXTS[what])].format(n)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(f"Das schöne Stück {n}".encode("latin-1" if n % 3 else "utf-8"))
    (tmp_path / "it" / "readme.txt").write_text("about")
    train, test = both(tmp_path / "it")
    found = {
        text: one.class_names[target]
        for one in (train, test)
        for text, target in zip(one.texts, one.targets, strict=True)
    }
    assert found == {f"Das schöne Stück {n}": ("pos", "neg")[n % 2] for n in range(12)}
    assert train.vocabulary[2:5] == ("das", "schöne", "stück")
    assert train.inputs.shape[1] == 4
