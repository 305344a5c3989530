"""Data from files: one reader a file, entered into `DATA_FORMATS` by its endings."""

from idc_core.datasets.files import arrays, delimited, folder, idx, json_lines, parquet  # noqa: F401
from idc_core.datasets.formats import DATA_FORMATS, ReadTable, ending_of


def table_reader(name: str) -> ReadTable | None:
    """Return the reader of a table by its file's name; None for files of other kinds."""
    ending = ending_of(name)
    return DATA_FORMATS[ending].read_table if ending else None
