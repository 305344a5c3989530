import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idc_core.datasets import load_dataset
from idc_core.datasets.udacity import _split_frames
from idc_core.errors import DataError
from tests.datasets.dataset_files import UDACITY_ZIP, picture, udacity_members, write_zip


def slow_split(count):
    """The definition, frame by frame."""
    edges = [round(block * count / 20) for block in range(21)]
    test = [f for b in (3, 7, 11, 15, 19) for f in range(edges[b], edges[b + 1])]
    train = [f for f in range(count) if all(abs(f - t) > 20 for t in test)]
    return train, test


@pytest.mark.parametrize("count", [40, 401, 1234])
def test_split_follows_its_definition(count):
    train, test = slow_split(count)
    split = _split_frames(count)
    assert split["train"].tolist() == train
    assert split["test"].tolist() == test


@given(count=st.integers(20, 20_000))
def test_training_frames_keep_a_second_from_every_test_frame(count):
    split = _split_frames(count)
    assert len(split["test"])
    if len(split["train"]):
        gaps = np.abs(split["train"][:, None] - split["test"][None, :: max(1, len(split["test"]) // 200)])
        assert gaps.min() > 20
    edges = np.flatnonzero(np.diff(split["test"]) > 1)
    assert len(edges) == 4


def test_frames_come_in_time_order_with_their_angles(places):
    members = udacity_members()
    # Neither the order of the rows nor that of the members matters.
    head, *rows = members["steering.csv"].splitlines()
    shuffled = {"steering.csv": "\n".join([head, *reversed(rows)])}
    shuffled.update(reversed(list(members.items())[1:]))
    write_zip(places[0] / "udacity" / UDACITY_ZIP, shuffled)
    data = load_dataset("udacity", "test")
    expected = np.array([float(row.split(",")[1]) for row in rows], np.float32)[slow_split(400)[1]]
    np.testing.assert_array_equal(data.targets, expected)
    assert data.class_names == ()


def refuse(places, message, split="test", **changes):
    members = udacity_members()
    table = changes.get("table", members["steering.csv"])
    members["steering.csv"] = table(members["steering.csv"]) if callable(table) else table
    for name, content in changes.get("members", {}).items():
        members[name] = content
    for name in changes.get("without", ()):
        del members[name]
    write_zip(places[0] / "udacity" / UDACITY_ZIP, members)
    with pytest.raises(DataError, match=message) as caught:
        load_dataset("udacity", split, 1)
    assert UDACITY_ZIP in str(caught.value)


FRAME = "1479425441000000000"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (lambda text: text.replace("steering_angle", "angle"), "lacks the column steering_angle"),
        (lambda text: text.replace("frame_id,steering_angle", "1,b"), "lacks the column frame_id, steering_angle"),
        (
            lambda text: text.replace("angle", "angle,frame_id").replace("\n1", "\n0,1"),
            "lacks the column frame_id, once",
        ),
        (lambda text: text.replace(f"{FRAME},0.000000", f"{FRAME},0_1"), r"not all numbers \(row 1 has '0_1'\)"),
        (lambda text: text.replace(f"{FRAME},0.000000", f"{FRAME},\u0661"), r"not all numbers \(row 1"),
        (lambda text: text.replace(f"{FRAME},", "9" * 5000 + ","), "not a time stamp"),
        ("", "has no columns"),
        (lambda text: text.replace(f"{FRAME},0.000000", f"{FRAME},nan"), "row 1: the steering angle nan"),
        (lambda text: text.replace(f"{FRAME},0.000000", f"{FRAME},inf"), "row 1: the steering angle inf"),
        (lambda text: text.replace(f"{FRAME},0.000000", f"{FRAME},90"), "row 1: the steering angle 90.0"),
        (lambda text: text.replace(f"{FRAME},0.000000", f"{FRAME},"), "not all numbers"),
        (lambda text: text.replace(f"{FRAME},0.000000", f"{FRAME}"), "no table with as many values in every row"),
        (lambda text: text.replace(f"{FRAME},0.000000", "left,0"), "the frame_id 'left'"),
        (lambda text: text.replace(f"{FRAME},0.000000", "9" * 5_000 + ",0"), "the frame_id '999"),
        (lambda text: text.replace(f"{FRAME},0.000000\n", ""), f"399 rows, and center/{FRAME}.jpg is only in the pic"),
        (lambda text: text + "17,0.1\n", "401 rows, and center/17.jpg is only in the table"),
        (lambda text: text + f"{FRAME},0.1\n", f"the frame {FRAME} comes a second time"),
        (b"\xff\xfe\x00", "no text but binary"),
        (lambda text: text + '"' + "x" * 200_000, "no table with as many values"),
    ],
)
def test_a_wrong_table_is_refused_by_line_and_reason(places, table, message):
    refuse(places, message, table=table)


def test_a_missing_table_or_frame_is_refused(places):
    refuse(places, "no member steering.csv", without=["steering.csv"])
    refuse(places, "399 frames but steering.csv 400 rows", without=[f"center/{FRAME}.jpg"])


def test_a_frame_of_another_size_is_refused(places):
    # The first frame of the first test block.
    frame = f"center/{1_479_425_441_000_000_000 + 50_000_000 * 60}.jpg"
    refuse(places, f"{frame} is 99x99", members={frame: picture(99)})


def test_too_short_a_drive_has_no_training_frames(places):
    write_zip(places[0] / "udacity" / UDACITY_ZIP, udacity_members(60))
    with pytest.raises(DataError, match="holds only 60 frames, too few for a train split"):
        load_dataset("udacity", "train")
    assert len(load_dataset("udacity", "test")) == 15
