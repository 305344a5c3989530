"""Udacity's self-driving car: 5,614 frames of one drive with the steering angle."""

import numpy as np
from numpy.typing import NDArray

from idc_core.base.parameters import LONGEST, shown
from idc_core.base.progress import Progress
from idc_core.datasets.archived_pictures import MAX_EXPANSION, decode_jpegs
from idc_core.datasets.dataset import Items
from idc_core.datasets.entry import Quantity
from idc_core.datasets.files.columns import number_columns
from idc_core.datasets.files.delimited import read_csv
from idc_core.datasets.files.names import listed
from idc_core.datasets.registry import shipped
from idc_core.datasets.sources import obtain
from idc_core.errors import DataError
from idc_core.guarded import Archive, Budget, open_archive

_ZIP = "udacity-center-100x100.zip"
_BLOCKS = 20
_TEST_BLOCKS = (3, 7, 11, 15, 19)
_GUARD_FRAMES = 20  # one second
_MAX_ANGLE = 10.0  # radians; a steering wheel turns less than two rounds each way


@shipped(
    "udacity",
    "Udacity driving",
    "5,614 frames of a 281 s drive, 100x100 colour, with the steering angle in radians (positive = left).",
    task="regression",
    input_shape=(3, 100, 100),
    citation=(
        "Udacity self-driving-car challenge 2, 2016; frames as used by K. Pei, Y. Cao, J. Yang, S. Jana, "
        "DeepXplore: Automated Whitebox Testing of Deep Learning Systems, SOSP 2017"
    ),
    licence="MIT",
    quantity=Quantity("steering angle", "rad", "to the right", "to the left", signed=True),
)
def load(split: str, limit: int | None, on_progress: Progress | None) -> Items:
    """Return images float32 (n, 3, 100, 100) in 0..1 and steering angles float32 (n,), in time order."""
    folder = obtain("udacity", "Udacity driving", [(_ZIP,)], None, on_progress)
    with open_archive(folder / _ZIP, str(folder / _ZIP), expansion=MAX_EXPANSION) as archive:
        frames, angles = _read_steering(archive)
        chosen = _split_frames(len(frames))[split][:limit]
        if not len(chosen):
            raise DataError(
                f"{archive.where} holds only {len(frames)} frames, too few for a {split} split by blocks of "
                "time: copy the whole file."
            )
        names = [f"center/{frames[index]}.jpg" for index in chosen]
        images = decode_jpegs(archive, names, 100, on_progress, "Decoding the drive")
    return Items(images, angles[chosen])


def _split_frames(count: int) -> dict[str, NDArray[np.int64]]:
    """Split frames by blocks of time, never at random: neighbours are nearly the same picture.

    "test" has every fourth of 20 blocks; "train" the others, without those within 20 frames (one second) of a test
    block. Ascending positions, int64.
    """
    frames = np.arange(count)
    edges = [round(block * count / _BLOCKS) for block in range(_BLOCKS + 1)]
    test = np.zeros(count, bool)
    near = np.zeros(count, bool)
    for block in _TEST_BLOCKS:
        first, end = edges[block], edges[block + 1]
        test[first:end] = True
        near[max(0, first - _GUARD_FRAMES) : end + _GUARD_FRAMES] = True
    return {"train": frames[~near], "test": frames[test]}


def _read_steering(archive: Archive) -> tuple[list[str], NDArray[np.float32]]:
    source = f"{archive.where}: steering.csv"
    table = read_csv(archive.read("steering.csv"), source, Budget(source))
    lacking = [name for name in ("frame_id", "steering_angle") if name not in table.column_names]
    if lacking:
        raise DataError(f"{source} lacks the column {', '.join(lacking)}, once; it has {listed(table.column_names)}.")
    frames = table.column("frame_id").to_pylist()
    wrong = next((one for one in frames if not (one.isascii() and one.isdigit() and len(one) <= LONGEST)), None)
    if wrong is not None:
        raise DataError(f"{source}: the frame_id {shown(wrong)} is not a time stamp, a whole number.")
    if len(set(frames)) < len(frames):
        twice = next(frame for place, frame in enumerate(frames) if frame in frames[:place])
        raise DataError(f"{source}: the frame {twice} comes a second time.")
    angles = number_columns(table, ["steering_angle"], source, Budget(source))[:, 0]
    outside = np.flatnonzero(~(abs(angles) <= _MAX_ANGLE))
    if len(outside):
        row = outside[0]
        raise DataError(
            f"{source}, row {row + 1:,}: the steering angle {angles[row]} is not within +-{_MAX_ANGLE:g} radians."
        )
    pictures = {name for name in archive.names if name.startswith("center/")}
    named = {f"center/{frame}.jpg" for frame in frames}
    if pictures != named:
        first = min(pictures ^ named)
        raise DataError(
            f"{archive.where} holds {len(pictures):,} frames but steering.csv {len(named):,} rows, and {first} "
            f"is only in {'the pictures' if first in pictures else 'the table'}: every frame needs one row."
        )
    order = sorted(range(len(frames)), key=lambda place: int(frames[place]))
    return [frames[place] for place in order], angles[order]
