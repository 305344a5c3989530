"""Results taken apart and made again are the same, whatever they are made of; nothing of others is ever called."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

from idc_core.coverage.profiles import Profiles
from idc_core.errors import DataError
from idc_core.store import UnkeptError, values
from idc_core.store.values import pack, unpack
from idc_core.tracing.traces import Traces


@dataclass(frozen=True)
class Outside:
    number: int = 1


class Pair(NamedTuple):
    first: int
    second: np.ndarray


def same(one, other):
    """Whether two results are equal down to types, shapes, orders and the signs of zeros."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes() if one.dtype != object else one.tolist() == other.tolist()
    elif isinstance(one, float):
        assert math.copysign(1, one) == math.copysign(1, other)
        assert one == other or (math.isnan(one) and math.isnan(other))
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            same(one[key], other[key])
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            same(left, right)
    elif hasattr(one, "__dataclass_fields__"):
        same(vars(one), vars(other))
    else:
        assert one == other


RESULTS = [
    None,
    (True, 0, -(10**40), "a\0b", b"\0\xff", 0.1, -0.0, math.inf, math.nan),
    {"a": [1, (2,)], 3: {}, (4, "b"): frozenset({5}), None: {6, 7}},
    [np.float32(0.1), np.int64(-3), np.bool_(True), np.dtype("float32")],
    np.arange(6.0).reshape(2, 3).T,
    [np.zeros((0, 3), np.float16), np.array(2.5), np.array([True, False]), np.arange(9, dtype=np.uint8)[::-2]],
    np.array([10**30, 1], dtype=object),
    np.array(["ab", "c"]),
    Traces(np.ones((2, 3), np.float32), {"a": np.zeros((2, 1), np.float32)}, {}, {"a": (1, 28)}),
    Profiles.of_mask(np.eye(3, dtype=bool)),
]


@pytest.mark.parametrize("result", RESULTS, ids=range(len(RESULTS)))
def test_a_result_is_made_again_as_it_was(result):
    same(unpack(*pack(result)), result)


def test_an_array_in_two_places_is_kept_once():
    array = np.arange(3)
    tree, arrays = pack({"a": array, "b": (array,)})
    assert len(arrays) == 1
    found = unpack(tree, arrays)
    assert found["a"] is found["b"][0] is array


@pytest.mark.parametrize("value", [object(), Outside(), Pair(1, np.arange(2)), {1: {2: [lambda: 3]}}, 1j, range(3)])
def test_what_is_more_than_values_is_refused(value):
    with pytest.raises(UnkeptError):
        pack(value)


def test_named_tuples_of_the_project_are_kept(monkeypatch):
    monkeypatch.setattr(values, "_PACKAGES", ("tests",))
    same(unpack(*pack(Pair(1, np.arange(2)))), Pair(1, np.arange(2)))


@pytest.mark.parametrize(
    "tree",
    [
        {"object": ["os:system", {"command": "true"}]},
        {"object": ["tests.store.test_values:Outside", {}]},
        {"object": ["idc_core.base.files:os.system", {"command": "true"}]},
        {"object": ["idc_core.base.files:sweep", {}]},
        {"object": ["idc_core.none:Nothing", {}]},
        {"object": ["idc_core.coverage.profiles:Profiles", {"no such field": 1}]},
        {"object": ["idc_core.coverage.profiles:Profiles.of_mask", {"mask": 1}]},
        {"array": "7"},
        {"no such kind": []},
        {"a": 1, "b": 2},
        {"number": ["no type", 1]},
    ],
)
def test_nothing_is_made_but_results_of_the_project(tree):
    with pytest.raises(DataError, match="computed again"):
        unpack(tree, {})
