"""Which items become tests."""

import numpy as np
import pytest

from idc_core.datasets.splits import chosen_splits, drawn_split, named_split
from idc_core.errors import DataError


@pytest.mark.parametrize(
    ("name", "found"),
    [("x_train", ("train", "x")), ("train_images", ("train", "images")), ("X-Test", ("test", "X")), ("y", ("", "y")),
     ("t10k-labels-idx1-ubyte", ("test", "labels_idx1_ubyte")), ("val_y", ("validation", "y")), ("test", ("test", "")),
     ("contest_x", ("", "contest_x")), ("", ("", ""))],
)  # fmt: skip
def test_names_tell_a_split(name, found):
    assert named_split(name) == found


def test_tests_come_from_the_test_split_or_else_from_validation():
    assert chosen_splits(["train", "test"], "It") == ({"train": "train", "test": "test"}, "split as given")
    chosen, said = chosen_splits(["train", "validation"], "It")
    assert (chosen["test"], said) == ("validation", "split as given, tests from validation")
    assert chosen_splits(["train", "validation", "test"], "It")[1].endswith("the validation split is left out")
    with pytest.raises(DataError, match=r"^It has the split test alone"):
        chosen_splits(["test"], "It")


@pytest.mark.parametrize("share", [0.01, 0.2, 0.5, 0.99])
@pytest.mark.parametrize("counts", [(50, 30, 20), (97, 2, 1), (1, 1), (2,)])
def test_every_item_is_drawn_once_and_every_class_has_its_share(counts, share):
    targets = np.repeat(np.arange(len(counts)), counts)
    found = drawn_split(targets, share, 0, "It")
    assert sorted(np.concatenate(list(found.values()))) == list(range(len(targets)))
    assert len(found["test"]) == min(max(1, round(share * len(targets))), len(targets) - 1)
    for number, count in enumerate(counts):
        assert abs((targets[found["test"]] == number).sum() - count * len(found["test"]) / len(targets)) < 1


def test_the_seed_alone_tells_which():
    targets = np.arange(100) % 3
    first, again, other = (drawn_split(targets, 0.2, seed, "It")["test"].tolist() for seed in (0, 0, 1))
    assert first == again != other
    assert len(set(targets[first[:10]])) == 3


def test_a_regression_is_drawn_without_classes():
    found = drawn_split(np.linspace(0, 1, 40, dtype=np.float32), 0.25, 0, "It")
    assert len(found["test"]) == 10


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_items_are_a_sentence(count):
    with pytest.raises(DataError, match=f"^It has {count} items; expected at least 2"):
        drawn_split(np.zeros(count, np.int64), 0.2, 0, "It")
