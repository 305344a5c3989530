import gzip
import hashlib
import io

import numpy as np
import pytest
from PIL import Image

from idc_core.datasets import digits as digits_module
from idc_core.datasets import load_dataset
from idc_core.errors import DataError
from tests.datasets.dataset_files import CIFAR_ZIP, cifar_members, write_zip


def test_cifar_pixels_labels_and_order(small):
    data = load_dataset("cifar10", "train")
    members = sorted((n, c) for n, c in cifar_members().items() if n.startswith("train/"))
    order = np.random.RandomState(0).permutation(len(members))
    for position, index in enumerate(order):
        name, content = members[index]
        pixels = np.asarray(Image.open(io.BytesIO(content)), np.float64) / 255
        np.testing.assert_allclose(data.inputs[position], pixels.transpose(2, 0, 1), atol=1e-7)
        assert data.class_names[data.targets[position]] == name.split("/")[1]


def test_the_first_items_of_cifar_are_not_all_of_one_class(places):
    write_zip(places[0] / "cifar10" / CIFAR_ZIP, cifar_members(10))
    assert len(set(load_dataset("cifar10", limit=20).targets.tolist())) > 5


def test_digits_are_split_once_and_for_ever():
    train, test = load_dataset("digits", "train"), load_dataset("digits", "test")
    assert (len(train), len(test)) == (1257, 540)
    _, labels = digits_module._read(digits_module._find())
    parts = digits_module._split_indices(labels)
    assert sorted([*parts["train"], *parts["test"]]) == list(range(1797))
    digest = hashlib.sha256(parts["test"].astype("<i8").tobytes()).hexdigest()
    assert digest == "5613cca4e7f5761afdc2965f7c16baca93e9dead1beae5c6e6e3fc5549ffece7"
    # Every class has its share of the test items, to within one.
    share = np.bincount(labels) * 540 / 1797
    assert np.all(np.abs(np.bincount(test.targets) - share) < 1)


def test_digits_are_scikit_learns_resized_bilinearly():
    from sklearn.datasets import load_digits

    source = load_digits()
    parts = digits_module._split_indices(source.target)
    data = load_dataset("digits", "test")
    np.testing.assert_array_equal(data.targets, source.target[parts["test"]])
    weights = _bilinear(8, 28)
    for image, index in zip(data.inputs, parts["test"], strict=True):
        np.testing.assert_allclose(image[0], weights @ (source.images[index] / 16) @ weights.T, atol=1e-6)


def _bilinear(small, large):
    """Weights of linear interpolation between pixel centres, from its definition."""
    weights = np.zeros((large, small))
    for row in range(large):
        centre = (row + 0.5) * small / large - 0.5
        near = [max(0.0, 1 - abs(centre - column)) for column in range(small)]
        weights[row] = np.array(near) / sum(near)
    return weights


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1,2,3\n", "expected 1,797 digits"),
        (("0," * 64 + "3\n") * 1796, "expected 1,797 digits"),
        (("17," * 64 + "3\n") * 1797, "expected 1,797 digits"),
        (("0," * 64 + "10\n") * 1797, "classes outside"),
        ("a,b\n", "cannot be read"),
    ],
)
def test_a_damaged_copy_of_the_digits_is_refused(tmp_path, monkeypatch, content, message):
    path = tmp_path / "digits.csv.gz"
    path.write_bytes(gzip.compress(content.encode()))
    monkeypatch.setattr(digits_module, "_find", lambda: path)
    with pytest.raises(DataError, match=message):
        load_dataset("digits")


def test_missing_scikit_learn_is_said(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DataError, match="pip install scikit-learn"):
        load_dataset("digits")


def test_missing_file_of_the_digits_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(digits_module, "_find", lambda: tmp_path / "digits.csv.gz")
    with pytest.raises(DataError, match=r"digits\.csv\.gz.*install scikit-learn again"):
        load_dataset("digits")
