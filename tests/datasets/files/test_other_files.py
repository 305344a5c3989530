"""MATLAB's and HDF5's files: the lines that their sentences offer."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.io

from tests.datasets.files.reading import both, refusal

ROWS = np.arange(36.0).reshape(18, 2)
CLASSES = np.arange(18) % 3
NAMES = np.array(["ash", "elm", "oak"], object)[CLASSES]


@pytest.mark.parametrize("names", [NAMES, NAMES.astype(str), CLASSES, CLASSES[:, None]], ids=str)
@pytest.mark.parametrize("compressed", [False, True])
def test_the_line_of_a_matlab_file_works(tmp_path, monkeypatch, names, compressed):
    monkeypatch.chdir(tmp_path)
    others = {"about": "trees", "settings": {"rate": 1.5}, "count": 18}
    scipy.io.savemat("it.mat", {"X": ROWS, "y": names} | others, do_compression=compressed)
    said = refusal(tmp_path / "it.mat")
    exec(said[said.index("import numpy, scipy.io") : -1], {})  # noqa: S102 (what a sentence says is done)
    train, test = both(tmp_path / "it.npz")
    found = {
        tuple(one.inputs[at].tolist()): one.class_names[one.targets[at]]
        for one in (train, test)
        for at in range(len(one))
    }
    assert found == {tuple(row): str(name) for row, name in zip(ROWS.tolist(), names.ravel().tolist(), strict=True)}


class Part:
    """An array of an HDF5 file, as far as the lines look at it; words are objects, which `asstr` makes texts."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __getitem__(self, key):
        return self.array

    def asstr(self):
        return Part(np.array([word.decode() for word in self.array], object))


class Held(dict):
    """An HDF5 file with its groups, as h5py walks through it: until something is returned."""

    def visititems(self, visit):
        next((key for key, part in self.items() if visit(key, part) is not None), None)


def run(line, monkeypatch, held):
    """Do what a line says with a file that holds this; the library of HDF5 is not needed here."""
    h5py = SimpleNamespace(File=lambda name: Held(held), check_string_dtype=lambda kind: kind.kind == "O")
    monkeypatch.setitem(sys.modules, "h5py", h5py)
    exec(line, {})  # noqa: S102 (what a sentence says is done)


def test_the_line_of_an_hdf5_file_takes_groups_and_words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "it.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    said = refusal(tmp_path / "it.h5")
    words = np.array([name.encode() for name in NAMES], object)
    held = {"train": object(), "test": object()}
    for split, rows in (("train", slice(9)), ("test", slice(9, None))):
        held |= {f"{split}/x": Part(ROWS[rows]), f"{split}/y": Part(words[rows])}
    run(said[said.index("import h5py") : -1], monkeypatch, held)
    for one, rows in zip(both(tmp_path / "it.npz"), (slice(9), slice(9, None)), strict=True):
        np.testing.assert_array_equal(one.inputs, ROWS[rows])
        assert [one.class_names[target] for target in one.targets] == NAMES[rows].tolist()


def test_a_matlab_file_of_version_7_3_has_its_axes_turned(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "it.mat").write_bytes(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(512) + b"\x89HDF\r\n\x1a\n")
    said = refusal(tmp_path / "it.mat")
    cells = np.array([b"reference"], object)
    held = {"X": Part(ROWS.T), "y": Part(CLASSES[None]), "cells": Part(cells), "#refs#/a": Part(ROWS), "s": object()}
    run(said[said.index("import h5py") : -1], monkeypatch, held)
    with np.load("it.npz") as arrays:
        assert sorted(arrays) == ["X", "y"]
    train, test = both(tmp_path / "it.npz")
    found = sorted(
        (*row, target)
        for one in (train, test)
        for row, target in zip(one.inputs.tolist(), one.targets.tolist(), strict=True)
    )
    assert found == [(*row, target) for row, target in zip(ROWS.tolist(), CLASSES.tolist(), strict=True)]
