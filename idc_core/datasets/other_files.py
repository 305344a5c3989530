"""Kinds of files that are not read: the line of Python that makes one of them a file that is."""

from __future__ import annotations

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
        "import h5py, numpy; held = h5py.File({name!r}); "
        "numpy.savez({npz!r}, **{{key: held[key][()] for key in held}})",
    ),
    ".mat": "import numpy, scipy.io; held = scipy.io.loadmat({name!r}); "
    'numpy.savez({npz!r}, **{{key: held[key] for key in held if key[0] != "_"}})',
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


def line_that_converts(name: str) -> str:
    """Return the line of Python that makes a file of this name one that can be read, or "" where none is known."""
    lines = {
        ending: _BY_PANDAS.replace("{by}", by).replace("{more}", "") for ending, by in _BY_READER.items()
    } | _OTHERS
    ending = max((ending for ending in lines if name.lower().endswith(ending)), key=len, default="")
    stem = name.removesuffix(name[-len(ending) :]) if ending else ""
    made = {kind: f"{stem}.{kind}" for kind in ("csv", "npz", "npy")}
    return lines[ending].format(name=name, **made) if ending else ""
