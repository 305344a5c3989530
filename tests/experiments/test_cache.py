"""Finished units: found again, never half, never another's, and an interrupted run goes on where it stopped."""

import json

import numpy as np
import pytest

from idc_core.errors import CancelledError, DataError, SettingError
from idc_core.guarded import seal_text
from idc_core.store.cache import ArrayFolder, records_folder, stored

pytestmark = pytest.mark.usefixtures("own_folder")


def files():
    return sorted(records_folder().rglob("*"))


def test_an_interrupted_run_loses_nothing_and_goes_on(finished):
    made = []

    def run(stop_after):
        def work(number):
            if len(made) == stop_after:
                raise CancelledError("Stopped on request.")
            made.append(number)
            return {"square": number**2}

        return [stored("squares", {"number": n}, lambda n=n: work(n))["square"] for n in range(6)]

    with pytest.raises(CancelledError):
        run(4)
    assert (made, finished("squares")) == ([0, 1, 2, 3], 4)
    assert run(99) == [0, 1, 4, 9, 16, 25]
    assert made == [0, 1, 2, 3, 4, 5]
    assert run(0) == [0, 1, 4, 9, 16, 25]  # nothing left to make


def test_a_unit_comes_back_as_it_went_in_and_as_it_would_from_disk():
    record = {"score": 0.1 + 0.2, "none": None, "rows": ((1, 2), (3, 4)), "of": {6: "six"}}
    first = stored("kind", {"a": 1, "b": (2, 3)}, lambda: record)
    again = stored("kind", {"b": [2, 3], "a": 1}, lambda: pytest.fail("it is there"))
    assert first == again == {"score": 0.1 + 0.2, "none": None, "rows": [[1, 2], [3, 4]], "of": {"6": "six"}}


def test_another_key_or_kind_is_another_unit():
    stored("kind", {"seed": 0}, lambda: {"x": 0})
    assert stored("kind", {"seed": 1}, lambda: {"x": 1}) == {"x": 1}
    assert stored("other", {"seed": 0}, lambda: {"x": 2}) == {"x": 2}
    assert stored("kind", {"seed": 0}, lambda: {"x": 3}) == {"x": 0}
    assert stored("kind", {"seed": 0}, lambda: {"x": 4}, fresh=True) == {"x": 4}
    assert stored("kind", {"seed": 0}, lambda: {"x": 5}) == {"x": 4}


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[]",
        b'{"key": {"seed": 0}, "record": {"x": 9}}',
        seal_text("[" * 100_000),
        seal_text('{"key": {"seed": 0}}'),
        seal_text('{"key": {"seed": 1}, "record": {"x": 9}}'),
    ],
    ids=range(7),
)
def test_a_damaged_file_is_made_again_and_the_log_says_so(damage, caplog):
    stored("kind", {"seed": 0}, lambda: {"x": 0})
    (path,) = records_folder().glob("kind/*.json")
    path.write_bytes(damage)
    assert stored("kind", {"seed": 0}, lambda: {"x": 1}) == {"x": 1}
    assert json.loads(path.read_text())["content"] == {"key": {"seed": 0}, "record": {"x": 1}}
    assert f"{path} is damaged and is made again" in caplog.text


def test_no_flipped_bit_of_a_record_passes(caplog):
    stored("kind", {"seed": 0}, lambda: {"x": 0.125})
    (path,) = records_folder().glob("kind/*.json")
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :])
        assert stored("kind", {"seed": 0}, lambda: {"x": 0.5}) == {"x": 0.5}
        path.write_bytes(content)
    assert stored("kind", {"seed": 0}, lambda: pytest.fail("it is there")) == {"x": 0.125}


def test_no_flipped_bit_of_kept_arrays_passes(caplog):
    held = ArrayFolder(records_folder() / "arrays")
    held["a"] = {"x": np.arange(6, dtype=np.float32), "y": np.array("text")}
    (path,) = held.path.iterdir()
    content = path.read_bytes()
    np.testing.assert_array_equal(held["a"]["x"], np.arange(6))
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :])
        assert held.get("a") is None
    assert f"{path} is damaged and is made again" in caplog.text
    path.unlink()
    caplog.clear()
    assert held.get("a") is None
    assert not caplog.text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.float32(1), np.zeros(2), {1, 2}])
def test_what_json_cannot_hold_is_refused_and_leaves_nothing(value):
    with pytest.raises(SettingError, match="record of kind 'kind' cannot be kept"):
        stored("kind", {"seed": 0}, lambda: {"x": value})
    with pytest.raises(SettingError, match="key of kind 'kind' cannot be kept"):
        stored("kind", {"seed": value}, lambda: {"x": 1})
    assert not [path for path in files() if path.is_file()]


def test_failed_work_leaves_nothing():
    with pytest.raises(ZeroDivisionError):
        stored("kind", {"seed": 0}, lambda: {"x": 1 / 0})
    assert not files()


def test_a_folder_that_cannot_be_written_is_explained(tmp_path):
    (tmp_path / "runs").write_text("in the way")
    with pytest.raises(DataError, match="IDC_HOME"):
        stored("kind", {"seed": 0}, lambda: {"x": 1})


def test_a_kind_cannot_leave_the_folder():
    with pytest.raises(SettingError, match="one word"):
        stored("../elsewhere", {}, lambda: {})
