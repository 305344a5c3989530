"""Kinds of files that data can come from: one reader an ending."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from idc_core.base.progress import Progress
from idc_core.base.registry import Registry
from idc_core.datasets.dataset import Items
from idc_core.datasets.other_files import from_here, line_that_converts, said_beginning
from idc_core.datasets.preparation import Preparation
from idc_core.datasets.splits import named_split
from idc_core.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from idc_core.guarded import Budget
    from idc_core.guarded.opening import File

_Read = Callable[[Path, Preparation, str, int | None, Progress | None], Items]
"""Called with (path, preparation, split, limit, on_progress)."""

ReadTable = Callable[["File", str, "Budget"], "pa.Table"]
"""Called with (file, its path or name for messages, budget); raises `DataError` if the file is damaged or too large."""


@dataclass(frozen=True)
class DataFormat:
    """One kind of file: its ending, "/" for a folder of pictures, "/files" for one of others; its name; its readers."""

    ending: str
    label: str
    read: _Read
    read_table: ReadTable | None = None


_PICKLED = (".pkl", ".pickle", ".pt", ".pth", ".joblib", ".bin")

FOLDER, FILES = "/", "/files"
"""Folders of pictures; folders that hold files of the other formats."""

ASIDE = ".txt"
"""Ending of tables that notes have as well, so that in folders others go first."""

DATA_FORMATS: Registry[DataFormat] = Registry("data format")
"""Data formats by the ending of their files."""


def data_format(*endings: str, label: str) -> Callable[[_Read], _Read]:
    """Enter the decorated reader for these endings."""

    def enter(read: _Read) -> _Read:
        for ending in endings:
            DATA_FORMATS.enter(ending, DataFormat(ending, label, read))
        return read

    return enter


def format_of(path: Path) -> DataFormat:
    """Return the format of a file or folder; DataError where there is none for it."""
    if path.is_dir():
        every = list(path.iterdir())
        names = {file.name for file in every if file.is_file()}
        lists = {named_split(Path(name).stem)[0] for name in names if ending_of(name) == ASIDE}
        tables = set(map(ending_of, names)) - {"", ASIDE} or (len(names) == len(every) and lists >= {"train", "test"})
        # A network's folder holds JSON files too; the reader of pictures says what it is.
        return DATA_FORMATS[FILES if FILES in DATA_FORMATS and "config.json" not in names and tables else FOLDER]
    ending = ending_of(path.name)
    if path.suffix.lower() == ".py":
        raise DataError(f"{path} is code, which only `idc_core.open_setup` and --setup read; then give a name of it.")
    if not path.exists():
        raise DataError(f"{path} is not there: give the path of a file or folder.")
    if path.suffix.lower() in _PICKLED:
        raise DataError(
            f"{path} may be a pickle, which can run code when it is read: refused. In Python, where you trust it, save "
            'arrays by numpy.savez("data.npz", x=inputs, y=targets), or a table by table.to_parquet("data.parquet").'
        )
    if not ending and (line := line_that_converts(from_here(str(path)))):
        raise DataError(f"{path} is of a kind that is not read. In Python, this line makes it one that is: {line}.")
    if not ending:
        raise DataError(f"{path} is no data that can be read; expected a folder, or {', '.join(readable())}.")
    if said := said_beginning(path, str(path)):
        raise DataError(said)
    return DATA_FORMATS[ending]


def readable() -> list[str]:
    """Return the endings of files that can be read."""
    return [ending for ending in sorted(DATA_FORMATS) if not ending.startswith("/")]


def ending_of(name: str) -> str:
    """Return the longest ending in the registry that a file's name has, or ""."""
    return max((ending for ending in DATA_FORMATS if name.lower().endswith(ending)), key=len, default="")
