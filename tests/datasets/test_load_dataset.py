import dataclasses
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from idc_core.cli import main
from idc_core.datasets import DATASETS, load_dataset
from idc_core.datasets.dataset import Items, content_fingerprint
from idc_core.errors import CancelledError, DataError, IdcError

NAMES = ("digits", "mnist", "fashion-mnist", "cifar10", "udacity", "20newsgroups", "sql")
ROOT = Path(__file__).parents[2]


def test_registry_holds_the_datasets_in_the_order_of_the_menus():
    assert tuple(DATASETS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_is_described(name):
    entry = DATASETS[name]
    assert entry.name == name
    assert entry.label
    assert entry.help.endswith(".")
    assert entry.citation
    assert entry.licence
    assert bool(entry.class_names) == (entry.task == "classification")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("split", ["train", "test"])
def test_every_dataset_keeps_the_promises_of_its_type(small, name, split):
    entry, data = DATASETS[name], load_dataset(name, split)
    assert (data.name, data.split, data.task) == (name, split, entry.task)
    assert data.inputs.shape == (len(data), *entry.input_shape)
    assert len(data) == len(data.targets) == len(data.ids) > 0
    assert data.ids.tolist() == list(range(len(data)))
    assert data.class_names == entry.class_names
    assert data.inputs.flags.c_contiguous
    for array in (data.inputs, data.targets, data.ids):
        assert not array.flags.writeable
    if entry.task == "classification":
        assert data.targets.dtype == np.int64
        assert set(data.targets.tolist()) <= set(range(len(entry.class_names)))
    else:
        assert data.targets.dtype == np.float32
    if data.vocabulary:
        assert data.inputs.dtype == np.int64
        assert len(data.texts) == len(data)
    else:
        assert data.inputs.dtype == np.float32
        assert 0 <= data.inputs.min() < data.inputs.max() <= 1
        assert data.texts == ()


def test_what_cannot_be_read_stands_in_nobodys_way(tmp_path, capsys):
    """A file that was refused is not in the registry, where every later command would come upon it."""
    (tmp_path / "bad.csv").write_text("a,b\n1\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"bad\.csv"):
        load_dataset(str(tmp_path / "bad.csv"))
    assert tuple(DATASETS) == NAMES
    assert main(["analyze", "--model", "lenet1-digits", "--data", "sql"]) == 2
    assert "but sql is for classification of inputs of shape" in capsys.readouterr().err


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("limit", [1, 7, 10**6])
def test_limit_keeps_the_first_items(small, name, limit):
    whole, part = load_dataset(name, "train"), load_dataset(name, "train", limit)
    n = min(limit, len(whole))
    assert len(part) == n
    np.testing.assert_array_equal(part.inputs, whole.inputs[:n])
    np.testing.assert_array_equal(part.targets, whole.targets[:n])
    assert part.texts == whole.texts[:n]
    assert part.vocabulary == whole.vocabulary
    assert (part.fingerprint == whole.fingerprint) == (n == len(whole))


@pytest.mark.parametrize("name", NAMES)
def test_fingerprint_is_the_same_twice_and_differs_between_splits(small, name):
    assert load_dataset(name).fingerprint == load_dataset(name, "test").fingerprint
    assert load_dataset(name).fingerprint != load_dataset(name, "train").fingerprint


def test_fingerprint_sees_one_pixel_one_target_one_name_and_the_shape():
    inputs, targets = np.zeros((4, 1, 2, 2), np.float32), np.zeros(4, np.int64)
    pixel, target = inputs.copy(), targets.copy()
    pixel[3, 0, 1, 1] = 1e-6
    target[2] = 1
    variants = [
        (Items(inputs, targets), ("a",)),
        (Items(pixel, targets), ("a",)),
        (Items(inputs, target), ("a",)),
        (Items(inputs, targets), ("b",)),
        (Items(inputs.reshape(4, 1, 1, 4), targets), ("a",)),
        (Items(inputs, targets, vocabulary=("w",)), ("a",)),
    ]
    assert len({content_fingerprint(items, names) for items, names in variants}) == len(variants)
    assert content_fingerprint(Items(inputs.copy(), targets.copy()), ("a",)) == content_fingerprint(*variants[0])


def test_a_dataset_cannot_be_changed(small):
    data = load_dataset("digits", limit=2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.name = "other"
    with pytest.raises(ValueError, match="read-only"):
        data.inputs[0] = 0


def test_unknown_dataset_lists_the_known_ones():
    with pytest.raises(DataError, match=r"'mnits'.*digits, mnist, fashion-mnist, cifar10, udacity, 20newsgroups, sql"):
        load_dataset("mnits")


def test_unknown_split_lists_the_known_ones():
    with pytest.raises(DataError, match=r"'validation'.*train, test"):
        load_dataset("digits", "validation")


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "3"])
def test_limit_must_be_a_whole_number_of_items(limit):
    with pytest.raises(DataError, match="whole number, 1 or more"):
        load_dataset("digits", limit=limit)


@pytest.mark.parametrize("name", NAMES)
def test_progress_is_told_from_nothing_to_all_and_can_stop_the_work(small, name):
    told = []
    load_dataset(name, on_progress=lambda *step: told.append(step))
    assert told[0][0] == 0
    assert told[-1][0] == told[-1][1] > 0
    assert all(label for _, _, label in told)
    with pytest.raises(CancelledError):
        load_dataset(name, on_progress=lambda *step: False)


def test_digits_load_without_importing_anything_heavy():
    code = (
        "import sys, idc_core; before = set(sys.modules);"
        "from idc_core.datasets import load_dataset; load_dataset('digits');"
        "print(sorted({'sklearn', 'scipy', 'pandas', 'torch', 'streamlit'} & (set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("digits", "sql")])
def test_a_missing_file_is_one_sentence_with_both_ways_to_provide_it(places, monkeypatch, name):
    data, home = places
    monkeypatch.setattr("pooch.retrieve", _no_network)
    with pytest.raises(IdcError) as caught:
        load_dataset(name)
    text = str(caught.value)
    assert f"set IDC_DATA to a folder (now: {data})" in text
    assert f"{name}/" in text
    assert str(home) in text
    assert text.endswith(".")
    assert ". " not in text
    assert list(home.iterdir()) == []


def _no_network(*args, **kwargs):
    raise OSError("no route to host")
