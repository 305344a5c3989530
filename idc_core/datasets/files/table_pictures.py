"""Pictures of a table: their bytes in a column, or files beside the table that it names."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets.files.columns import check_whole, value_type
from idc_core.datasets.picture_processor import PictureProcessor
from idc_core.datasets.preparation import Preparation
from idc_core.errors import DataError
from idc_core.guarded import Budget, PictureHeader, picture_header, read_content, read_photo
from idc_core.guarded.photos import ENDINGS

if TYPE_CHECKING:
    import pyarrow as pa


def is_pictures(column: pa.ChunkedArray) -> bool:
    """Whether a column holds pictures: bytes, {bytes, path} as Hugging Face writes them, or names of such files."""
    import pyarrow as pa

    kind = value_type(column)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return True
    if pa.types.is_struct(kind):
        return bool(kind.get_field_index("bytes") >= 0)
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)) or not len(column):
        return False
    return str(column[0].as_py()).lower().endswith(ENDINGS)


def pictures_of(
    column: pa.ChunkedArray, path: Path, budget: Budget, preparation: Preparation, seen: list[PictureHeader]
) -> NDArray[np.uint8]:
    """Return the pictures of a column as uint8 (n, channels, rows, columns); their headers are added to `seen`.

    Raises
    ------
    DataError
        If one is missing, is no whole picture, lies outside the table's folder, or has another size and none was given.
    """
    check_whole(column, str(path))
    channels, size, folder = preparation.channels or 3, preparation.size, preparation.processor
    fit = preparation.fit if size is not None else None
    processor = None if folder is None else PictureProcessor(folder, channels)
    pictures: NDArray[np.uint8] | None = None
    for row, value in enumerate(column):
        where, content = _content(value.as_py(), row, path)
        header = picture_header(io.BytesIO(content), where, turned=size is None)
        seen.append(header)
        if processor is not None:
            made = processor.photo(content, where, preparation.alpha, size)
        else:
            size = size or (header.rows, header.columns)
            ways = {name: getattr(preparation, name) for name in ("resample", "margin", "alpha")}
            made = read_photo(content, where, channels=channels, size=size, fit=fit, **ways)
        if pictures is None:
            size = made.shape[1], made.shape[2]
            budget.take(len(column) * made.size, "its pictures")
            pictures = np.empty((len(column), *made.shape), np.uint8)
        pictures[row] = made
    if pictures is None:
        raise DataError(f"{path} has no rows; expected at least one for training and one for testing.")
    return pictures


def _content(value: object, row: int, path: Path) -> tuple[str, bytes]:
    """Return what is read, for messages, and the bytes of one picture."""
    where = f"{path}, row {row + 1:,}"
    if isinstance(value, dict):
        value = value["bytes"] if value["bytes"] is not None else value.get("path")
    if isinstance(value, bytes):
        return where, value
    if not isinstance(value, str):
        raise DataError(f"{where} has no picture; expected its bytes, or the path of a file.")
    folder = path.parent.resolve()
    try:
        file = (folder / value).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise DataError(f"{where} names the picture {value[:60]!a}, which is no path.") from error
    if not file.is_relative_to(folder):
        raise DataError(
            f"{where} names the picture {value[:60]!a}, which lies outside the table's folder: refused. Copy it "
            "into that folder."
        )
    label = f"{where}: the picture {value[:60]!a}"
    return label, read_content(file, label)
