"""A suite as pictures in class folders: what the reader of such folders reads of it."""

import io
import zipfile

import numpy as np
import pytest

from idc_core.datasets.pictures import read_pictures
from idc_core.datasets.preparation import Preparation
from idc_core.errors import DataError
from idc_core.suites import pack_class_folders
from idc_core.suites.custom_tests import SuiteFormat, suite_from_arrays


def suite(shape=(1, 6, 5), names=("7", "shoe", "a/b"), task="classification"):
    random = np.random.default_rng(0)
    inputs = (random.integers(0, 256, (9, *shape)) / 255).astype(np.float32)
    targets = np.arange(9) % len(names) if names else random.random(9)
    return suite_from_arrays(inputs, targets, SuiteFormat(shape, names, task), origin=np.arange(9) - 1)


@pytest.mark.parametrize("channels", [1, 3])
def test_what_is_written_is_read_again(tmp_path, channels):
    made = suite((channels, 6, 5))
    path = tmp_path / "suite.zip"
    path.write_bytes(pack_class_folders(made))
    found = []
    for split in ("train", "test"):
        items = read_pictures(path, Preparation(test_share=0.5), split, None, None)
        found += [
            (items.class_names[target], picture.tobytes())
            for picture, target in zip(np.asarray(items.inputs), items.targets, strict=True)
        ]
    names = ("7", "shoe", "a_b")
    expected = [
        (names[target], picture.tobytes()) for picture, target in zip(made.take(range(9)), made.targets, strict=True)
    ]
    assert sorted(found) == sorted(expected)


def test_names_say_place_and_test():
    with zipfile.ZipFile(io.BytesIO(pack_class_folders(suite()))) as archive:
        assert archive.namelist()[:3] == ["7/0001.png", "shoe/0002-of-test-0.png", "a_b/0003-of-test-1.png"]
    assert pack_class_folders(suite()) == pack_class_folders(suite())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"shape": (4, 6, 5)}, "shape"),
        ({"names": (), "task": "regression"}, "0 classes"),
        ({"names": ("Shoe", "shoe")}, "same folder"),
        ({"names": ("a/b", "a:b")}, "same folder"),
    ],
)
def test_what_has_no_folders_is_refused(given, said):
    with pytest.raises(DataError, match=said):
        pack_class_folders(suite(**given))
