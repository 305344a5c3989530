"""Kinds of files that are not read: the line of Python that makes one of them a file that is."""

from __future__ import annotations

import shlex
from contextlib import suppress
from pathlib import Path

from idc_core.guarded import opened
from idc_core.guarded.opening import File

_BY_PANDAS = "import pandas; pandas.read_{by}({name!r}{more}).to_csv({csv!r}, index=False)"
_BY_READER = {
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".ods"), "excel"),
    **dict.fromkeys((".feather", ".arrow"), "feather"),
    **dict.fromkeys((".csv.bz2", ".csv.xz", ".csv.zst"), "csv"),
    **dict.fromkeys((".json.bz2", ".json.xz"), "json"),
    **dict.fromkeys((".sas7bdat", ".xpt"), "sas"),
    **{".dta": "stata", ".sav": "spss", ".orc": "orc", ".xml": "xml"},
}
_OTHERS = {
    **dict.fromkeys((".jsonl.bz2", ".jsonl.xz"), _BY_PANDAS.replace("{by}", "json").replace("{more}", ", lines=True")),
    **dict.fromkeys(
        (".h5", ".hdf5"),
        "import h5py, numpy; held = {{}}; h5py.File({name!r}).visititems(lambda key, part: held.update("
        "{{key.replace('/', '_'): numpy.array(part.asstr()[()], str) if h5py.check_string_dtype(part.dtype) "
        "else part[()]}}) if hasattr(part, 'shape') else None); numpy.savez({npz!r}, **held)",
    ),
    ".mat": "import numpy, scipy.io; held = scipy.io.loadmat({name!r}, simplify_cells=True); "
    "numpy.savez({npz!r}, **{{key: numpy.array(list(part)) if getattr(part, 'dtype', '') == object else part "
    "for key, part in held.items() if key[0] != '_'}})",
    ".arff": "import pandas, scipy.io.arff; pandas.DataFrame(scipy.io.arff.loadarff({name!r})[0])"
    '.map(lambda cell: cell.decode() if hasattr(cell, "decode") else cell).to_csv({csv!r}, index=False)',
    **dict.fromkeys(
        (".libsvm", ".svm", ".svmlight"),
        "import numpy, sklearn.datasets; x, y = sklearn.datasets.load_svmlight_file({name!r}); "
        "numpy.savez({npz!r}, x=x.toarray(), y=y.astype(int))",
    ),
    **dict.fromkeys(
        (".db", ".sqlite", ".sqlite3"),
        "import pandas, sqlite3; db = sqlite3.connect({name!r}); (table,) = pandas.read_sql("
        "\"select name from sqlite_master where type = 'table'\", db).name; "
        "pandas.read_sql(f'select * from \"{{table}}\"', db).to_csv({csv!r}, index=False)",
    ),
    ".npz.gz": "import gzip, pathlib; pathlib.Path({npz!r}).write_bytes(gzip.open({name!r}).read())",
    ".npy.gz": "import gzip, pathlib; pathlib.Path({npy!r}).write_bytes(gzip.open({name!r}).read())",
}

_MATLAB_7_3 = (
    "import h5py, numpy; held = {{}}; h5py.File({name!r}).visititems(lambda key, part: held.update("
    "{{key.replace('/', '_'): part[()].T.squeeze()}}) if key[0] != '#' and "
    "getattr(part, 'dtype', numpy.dtype('O')).kind in 'biuf' else None); numpy.savez({npz!r}, **held)"
)
"""Of numbers alone: such a file is HDF5, with its axes the other way round."""
_SEEN = 64
_OTHERWISE = {
    b"version https://git-lfs": "is what Git keeps in place of a large file: fetch the file itself by git lfs pull",
    **dict.fromkeys(
        (b"<!doctype html", b"<html"), "is a web page, perhaps an error or a login: download the file itself again"
    ),
}
_KINDS = {
    b"PAR1": ((".parquet",), "a table in Parquet"),
    b"\x1f\x8b": ((".gz",), "compressed by gzip"),
    b"PK\x03\x04": ((".zip", ".npz", ".xlsx", ".xlsm", ".ods"), "a zip file"),
}
"""What files are by their beginnings, and the endings that say so."""
_MEMBERS = {b"[Content_Types]": ".xlsx", b".npy": ".npz"}
"""Names of what lies first in a zip file, and the ending of such a file."""


def from_here(name: str) -> str:
    """Return the path of a file as it is written in the folder where the program was started."""
    path = Path(name)
    with suppress(ValueError):
        path = path.resolve().relative_to(Path.cwd())
    return str(path)


def said_beginning(file: File, path: str) -> str:
    """Say what a file is that its ending does not tell, and what to do; "" where its beginning tells nothing else."""
    with opened(file, path) as stream:
        start = stream.read(_SEEN)
    held = next((text for mark, text in _OTHERWISE.items() if start.lstrip().lower().startswith(mark)), "")
    if held:
        return f"{path} {held}."
    for mark, (endings, what) in _KINDS.items():
        if start.startswith(mark) and not path.lower().endswith(endings):
            ending = next((name for part, name in _MEMBERS.items() if part in start), endings[0])
            line = shlex.join(["mv", from_here(path), from_here(path) + ending])
            return f"{path} is {what}, which its name does not say; rename it: {line}."
    return ""


def line_that_converts(name: str) -> str:
    """Return the line of Python that makes a file of this path one that can be read, or "" where none is known.

    MATLAB's files are of two kinds, which only what is there tells.
    """
    lines = {
        ending: _BY_PANDAS.replace("{by}", by).replace("{more}", "") for ending, by in _BY_READER.items()
    } | _OTHERS
    ending = max((ending for ending in lines if name.lower().endswith(ending)), key=len, default="")
    stem = name.removesuffix(name[-len(ending) :]) if ending else ""
    line = lines.get(ending, "")
    if ending == ".mat" and Path(name).is_file():
        with opened(Path(name), name) as stream:
            line = _MATLAB_7_3 if stream.read(_SEEN).startswith(b"MATLAB 7.3") else line
    made = {kind: f"{stem}.{kind}" for kind in ("csv", "npz", "npy")}
    return line.format(name=name, **made)
