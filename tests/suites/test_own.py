import io
import zipfile

import numpy as np
import pytest

from idc_core.errors import DataError
from idc_core.suites import custom_suite, make_suite, original, union


def packed(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


@pytest.fixture
def tests(digits):
    return {"inputs": digits.inputs[:5].copy(), "targets": digits.targets[:5].copy()}


@pytest.mark.parametrize("compressed", [False, True])
def test_own_tests_are_read(tmp_path, tests, digits, compressed):
    path = tmp_path / "mine.npz"
    (np.savez_compressed if compressed else np.savez)(path, **tests)
    suite = custom_suite(path, digits)
    np.testing.assert_array_equal(suite.take(np.arange(5)), tests["inputs"])
    np.testing.assert_array_equal(suite.targets, tests["targets"])
    assert (suite.origin == -1).all()
    assert suite.name == "own"
    assert suite.provenance[0].label == "5 own tests"
    assert custom_suite(path.read_bytes(), original(digits)).fingerprint == suite.fingerprint
    with path.open("rb") as file:
        assert custom_suite(file, digits).fingerprint == suite.fingerprint


def test_other_ways_to_write_the_same_are_the_same(tests, digits):
    expected = custom_suite(packed(**tests), digits)
    inputs, targets = tests["inputs"], tests["targets"]
    for other in (
        {"inputs": inputs.astype(np.float64), "targets": targets.astype(np.uint8)},
        {"inputs": np.asfortranarray(inputs), "targets": targets},
        {"inputs": inputs.astype(">f4"), "targets": targets.astype(">i2")},
    ):
        suite = custom_suite(packed(**other), digits)
        assert suite.fingerprint == expected.fingerprint
        np.testing.assert_array_equal(suite.take(np.arange(5)), inputs)


def test_bytes_of_pictures_are_scaled(tests, digits):
    shades = np.rint(tests["inputs"] * 255).astype(np.uint8)
    suite = custom_suite(packed(inputs=shades, targets=tests["targets"]), digits)
    np.testing.assert_array_equal(suite.take(np.arange(5)), shades / np.float32(255))


def test_other_targets_are_another_suite(tests, digits):
    other = {**tests, "targets": tests["targets"][::-1].copy()}
    assert custom_suite(packed(**tests), digits).fingerprint != custom_suite(packed(**other), digits).fingerprint


def test_own_tests_can_be_perturbed_and_joined(tests, digits, lenet):
    own = custom_suite(packed(**tests), digits)
    both = union([make_suite("noise", digits), own])
    assert len(both) == 305
    np.testing.assert_array_equal(both.take([300]), tests["inputs"][:1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inputs": np.zeros((5, 28, 28), np.float32)}, r"expected inputs of shape \(n, 1, 28, 28\)"),
        ({"inputs": np.zeros((0, 1, 28, 28), np.float32), "targets": np.zeros(0, int)}, "n at least 1"),
        ({"inputs": np.full((5, 1, 28, 28), 255.0)}, "reach from 255 to 255"),
        ({"inputs": np.full((5, 1, 28, 28), np.nan)}, "0..1"),
        ({"inputs": np.zeros((5, 1, 28, 28), np.int32)}, "floats in 0..1 or as uint8"),
        ({"inputs": np.zeros((5, 1, 28, 28), bool)}, "floats in 0..1 or as uint8"),
        ({"targets": np.zeros(4, int)}, "one target for each of 5 inputs"),
        ({"targets": np.zeros(5)}, "whole numbers in 0..9, not float64"),
        ({"targets": np.full(5, 10)}, "not 10 to 10"),
        ({"targets": np.full(5, -1)}, "not -1 to -1"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(change, message, tests, digits):
    with pytest.raises(DataError, match=message):
        custom_suite(packed(**{**tests, **change}), digits)


def test_missing_arrays_are_named(tests, digits):
    with pytest.raises(DataError, match=r"lacks inputs and targets: .* found x, y"):
        custom_suite(packed(x=tests["inputs"], y=tests["targets"]), digits)
    with pytest.raises(DataError, match="lacks targets"):
        custom_suite(packed(inputs=tests["inputs"]), digits)


class Trap:
    """Were it unpickled, the test would fail."""

    def __reduce__(self):
        return pytest.fail, ("a pickle was read",)


def test_pickles_are_not_read(tests, digits):
    with pytest.raises(DataError, match="Python objects"):
        custom_suite(packed(inputs=np.array([Trap()], object), targets=tests["targets"]), digits)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 but no more", b"inputs,targets\n"])
def test_other_files_are_refused(content, digits, tmp_path):
    with pytest.raises(DataError, match="cut off or not an npz file"):
        custom_suite(content, digits)
    (tmp_path / "mine.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"mine\.npz"):
        custom_suite(tmp_path / "mine.npz", digits)
    with pytest.raises(DataError, match=r"missing\.npz cannot be read: No such file"):
        custom_suite(tmp_path / "missing.npz", digits)


def test_damaged_files_are_refused(tests, digits):
    whole = bytearray(packed(**tests))
    whole[len(whole) // 2] ^= 0xFF
    with pytest.raises(DataError, match="damaged"):
        custom_suite(bytes(whole), digits)


def test_what_is_too_large_is_refused_by_its_header(digits, one_mebibyte):
    many = packed(inputs=np.zeros((400, 1, 28, 28), np.float32), targets=np.zeros(400, int))
    with pytest.raises(
        DataError, match=r"the array would take 1,25\d,\d+ bytes of memory; at most 1,048,576 are allow"
    ):
        custom_suite(many, digits)


def test_a_header_that_promises_too_much_is_found_out(tests, digits):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"shape": (9, 1, 28, 28), "fortran_order": False, "descr": "<f4"})
    file = io.BytesIO(packed(targets=np.zeros(9, int)))
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("inputs.npy", header.getvalue() + tests["inputs"].tobytes())
    with pytest.raises(DataError, match="ends early"):
        custom_suite(file.getvalue(), digits)
