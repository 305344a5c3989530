"""Cells, names and beginnings of tables as other people have them: read as meant, or a sentence whose line works."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest

from tests.datasets.files.reading import both, refusal
from tests.datasets.files.test_wild_tables import (
    DROPPED,
    FILLED,
    LABELLED,
    NULLS,
    PAID,
    PLAIN,
    RECORDS,
    ROWS,
    gap,
    lines,
    pay,
    text,
)
from tests.datasets.files.wild import TREES, Wild, follow, items, points

NAN = NULLS.astype({"width": float}).to_dict("records")
ENDLESS = [row | {"size": -np.inf} if row["size"] == 1 else row for row in RECORDS]
LISTS = [{"of": [size, width], "label": kind} for size, width, kind in ROWS]
HOLED = [row | {"of": [row["of"][0], None]} if row["of"][1] == -14 else row for row in LISTS]
SQUARES = np.arange(18 * 64).reshape(18, 8, 8) % 256
FIRST_TWICE = text().replace("size,width,label", "size,width,size ,label").replace(
    ",ash", ",7,ash").replace(",elm", ",8,elm").replace(",oak", ",9,oak")  # fmt: skip


def names(heading):
    return text().replace("size,width,label", heading, 1)


def answers(yes, no):
    return Wild(
        "it.csv", lines("old,size,label", lambda n: f"{[yes, no][n % 2]},{n},{n % 3}"), (),
        sorted(((float(n % 2 == 0), float(n)), str(n % 3)) for n in range(18)), ("old", "size"),
        "yes as 1, no as 0: old",
    )  # fmt: skip


def dressed(write, note, sign=","):
    return Wild("pay.csv", pay(sign, write), (), PAID, ("pay", "age"), note)


NUMBERS = {
    **{f"a number written {one!r}": gap(one, lines=("--empty drop",), expected=DROPPED, note=f"row 3 has {one!r}")
       for one in ("inf", "-Infinity", "1e999", "4e38", "<0.5")},
    "an infinite number, filled": gap("inf", lines=("--empty mean",), expected=FILLED),
    "JSON, NaN": Wild("trees.json", json.dumps(NAN), ("--empty drop",), DROPPED),
    "JSON lines, NaN": Wild("trees.jsonl", "\n".join(map(json.dumps, NAN)), ("--empty drop",), DROPPED),
    "JSON lines, Infinity, filled": Wild(
        "trees.jsonl", "\n".join(map(json.dumps, ENDLESS)), ("--empty mean",), FILLED,
    ),
    "JSON, NaN among words": Wild(
        "trees.json", json.dumps([row | {"label": np.nan} if row["size"] == 1 else row for row in RECORDS]),
        ("--empty drop",), DROPPED,
    ),
    "JSON, numbers as numbers and as texts": Wild(
        "trees.json", json.dumps([row | {"size": str(row["size"])} if n % 2 else row for n, row in enumerate(RECORDS)]),
    ),
    "JSON, null in a list": Wild("trees.json", json.dumps(HOLED), ("--empty drop",), DROPPED, ()),
    "JSON, null in place of a text": Wild(
        "it.json", json.dumps([{"text": f"go {n}" if n else None, "label": n % 2} for n in range(18)]),
        ("--empty drop",), sorted((f"go {n}", str(n % 2)) for n in range(1, 18)), PLAIN,
    ),
    "JSON, lists of lists": Wild(
        "it.json", json.dumps([{"image": one.tolist(), "label": n % 2} for n, one in enumerate(SQUARES)]),
        (),
        sorted((tuple((one / np.float32(255)).astype(np.float32).ravel().tolist()), str(n % 2))
               for n, one in enumerate(SQUARES)), (),
    ),
    "Parquet, an infinite number": Wild(
        "trees.parquet", lambda path: LABELLED.replace({"size": {1.0: np.inf}}).to_parquet(path), ("--empty drop",),
        DROPPED,
    ),
    "Parquet, NaN in a list": Wild(
        "trees.parquet",
        lambda path: pd.DataFrame(HOLED).assign(of=[np.array(row["of"], float) for row in HOLED]).to_parquet(path),
        ("--empty drop",), DROPPED, (),
    ),
    "dollars and thousands": dressed(lambda value: f'"${value:,.2f}"', "$ beside numbers left out"),
    "euros behind decimal commas": dressed(
        lambda value: f"{value:.2f} €".replace(".", ","), "€ beside numbers left out", ";"
    ),
    "percent signs": dressed(lambda value: f"{value}%", "% beside numbers left out"),
    "numbers as Excel keeps them texts": dressed(lambda value: f'"=""{value}"""', "marks in numbers left out"),
    "long minus signs": Wild("trees.csv", text().replace("-", "\u2212")),
    "yes and no": answers("Yes", "no"),
    "Y and N": answers("Y", "N"),
    "lists as NumPy prints them": Wild(
        "it.csv", lines("label,of", lambda n: f'{ROWS[n][2]},"array([{ROWS[n][0]},\n {ROWS[n][1]}], dtype=float32)"'),
        names=(),
    ),
    "units below the heading": Wild(
        "trees.csv", names("size,width,label\ncm,mm,"), ("--empty drop",), note="row 1 has 'cm', which counts as none",
    ),
    "the heading again further down": Wild(
        "trees.csv", text().replace("\n1.0,", "\nsize,width,label\n1.0,"), note="the heading again left out",
    ),
    "a total below": Wild("trees.csv", text() + "49.5,99,\n", ("--empty drop",)),
    "a remark below": Wild("trees.csv", text() + "Source: a survey,,\n", ("--empty drop",)),
    "blanks behind some classes": Wild(
        "trees.csv", text().replace("oak", "oak ", 3), note="blanks around names of classes left out",
    ),
    "backslashes before quotation marks": Wild(
        "it.csv", lines("tweet,label", lambda n: f'"so, \\"{n}, too\\" he",{n % 2}'), ("--inputs tweet",),
        sorted((f'so, "{n}, too" he', str(n % 2)) for n in range(18)), PLAIN, "backslashes before quotation marks",
    ),
    "folders that end in a backslash": Wild(
        "it.csv", lines("text,label", lambda n: f'"C:\\{n}\\",{n % 2}'), (),
        sorted((f"C:\\{n}\\", str(n % 2)) for n in range(18)), PLAIN,
    ),
}  # fmt: skip

NAMES = {
    "a name twice": Wild(
        "trees.csv", FIRST_TWICE, ("--inputs 'size (column 1),width'",), names=("size (column 1)", "width"),
    ),
    "the targets' name twice": Wild(
        "trees.csv", text(LABELLED.assign(other=LABELLED.label.str.upper())).replace("other", "label", 1),
        ("--targets 'label (column 4)'", "--inputs size,width"), points(TREES.assign(kind=TREES.kind.str.upper())),
    ),
    "blanks, marks and line ends in names": Wild(
        "trees.csv", names('\ufeff\ufeff size ,"width\n(mm)",label\u00a0'), names=("size", "width (mm)"),
    ),
    "blanks around the name of the targets": Wild("trees.csv", names("size,width, kind "), ("--targets kind",)),
    "row names of R's data sets": Wild(
        "trees.csv", LABELLED.to_csv(index_label="rownames"), note="left out: rownames",
    ),
    "columns called by numbers": Wild("trees.csv", names("0,1,2"), ("--targets 2",), names=("0", "1")),
    "wavelengths": Wild("trees.csv", names("400,402.5,label"), names=("400", "402.5")),
}  # fmt: skip

BEGINNINGS = {
    "Parquet called CSV": Wild(
        "trees.csv", lambda path: LABELLED.to_parquet(path), ("mv trees.csv trees.csv.parquet",),
    ),
    "gzip called CSV": Wild("trees.csv", gzip.compress(text().encode()), ("mv trees.csv trees.csv.gz",)),
    "CSV called gzip": Wild("trees.csv.gz", text()),
}  # fmt: skip

WILD = {**NUMBERS, **NAMES, **BEGINNINGS}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("what", WILD)
def test_a_table_is_read_as_meant_or_the_line_of_its_sentence_works(tmp_path, monkeypatch, what):
    monkeypatch.chdir(tmp_path)
    file = WILD[what]
    train, test = follow(file, tmp_path, {})
    expected = sorted(points() if file.expected is None else file.expected)
    assert items(train, test) == expected
    assert file.names == PLAIN or train.vocabulary == file.names
    assert not file.note or any(file.note in note for note in train.notes), train.notes


def test_columns_of_the_same_name_do_not_matter_where_others_are_asked_for(tmp_path):
    (tmp_path / "trees.csv").write_text(FIRST_TWICE)
    assert items(*both(tmp_path / "trees.csv", inputs=" width ", targets="label")) == sorted(
        ((float(width),), kind) for _, width, kind in ROWS
    )
    said = refusal(tmp_path / "trees.csv", inputs="size", targets="label")
    assert "there are 'size (column 1)', 'width', 'size (column 3)'" in said


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n", "by git lfs pull"),
        (b"\n<!DOCTYPE html><html><body>404</body></html>", "is a web page"),
        (b"PK\x03\x04\x14\0[Content_Types].xml", "it.csv.xlsx"),
        (b"PK\x03\x04\x14\0x.npy", "it.csv.npz"),
    ],
)
def test_what_stands_in_place_of_a_table_is_told(tmp_path, monkeypatch, content, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "it.csv").write_bytes(content)
    assert (f"mv it.csv {sentence}" if sentence.startswith("it.csv") else sentence) in refusal(tmp_path / "it.csv")


def test_numbers_that_were_cut_off_are_told(tmp_path):
    (tmp_path / "it.csv").write_text(lines("of,label", lambda n: f"[0.5 {n} ... 2.5],{n % 2}"))
    assert "whose numbers at the dots were lost when it was written" in refusal(tmp_path / "it.csv")


def test_words_of_many_rows_are_no_empty_cells(tmp_path):
    (tmp_path / "it.csv").write_text(lines("a,b,label", lambda n: f"{'kg' if n < 2 else n},{n},{n % 2}"))
    assert "column 'a' is not all numbers (row 1 has 'kg')" in refusal(tmp_path / "it.csv", empty="drop")


def test_answers_are_those_of_all_splits_where_the_tests_say_yes_alone(tmp_path):
    heading = "old,size,label"
    (tmp_path / "train.csv").write_text(lines(heading, lambda n: f"{['yes', 'no'][n % 2]},{n},{n % 3}"))
    (tmp_path / "test.csv").write_text(lines(heading, lambda n: f"yes,{n},{n % 3}"))
    train, test = both(tmp_path)
    assert set(train.inputs[:, 0]) == {0, 1}
    assert (test.inputs[:, 0] == 1).all()
