"""A folder that holds files of one kind: arrays, IDX pairs, or a table per split."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from idc_core.base.progress import Progress
from idc_core.datasets.dataset import Items
from idc_core.datasets.files.arrays import read_npy_folder
from idc_core.datasets.files.idx import ENDINGS, read_idx_folder
from idc_core.datasets.files.names import listed
from idc_core.datasets.files.tables import items_of_table
from idc_core.datasets.formats import ASIDE, DATA_FORMATS, FILES, ReadTable, data_format, ending_of
from idc_core.datasets.preparation import Preparation
from idc_core.datasets.splits import named_split
from idc_core.errors import DataError
from idc_core.guarded import Budget

if TYPE_CHECKING:
    import pyarrow as pa


@data_format(FILES, label="Folder with arrays, tables or IDX files")
def _read_folder(
    path: Path, preparation: Preparation, split: str, limit: int | None, on_progress: Progress | None
) -> Items:
    """Read the files of a folder; files named train and test are the splits."""
    names = sorted(file.name for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
    every = {name: ending_of(name) for name in names}
    endings = {name: ending for name, ending in every.items() if ending not in ("", ASIDE)} or every
    if any(ending in ENDINGS for ending in endings.values()):
        return read_idx_folder(path, preparation, split)
    if any(ending == ".npy" for ending in endings.values()):
        return read_npy_folder(path, preparation, split)
    readers = {name: read for name, ending in endings.items() if ending and (read := DATA_FORMATS[ending].read_table)}
    if not readers:
        raise DataError(f"{path} holds the files {listed(names)}; open one of them, or name tables train and test.")
    return _of_tables(path, readers, preparation, split)


def _of_tables(folder: Path, readers: dict[str, ReadTable], preparation: Preparation, split: str) -> Items:
    by_split: dict[str, list[str]] = {}
    for name in readers:
        # Pieces of a split, such as train-00000-of-00002.parquet, are put together in the order of their names.
        by_split.setdefault(named_split(name.removesuffix(ending_of(name)))[0], []).append(name)
    if "" in by_split and len(readers) > 1:
        raise DataError(
            f"{folder} holds the tables {listed([*readers])}; expected one, or names that begin with train and test."
        )
    if "test" in by_split:
        by_split.pop("validation", None)
    budget = Budget(str(folder))
    tables = {
        name: _joined([readers[piece](folder / piece, str(folder / piece), budget) for piece in pieces], folder)
        for name, pieces in by_split.items()
    }
    return items_of_table(tables, folder / next(iter(readers)), budget, preparation, split)


def _joined(tables: list[pa.Table], folder: Path) -> pa.Table:
    import pyarrow as pa

    if len({tuple(table.column_names) for table in tables}) > 1:
        raise DataError(f"{folder}: the pieces of a split have other columns; expected the same in the same order.")
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise DataError(f"{folder}: the pieces of a split have columns of other types.") from error
