"""Many tables of the same few rows, written as people do: each is read as it was meant, or its advice works."""

import csv
import io
import re
import shlex
from itertools import product

import numpy as np
import pandas as pd
import pytest

from idc_core.errors import IdcError
from tests.datasets.files.reading import both, refusal
from tests.datasets.files.wild import items, prepared

COUNT = 24
TABLE = pd.DataFrame({
    "a": [n * 0.375 - 3.0625 for n in range(COUNT)],
    "b": [n * 7 - 11 for n in range(COUNT)],
    "c": [(n * 5 % 17) / 16 + 0.015625 for n in range(COUNT)],
})  # fmt: skip
LABELS = {
    "words": ["ash", "elm", "oak"],
    "numbers": ["0", "1", "2"],
    "floats": ["0.0", "1.0", "2.0"],
    "tens": ["5", "15", "25"],
    "truth": ["True", "False"],
    "answers": ["yes", "no"],
    "countries": ["NA", "DE", "FR"],
    "levels": ["None", "low", "high"],
    "signs": ["a, b", "c;d", "e|f x"],
    "padded": ["001", "002", "010"],
}
SIGNS = {"commas": ",", "semicolons": ";", "tabs": "\t", "bars": "|"}


def labels(kind):
    return [LABELS[kind][n % len(LABELS[kind])] for n in range(COUNT)]


def meant(table, classes):
    return sorted((tuple(map(float, np.float32(row))), one) for row, one in zip(table.to_numpy(), classes, strict=True))


def rows(write):
    return "\n".join(map(write, range(COUNT))) + "\n"


def _of_signs():
    for (said, sign), kind, first in product(SIGNS.items(), LABELS, (False, True)):
        table, classes = TABLE.copy(), labels(kind)
        table.insert(0 if first else 3, "label", classes)
        expected = meant(TABLE, [one.removesuffix(".0") for one in classes])
        name = f"{said}, {kind} {'first' if first else 'last'}"
        yield name, table.to_csv(sep=sign, index=False), (), expected
        if not first and kind not in ("signs", "floats"):
            yield (
                f"{name}, row numbers and no heading", table.to_csv(sep=sign, header=False),
                ("--targets", "column_5", "--inputs", "column_2,column_3,column_4"), expected,
            )  # fmt: skip
    table, expected = TABLE.assign(label=labels("words")), meant(TABLE, labels("words"))
    for said, sign in SIGNS.items():
        again = pd.read_csv(io.StringIO(table.to_csv()))
        decimal = table.to_csv(sep=sign, decimal=",", index=False, quoting=csv.QUOTE_ALL)
        lines = "\ufeff" + table.to_csv(sep=sign, index=False, lineterminator="\r\n")
        yield f"{said}, row numbers", table.to_csv(sep=sign), (), expected
        yield f"{said}, row numbers twice", again.to_csv(sep=sign), (), expected
        yield f"{said}, decimal commas", decimal, (), expected
        yield f"{said}, lines of Windows", lines, (), expected
        yield f"{said}, UTF-16", table.to_csv(sep=sign, index=False).encode("utf-16"), (), expected
    for gap, kind in product(("", "NA", "None", "nan", "NULL", "?", "-", "n/a"), ("words", "numbers", "a")):
        table = TABLE.assign(label=labels("words" if kind == "a" else kind)).astype(str)
        whole = table.drop(index=4)
        table.loc[4, "a" if kind == "a" else "label"] = gap
        kept = table if kind == "words" and gap else whole  # beside words it is a name, which the notes say
        yield f"{gap!r} among {kind}", table.to_csv(index=False), (), meant(TABLE.loc[kept.index], kept["label"])


def _of_headings():
    kinds = [LABELS["words"][n % 3] for n in range(COUNT)]
    for sign, (one, two) in product(",\t", (("pos", "neg"), ("0", "1"))):
        texts = sorted((f"go to {n} now", (one, two)[n % 2]) for n in range(COUNT))
        ahead = "".join(f"{text}{sign}{label}\n" for text, label in texts)
        yield f"{sign!r}, texts and {one}", ahead, ("--targets", "column_2", "--inputs", "column_1"), texts
        behind = "".join(f"{label}{sign}{text}\n" for text, label in texts)
        yield f"{sign!r}, {one} and texts", behind, ("--targets", "column_1", "--inputs", "column_2"), texts
    yield (
        "zero and one first",
        "0,1\n" + "\n".join(f"{n % 2},{(n + 1) // 2 % 2}" for n in range(1, COUNT)),
        ("--targets", "column_2"),
        sorted(((float(n % 2),), str((n + 1) // 2 % 2) if n else "1") for n in range(COUNT)),
    )
    yield (
        "years",
        "region,2010,2011,label\n" + rows(lambda n: f"r{n},{n}.5,{n}.25,{kinds[n]}"),
        ("--inputs", "2010,2011"),
        sorted(((n + 0.5, n + 0.25), kinds[n]) for n in range(COUNT)),
    )
    yield (
        "wavelengths",
        "350.5,351.0,351.5,kind\n" + rows(lambda n: f"{n},{n}.5,{n}.25,{kinds[n]}"),
        ("--targets", "kind"),
        sorted(((n, n + 0.5, n + 0.25), kinds[n]) for n in range(COUNT)),
    )
    yield (
        "counted columns",
        "0,1,2,label\n" + rows(lambda n: f"{n % 3},{n % 5},{n % 7},{kinds[n]}"),
        (),
        sorted(((float(n % 3), float(n % 5), float(n % 7)), kinds[n]) for n in range(COUNT)),
    )
    yield (
        "a number called split",
        "split,b,label\n" + rows(lambda n: f"{n % 5},{n},{kinds[n]}"),
        (),
        sorted(((float(n % 5), float(n)), kinds[n]) for n in range(COUNT)),
    )
    yield (
        "columns called train and test",
        "train,test,label\n" + rows(lambda n: f"{n},{-n},{kinds[n]}"),
        (),
        sorted(((float(n), float(-n)), kinds[n]) for n in range(COUNT)),
    )


CASES = {name: case for name, *case in (*_of_signs(), *_of_headings())}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("what", CASES)
def test_a_table_is_read_as_it_was_meant(tmp_path, what):
    content, words, expected = CASES[what]
    path = tmp_path / "mine.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    try:
        found = both(path, **prepared(path, words))
    except IdcError as error:
        advice = re.findall(r"--empty drop|--targets \S+[^\s.,]", str(error))
        found = both(path, **prepared(path, [*words, *shlex.split(advice[0])]))
    assert items(*found) == sorted(expected)


def test_a_name_of_a_class_that_means_nothing_is_said(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(TABLE.assign(label=labels("countries")).to_csv())
    assert "NA read as the name of a class, not as a gap" in both(path)[0].notes


@pytest.mark.parametrize("one", ["p|q", "p;q", "p, q", "['p', 'q']"])
def test_targets_of_several_labels_are_refused(tmp_path, one):
    path = tmp_path / "mine.csv"
    alone = ("['p']", "['q']", "[]") if one.startswith("[") else ("p", "q", "r")
    pd.DataFrame({"text": labels("words"), "label": [(*alone, one)[n % 4] for n in range(COUNT)]}).to_csv(path)
    assert "which list several labels; expected one class for each item" in refusal(path)


def test_a_column_for_each_label_is_refused(tmp_path):
    path = tmp_path / "mine.csv"
    table = pd.DataFrame({"text": labels("words"), **{name: [n // k % 2 for n in range(COUNT)] for k, name in enumerate(
        ("toxic", "insult", "threat"), 1)}})  # fmt: skip
    table.to_csv(path, index=False)
    said = refusal(path, targets="insult")
    assert "as labels are of which a row can have several" in said
    assert "are several columns; expected one" in refusal(path, targets="toxic,insult")
    line = said[said.index("table[") : -1].replace("one-label.csv", str(tmp_path / "one-label.csv"))
    exec(line, {"table": table})  # noqa: S102 (what a sentence says is done)
    assert both(tmp_path / "one-label.csv", targets="insult")[0].class_names == ("0", "1")
    pd.get_dummies(table[["text"]].assign(kind=labels("words")), columns=["kind"], dtype=int).to_csv(path)
    assert "they are classes, a column each" in refusal(path, targets="kind_ash")


@pytest.mark.parametrize("sign", [" ", "\t", ","])
def test_a_list_of_pictures_without_a_heading_keeps_its_first_one(tmp_path, sign):
    from PIL import Image

    for number in range(COUNT):
        Image.new("L", (4, 4), number * 10).save(tmp_path / f"{number}.png")
    path = tmp_path / "val.txt"
    path.write_text(rows(lambda n: f"{n}.png{sign}{n % 3}"))
    found = items(*both(path, targets="column_2", inputs="column_1", channels=1))
    assert found == sorted(((np.float32(n * 10) / np.float32(255),) * 16, str(n % 3)) for n in range(COUNT))
