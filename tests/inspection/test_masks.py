"""Masks from files: what they say of every record, and what is refused."""

import io

import numpy as np
import pytest
from PIL import Image

from idc_core.datasets import load_dataset
from idc_core.errors import DataError
from idc_core.inspection import Records
from idc_core.inspection.families.custom import mask_hypothesis


def npy(array, **settings) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **settings)
    return file.getvalue()


def png(array) -> bytes:
    file = io.BytesIO()
    Image.fromarray(array).save(file, "PNG")
    return file.getvalue()


@pytest.fixture(scope="module")
def digits():
    return load_dataset("digits", "test", 5)


@pytest.fixture
def mask(digits):
    found = np.zeros(digits.inputs.shape[2:], bool)
    found[2:4, 1:] = True
    return found


@pytest.mark.parametrize("kind", ["npy", "png"])
def test_a_mask_holds_for_every_record(digits, mask, kind):
    content = npy(mask) if kind == "npy" else png((mask * 255).astype(np.uint8))
    one = mask_hypothesis(f"band.{kind}", content, digits)
    assert (one.name, one.kind) == (f"mask band.{kind}", "binary")
    said = one(Records(digits, np.array([3, 0])))
    np.testing.assert_array_equal(said, np.broadcast_to(mask, (2, *mask.shape)))


def test_what_is_no_mask_of_this_size_is_refused(digits, mask):
    for name, content, said in (
        ("a.npy", npy(mask[1:]), "expected"),
        ("a.npy", b"no array", "no NumPy array"),
        ("a.npy", npy(np.array([{}]), allow_pickle=True), "Python objects"),
        ("a.png", b"no picture", "not a whole PNG picture"),
        ("a.npy", npy(np.full(mask.shape, np.nan)), "finite"),
    ):
        with pytest.raises(DataError, match=said):
            mask_hypothesis(name, content, digits)
