"""Tables as other people have them: read as meant, or refused by a sentence whose line works."""

import csv
import gzip
import json
import sqlite3
import zipfile

import numpy as np
import pandas as pd
import pytest

from tests.datasets.files.reading import both, refusal
from tests.datasets.files.wild import TREES, Wild, follow, items, points

LABELLED = TREES.rename(columns={"kind": "label"})
ROWS = list(TREES.itertuples(index=False, name=None))
MISSING = [("size", 2, "drop"), ("size", 2, "mean")]


def text(table=LABELLED, sign=",", end="\n", **options):
    return table.to_csv(sep=sign, index=False, lineterminator=end, **options)


def lines(heading, row, count=18):
    """A table of as many rows as `row` writes by their numbers."""
    return "\n".join([*([heading] if heading else []), *(row(n) for n in range(count))]) + "\n"


def meant(*columns, classes=("0", "1"), count=18):
    """Items of columns by functions of the row's number; classes come by turns."""
    return sorted((tuple(float(column(n)) for column in columns), classes[n % len(classes)]) for n in range(count))


def gap(written, **changed):
    """The table with one cell of `size`, that of the third row, written otherwise."""
    return Wild("trees.csv", text().replace("\n1.0,", f"\n{written},"), **changed)


DROPPED = points(TREES.drop(index=2))
FILLED = points(TREES.assign(size=TREES["size"].where(TREES["size"] != 1).fillna(TREES["size"].drop(2).mean())))
EXCEL = text(sign=";", end="\r\n", decimal=",")
TARGETS = ("--targets kind",)
UNNAMED = ("column_1", "column_2")
PAY = [1000.5 + 1010 * n for n in range(18)]
PAID = meant(lambda n: PAY[n], lambda n: n)
PLAIN = "plain"


def pay(sign, write):
    return lines(sign.join(("pay", "age", "label")), lambda n: sign.join((write(PAY[n]), str(n), str(n % 2))))


SIGNS = {
    "pandas, with its index": Wild("trees.csv", LABELLED.to_csv()),
    "pandas, semicolons and decimal commas": Wild("trees.csv", text(sign=";", decimal=",")),
    "Excel: its mark, semicolons, decimal commas": Wild("trees.csv", b"\xef\xbb\xbf" + EXCEL.encode()),
    "Excel: the sign told in the first line": Wild("trees.csv", "sep=;\r\n" + EXCEL),
    "Excel: Unicode text": Wild("trees.txt", text(sign="\t", end="\r\n").encode("utf-16")),
    "UTF-16 without its mark": Wild("trees.csv", text(sign=";").encode("utf-16-be")),
    "Windows letters": Wild(
        "trees.csv", text().replace("oak", "chêne “€”").encode("cp1252"),
        expected=points(TREES.replace("oak", "chêne “€”")), note="read as latin-1",
    ),
    "tabs": Wild("trees.tsv", text(sign="\t")),
    "tabs in a .tab": Wild("trees.tab", text(sign="\t")),
    "tabs in a .csv": Wild("trees.csv", text(sign="\t")),
    "bars": Wild("trees.dat", text(sign="|"), note="bars between columns"),
    "everything quoted": Wild("trees.csv", text(quoting=csv.QUOTE_ALL)),
    "words quoted": Wild("trees.csv", text(quoting=csv.QUOTE_NONNUMERIC, sign=";")),
    "line ends of two kinds": Wild("trees.csv", text().replace("\n", "\r\n", 7)),
    "line ends of old Macs": Wild("trees.csv", text(end="\r")),
    "an empty line behind every other": Wild("trees.csv", text().replace("\n", "\n\n")),
    "spaces behind the commas": Wild("trees.csv", text(LABELLED.astype(str)).replace(",", ", ")),
    "a comma behind every row": Wild("trees.csv", text().replace("\n", ",\n")),
    "a comma behind every row but the heading": Wild(
        "trees.csv", text().replace("\n", ",\n").replace("label,", "label", 1),
    ),
    "a title above": Wild(
        "trees.csv", "Measured in May;;\n;;\n" + text(sign=";"), note="2 lines above the table left out",
    ),
    "comments above": Wild("trees.csv", "# made by a program, v2\n# 18 rows\n" + text()),
    "R: write.table": Wild(
        "trees.txt", lines('"size" "width" "label"', lambda n: '"{}" {} {} "{}"'.format(n + 1, *ROWS[n])),
    ),
    "R: write.csv": Wild(
        "trees.csv", lines('"","size","width","label"', lambda n: '"{}",{},{},"{}"'.format(n + 1, *ROWS[n])),
    ),
    "columns of fixed width": Wild("trees.dat", LABELLED.to_string(index=False), note="blanks between columns"),
    "NumPy: savetxt": Wild(
        "trees.txt", lines("# size width label", lambda n: f"{ROWS[n][0]:.18e} {ROWS[n][1]:.18e} {n % 3:.18e}"),
        expected=points(TREES.assign(kind=[str(n % 3) for n in range(18)])),
    ),
    "files put together, each with its heading": Wild(
        "trees.csv", text() + text(), expected=sorted(2 * points()), note="1 rows that are the heading again left out",
    ),
    "blanks behind every row": Wild(
        "trees.csv", text().replace("\n", " \n"), note="blanks around names of classes left out",
    ),
    "row numbers by reset_index, twice": Wild("trees.csv", text(LABELLED.reset_index().reset_index())),
    "gzipped": Wild("trees.csv.gz", gzip.compress(text().encode())),
}  # fmt: skip

HEADINGS = {
    "species last": Wild("trees.csv", text(TREES.rename(columns={"kind": "species"})), ("--targets species",)),
    "class first": Wild("trees.csv", text(TREES[["kind", "size", "width"]].rename(columns={"kind": "Class"}))),
    "y last": Wild("trees.csv", text(TREES.rename(columns={"kind": "y"}))),
    "diagnosis behind an id": Wild(
        "cells.csv", lines("id,diagnosis,radius", lambda n: f"{842302 + n},{'MB'[n % 2]},{n / 4}"),
        ("--targets diagnosis",), meant(lambda n: n / 4, classes="MB"), (),
    ),
    "label and target": Wild(
        "trees.csv", text(LABELLED.assign(target=[n % 3 for n in range(18)])),
        note="left out, as it tells the targets: target",
    ),
    "no heading, words last, empty lines": Wild(
        "iris.data", text(TREES, header=False) + "\n\n", ("--targets column_3",), names=UNNAMED,
    ),
    "no heading, spaces behind the commas": Wild(
        "adult.data", lines("", lambda n: f"{n + 17}, {n * 10}, {['<=50K', '>50K'][n % 2]}"), ("--targets column_3",),
        meant(lambda n: n + 17, lambda n: n * 10, classes=("<=50K", ">50K")), UNNAMED,
    ),
    "no heading, classes by number first": Wild(
        "wine.data", lines("", lambda n: f"{n % 2 + 1},{n / 2},{n % 9}.5"), ("--targets column_1",),
        meant(lambda n: n / 2, lambda n: n % 9 + 0.5, classes="12"), ("column_2", "column_3"),
    ),
    "labels -1 and 1": Wild(
        "svm.csv", lines("size,label", lambda n: f"{n},{n % 2 * 2 - 1}"), ("--task classification",),
        meant(lambda n: n, classes=("-1", "1")), (),
    ),
    "labels 1.0 and 2.0": Wild(
        "it.csv", lines("size,class", lambda n: f"{n},{n % 2 + 1}.0"), (), meant(lambda n: n, classes="12"), (),
    ),
    "yes and no as labels": Wild(
        "phones.csv", lines("calls,churn", lambda n: f"{n},{['Yes', 'No'][n % 2]}"), ("--targets churn",),
        meant(lambda n: n, classes=("Yes", "No")), (),
    ),
    "a price": Wild(
        "houses.csv", lines("rooms,area,MEDV", lambda n: f"{n % 4},{n},{n / 4 + 0.5}"), ("--targets MEDV",),
        sorted(((float(n % 4), float(n)), n / 4 + 0.5) for n in range(18)), ("rooms", "area"),
    ),
    "amounts in a column called target": Wild(
        "it.csv", lines("size,target", lambda n: f"{n},{100 * n}"), ("--task regression",),
        sorted(((float(n),), 100.0 * n) for n in range(18)), (),
    ),
    "columns without names": Wild(
        "spam.csv", lines("v1,v2,,,", lambda n: f"{['ham', 'spam'][n % 2]},go {n} go,,,"),
        ("--targets v1", "--inputs v2"),
        sorted((f"go {n} go", ["ham", "spam"][n % 2]) for n in range(18)), PLAIN,
    ),
}  # fmt: skip

CELLS = {
    **{f"nothing written {one!r}": gap(one, lines=("--empty drop",), expected=DROPPED) for one in (
        "", ".", "NA", r"\N", "#N/A", "<NA>", "NULL", "None", "n.a.", "--", "#DIV/0!", "-nan")},
    "nothing, filled": gap("?", lines=("--empty mean",), expected=FILLED),
    "-999 is a number": gap("-999", expected=points(TREES.replace({"size": {1.0: -999.0}}))),
    "a column without values": Wild(
        "trees.csv", text(LABELLED.assign(notes=np.nan)), note="left out, as they have no values: notes",
    ),
    "thousands with commas": Wild(
        "pay.csv", pay(",", lambda value: f'"{value:,.2f}"'), expected=PAID, names=("pay", "age"),
    ),
    "thousands with commas in semicolons": Wild(
        "pay.csv", pay(";", lambda value: f"{value:,.1f}"), expected=PAID, names=("pay", "age"),
    ),
    "thousands with points": Wild(
        "pay.csv", pay(";", lambda value: f"{value:,.1f}".translate(str.maketrans(",.", ".,"))), expected=PAID,
        names=("pay", "age"),
    ),
    "thousands with thin spaces": Wild(
        "pay.csv", pay(";", lambda value: f"{value:,.1f}".translate(str.maketrans(",.", "\u202f,"))), expected=PAID,
        names=("pay", "age"),
    ),
    "thousands with apostrophes": Wild(
        "pay.csv", pay(";", lambda value: f"{value:,.1f}".replace(",", "'")), expected=PAID, names=("pay", "age"),
    ),
    "decimal commas in quotation marks": Wild(
        "trees.csv",
        lines("size,width,label", lambda n: '"{}",{},{}'.format(str(ROWS[n][0]).replace(".", ","), *ROWS[n][1:])),
    ),
    "dates": Wild(
        "days.csv",
        lines("day,when,at,size,label", lambda n: f"2024-01-{n + 1:02},{n + 1}-Jan-2024,{n:02}:30,{n},{n % 2}"),
        (), meant(lambda n: n), (), "left out, as dates: day, when, at",
    ),
    "points in time": Wild(
        "days.csv",
        lines("from,to,size,label", lambda n: f"2024-01-01T00:{n:02}:00.000+01:00,2024/1/2 3:{n:02},{n},{n % 2}"),
        (), meant(lambda n: n), (), "left out, as dates: from, to",
    ),
    "true and false": Wild(
        "it.csv", lines("old,size,label", lambda n: f"{['TRUE', 'FALSE'][n % 2]},{n},{n % 3 == 0}"), (),
        sorted(((float(n % 2 == 0), float(n)), str(n % 3 == 0)) for n in range(18)), ("old", "size"),
    ),
    "powers of ten and signs": Wild(
        "it.csv", lines("a,b,label", lambda n: f"{n}E-2,+.5,{n % 2}"), (),
        [((float(np.float32(n / 100)), 0.5), str(n % 2)) for n in range(18)], ("a", "b"),
    ),
    "words among the features": Wild(
        "ship.csv",
        lines("PassengerId,Survived,Pclass,Name,Sex,Age", lambda n:
               f'{n},{n % 2},{n % 3},"Ax, Mr. {n}",{"mf"[n % 2]},{n if n - 4 else ""}'),
        ("--targets Survived", "--inputs PassengerId,Pclass,Age", "--empty drop"),
        sorted(((float(n), float(n % 3), float(n)), str(n % 2)) for n in range(18) if n != 4),
        ("PassengerId", "Pclass", "Age"),
    ),
    "texts with commas, quotation marks and line ends": Wild(
        "tweets.csv", lines("id,tweet,sentiment", lambda n: f'{n},"so, ""{n}""\nnext",{["pos", "neg"][n % 2]}'),
        ("--targets sentiment", "--inputs tweet"),
        sorted((f'so, "{n}"\nnext', ["pos", "neg"][n % 2]) for n in range(18)), PLAIN,
    ),
    "pixels in one cell": Wild(
        "faces.csv", lines("emotion,pixels", lambda n: f"{n % 2},{' '.join(str(n + k) for k in range(4))}"),
        ("--targets emotion",), sorted((tuple(n + k + 0.0 for k in range(4)), str(n % 2)) for n in range(18)), (),
    ),
    "lists in cells": Wild(
        "vectors.csv", lines("label,embedding", lambda n: f'{n % 2},"[{n / 4}, {n}, -1.5]"'), (),
        meant(lambda n: n / 4, lambda n: n, lambda n: -1.5), (),
    ),
    "a row that is too long": Wild(
        "trees.csv", text().replace("oak\n", "oak,3\n", 1),
        ("import pandas; pandas.read_csv('trees.csv', sep=',', on_bad_lines='skip').to_csv('mended.csv', ",),
        DROPPED,
    ),
}  # fmt: skip


def zipped(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("trees.csv", text())


def database(path):
    with sqlite3.connect(path) as held:
        LABELLED.to_sql("trees", held, index=False)


ARFF = "@relation trees\n@attribute size numeric\n@attribute width numeric\n@attribute label {ash,elm,oak}\n@data\n"
LIBSVM = lines("", lambda n: f"{n % 3} 1:{ROWS[n][0]} 2:{ROWS[n][1]}")
RECORDS = LABELLED.to_dict("records")
NULLS = LABELLED.assign(width=LABELLED.width.astype("Int64").where(LABELLED.width != -14))

OTHERS = {
    **{f"JSON, {orient}": Wild("trees.json", LABELLED.to_json(orient=orient))
       for orient in ("records", "columns", "index", "split", "table")},
    "JSON, values": Wild("trees.json", LABELLED.to_json(orient="values"), ("--targets column_3",), names=UNNAMED),
    "JSON, lists by name": Wild("trees.json", json.dumps(LABELLED.to_dict("list"))),
    "JSON, rows below a heading": Wild("trees.json", json.dumps([list(LABELLED), *LABELLED.to_numpy().tolist()])),
    "JSON, records beside what is said of them": Wild("trees.json", json.dumps({"version": 2, "rows": RECORDS})),
    "JSON, records inside records": Wild(
        "trees.json", json.dumps([{"of": {"size": size, "width": width}, "label": kind} for size, width, kind in ROWS]),
        names=("of.size", "of.width"),
    ),
    "JSON, lists": Wild(
        "trees.json", json.dumps([{"of": [size, width], "label": kind} for size, width, kind in ROWS]), names=(),
    ),
    "JSON, null": Wild("trees.json", NULLS.to_json(orient="records"), ("--empty drop",), DROPPED),
    "JSON, keys that are not there": Wild(
        "trees.jsonl", "\n".join(json.dumps({name: row[name] for name in row if row["width"] != -14 or name != "width"})
                                 for row in RECORDS), ("--empty drop",), DROPPED,
    ),
    "JSON lines": Wild("trees.jsonl", LABELLED.to_json(orient="records", lines=True)),
    "JSON lines in a .json": Wild("trees.json", LABELLED.to_json(orient="records", lines=True)),
    "JSON lines, gzipped": Wild(
        "trees.json.gz", gzip.compress(LABELLED.to_json(orient="records", lines=True).encode()),
    ),
    "a JSON list in a .jsonl": Wild("trees.jsonl", b"\xef\xbb\xbf" + LABELLED.to_json(orient="records").encode()),
    "Parquet": Wild("trees.parquet", lambda path: LABELLED.to_parquet(path)),
    "Parquet, an index of words": Wild(
        "trees.parquet", lambda path: LABELLED.set_index(LABELLED.label + "!").to_parquet(path),
    ),
    "Parquet, brotli and categories": Wild(
        "trees.parquet", lambda path: LABELLED.astype({"label": "category"}).to_parquet(path, compression="brotli")
    ),
    "Parquet, null": Wild("trees.parquet", lambda path: NULLS.to_parquet(path), ("--empty drop",), DROPPED),
    "Parquet, days": Wild(
        "trees.parquet", lambda path: LABELLED.assign(day=pd.Timestamp("2024-01-01")).to_parquet(path),
        note="left out, as dates: day",
    ),
    "Feather": Wild(
        "trees.feather", lambda path: LABELLED.to_feather(path),
        ("import pandas; pandas.read_feather('trees.feather').to_csv('trees.csv', index=False)",),
    ),
    "Stata": Wild(
        "trees.dta", lambda path: LABELLED.to_stata(path, write_index=False),
        ("import pandas; pandas.read_stata('trees.dta').to_csv('trees.csv', index=False)",),
    ),
    "bzip2": Wild(
        "trees.csv.bz2", lambda path: LABELLED.to_csv(path, index=False),
        ("import pandas; pandas.read_csv('trees.csv.bz2').to_csv('trees.csv', index=False)",),
    ),
    "a zip file with a table": Wild("trees.zip", zipped, ("python -m zipfile -e trees.zip trees",)),
    "ARFF": Wild(
        "trees.arff", ARFF + text(header=False),
        ("import pandas, scipy.io.arff; pandas.DataFrame(scipy.io.arff.loadarff('trees.arff')[0])",),
    ),
    "LIBSVM": Wild(
        "trees.svm", LIBSVM,
        ("import numpy, sklearn.datasets; x, y = sklearn.datasets.load_svmlight_file('trees.svm')",),
        points(TREES.assign(kind=[str(n % 3) for n in range(18)])), (),
    ),
    "SQLite": Wild("trees.sqlite", database, ("import pandas, sqlite3; db = sqlite3.connect('trees.sqlite')",)),
    "Excel": Wild(
        "trees.xlsx", b"PK", ("import pandas; pandas.read_excel('trees.xlsx').to_csv('trees.csv', index=False)",),
    ),
    "a pickle": Wild("trees.pkl", lambda path: LABELLED.to_pickle(path), ('table.to_parquet("data.parquet")',)),
}  # fmt: skip

WILD = {**SIGNS, **HEADINGS, **CELLS, **OTHERS}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("what", WILD)
def test_a_table_is_read_as_meant_or_the_line_of_its_sentence_works(tmp_path, monkeypatch, what):
    monkeypatch.chdir(tmp_path)
    limit = csv.field_size_limit()  # SciPy sets it for good where it reads ARFF
    monkeypatch.setattr(
        pd, "read_excel", lambda name: LABELLED
    )  # the package that reads Excel's files is not needed here
    file = WILD[what]
    train, test = follow(file, tmp_path, {"table": LABELLED})
    csv.field_size_limit(limit)
    expected = points() if file.expected is None else file.expected
    found = items(train, test)
    assert [target for _, target in found] == [target for _, target in sorted(expected)]
    assert [inputs for inputs, _ in found] == [inputs for inputs, _ in sorted(expected)]
    assert file.names == PLAIN or train.vocabulary == file.names
    assert not file.note or any(file.note in note for note in train.notes), train.notes


@pytest.mark.parametrize("ending", ["txt", "csv"])
def test_a_folder_of_tables_is_read_by_their_names(tmp_path, ending):
    for split, rows in (("train", LABELLED[:12]), ("test", LABELLED[12:])):
        (tmp_path / f"{split}.{ending}").write_text(text(rows))
    train, test = both(tmp_path)
    assert (len(train), len(test), items(train, test)) == (12, 6, points())


def test_the_lines_for_a_folder_of_other_tables_work(tmp_path):
    for split, rows in (("train", LABELLED[:12]), ("test", LABELLED[12:])):
        rows.reset_index(drop=True).to_feather(tmp_path / f"{split}.feather")
    said = refusal(tmp_path)
    line = said[said.index("import pandas") : -1]
    for split in ("train", "test"):
        exec(line.replace("test.", f"{split}."), {})  # noqa: S102 (what a sentence says is done)
    assert items(*both(tmp_path)) == points()
