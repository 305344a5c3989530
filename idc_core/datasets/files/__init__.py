"""Data from files: one reader a file, entered into `DATA_FORMATS` by its endings."""

from idc_core.datasets.files import arrays, delimited, folder, idx, json_lines, parquet  # noqa: F401
from idc_core.datasets.formats import DATA_FORMATS  # noqa: F401
