"""CSV, TSV, Parquet and JSON: which columns are what, and their values."""

import gzip
import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import parquet

from idc_core.datasets import load_dataset
from tests.datasets.files.reading import both, entered, refusal

ROWS = [{"width": 0.5 * n, "height": -n, "label": "dog" if n % 3 else "cat"} for n in range(12)]


def as_csv(rows, comma=","):
    return "\n".join([comma.join(rows[0]), *(comma.join(str(value) for value in row.values()) for row in rows)]) + "\n"


def write(path, rows):
    """Write records into a file whose ending says how."""
    name = path.name
    text = {
        "csv": lambda: as_csv(rows),
        "tsv": lambda: as_csv(rows, "\t"),
        "jsonl": lambda: "\n".join(map(json.dumps, rows)),
        "ndjson": lambda: "\n\n".join(map(json.dumps, rows)) + "\n",
        "json": lambda: json.dumps(rows),
    }
    kind = name.removesuffix(".gz").rpartition(".")[2]
    if kind == "parquet":
        parquet.write_table(pa.Table.from_pylist(rows), path)
    else:
        content = text[kind]().encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def items(*splits):
    """All items of both splits, as pairs that can be compared."""
    return sorted((tuple(one.inputs[at].tolist()), int(one.targets[at])) for one in splits for at in range(len(one)))


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "parquet", "jsonl", "jsonl.gz", "ndjson", "json"])
def test_numbers_are_features_whatever_the_format(tmp_path, ending):
    train, test = both(write(tmp_path / f"it.{ending}", ROWS), test_share=0.25)
    assert (len(train), len(test)) == (9, 3)
    assert items(train, test) == sorted(((0.5 * n, -float(n)), int(n % 3 > 0)) for n in range(12))
    assert train.inputs.dtype == np.float32
    assert (train.vocabulary, train.class_names) == (("width", "height"), ("cat", "dog"))
    assert {"targets: column label", "inputs: 2 columns, width, height"} <= set(train.notes)


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_a_split_column_and_columns_that_are_named(tmp_path, ending):
    splits = ["train", "test", "validation"] * 4
    rows = [{"Id": n, **row, "kind": n % 2, "split": splits[n]} for n, row in enumerate(ROWS)]
    path = write(tmp_path / f"it.{ending}", rows)
    train, test = both(path, inputs="height,width", targets="kind")
    assert train.inputs.tolist() == [[-n, 0.5 * n] for n in (0, 3, 6, 9)]
    assert test.inputs.tolist() == [[-n, 0.5 * n] for n in (1, 4, 7, 10)]
    assert test.targets.tolist() == [1, 0, 1, 0]
    assert "split as given; the validation split is left out" in train.notes
    train, _ = both(path, inputs="width, height", targets="label")
    assert train.vocabulary == ("width", "height")
    without = write(tmp_path / f"plain.{ending}", [{"id": n, **row} for n, row in enumerate(ROWS)])
    assert "left out: id" in both(without)[0].notes


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_texts_with_their_labels(tmp_path, ending):
    texts = [
        "a cat",
        "A dog, and a cat",
        'says "no"\nand <b>yes</b>',
        "=SUM(A1)",
        "\u202eevil \u0661",
        "a a a",
        "x",
        "a",
    ]
    rows = [
        {"split": "train" if n < 6 else "test", "text": '"' + one.replace('"', '""') + '"' if ending == "csv" else one,
         "label": n % 2, "source": "web"}
        for n, one in enumerate(texts)
    ]  # fmt: skip
    train, test = both(write(tmp_path / f"it.{ending}", rows))
    assert train.texts == tuple(texts[:6])
    assert test.texts == ("x", "a")
    assert train.vocabulary[:4] == ("<padding>", "<unknown>", "a", "and")
    assert test.inputs[:, 0].tolist() == [1, 2]
    assert train.inputs.shape == (6, 6)
    assert train.targets.tolist() == [0, 1] * 3
    assert "left out: source" in train.notes
    assert both(tmp_path / f"it.{ending}", length=2)[0].inputs.tolist()[1] == train.inputs[1, :2].tolist()


def test_lists_of_numbers_are_rows(tmp_path):
    rows = [{"values": [n, n / 2, 3], "target": n / 7} for n in range(8)]
    for path in (write(tmp_path / "it.jsonl", rows), write(tmp_path / "it.parquet", rows)):
        train, test = both(path, inputs="values")
        assert train.inputs.shape == (6, 3)
        np.testing.assert_allclose(np.sort(np.concatenate([train.targets, test.targets])), np.arange(8) / 7, rtol=1e-6)
        assert train.task == "regression"
    rows[5]["values"].append(1)
    assert "from 3 to 4 values" in refusal(write(tmp_path / "it.jsonl", rows), inputs="values")


def png(level, size=(6, 5), form="PNG"):
    file = io.BytesIO()
    Image.fromarray(np.full((*size, 3), level, np.uint8)).save(file, form)
    return file.getvalue()


def test_pictures_as_bytes_in_parquet_with_the_names_of_classes(tmp_path):
    image = [{"bytes": png(20 * n), "path": f"{n}.png"} for n in range(8)]
    about = {"info": {"features": {"label": {"names": ["cat", "dog", "fox"], "_type": "ClassLabel"}}}}
    table = pa.table({"image": image, "label": [n % 2 for n in range(8)]})
    parquet.write_table(table.replace_schema_metadata({"huggingface": json.dumps(about)}), tmp_path / "it.parquet")
    train, test = both(tmp_path / "it.parquet")
    assert train.inputs.shape == (6, 3, 6, 5)
    levels = np.concatenate([train.inputs, test.inputs])[:, 0, 0, 0]
    np.testing.assert_array_equal(np.sort(levels), np.arange(8, dtype=np.float32) * 20 / np.float32(255))
    assert np.rint(train.inputs[:, 0, 0, 0] * 255 / 20).astype(int).tolist() != list(range(6))
    assert (np.rint(train.inputs[:, 0, 0, 0] * 255 / 20) % 2 == train.targets).all()
    assert train.class_names == ("cat", "dog", "fox")
    plain = pa.table({"img": [one["bytes"] for one in image], "label": ["a", "b"] * 4})
    parquet.write_table(plain, tmp_path / "plain.parquet")
    assert both(tmp_path / "plain.parquet", channels=1, size=(3, 3))[0].inputs.shape == (6, 1, 3, 3)


@pytest.mark.parametrize(("alpha", "red"), [("drop", 7), ("white", 255)])
def test_transparent_pictures_of_a_table_are_told(tmp_path, alpha, red):
    stream = io.BytesIO()
    Image.new("RGBA", (5, 6), (7, 8, 9, 0)).save(stream, "PNG")
    table = pa.table({"image": [stream.getvalue(), png(7)] * 4, "label": ["a", "b"] * 4})
    parquet.write_table(table, tmp_path / "it.parquet")
    train, _ = both(tmp_path / "it.parquet", alpha=alpha)
    assert sorted(set(np.rint(train.inputs[:, 0, 0, 0] * 255).tolist())) == sorted({7, red})
    told = {"drop": "colours kept as they are, alpha left out", "white": "put on white"}[alpha]
    assert f"4 of 8 pictures have an alpha channel or a transparent colour: {told}" in train.notes


def pictured(folder, names, size=(6, 5)):
    (folder / "images").mkdir(exist_ok=True)
    for number, name in enumerate(names):
        if "/" in name and ".." not in name:
            (folder / name).write_bytes(png(20 * number, size, "PNG" if name.endswith("png") else "JPEG"))
    return write(folder / "it.csv", [{"filename": name, "label": "ab"[n % 2]} for n, name in enumerate(names)])


def test_pictures_that_a_table_names(tmp_path):
    path = pictured(tmp_path, [f"images/{n}.{'png' if n % 2 else 'jpg'}" for n in range(8)])
    train, _ = both(path)
    assert train.inputs.shape == (6, 3, 6, 5)
    assert (np.rint(train.inputs[:, 0, 0, 0] * 255 / 20) % 2 == train.targets).all()
    (tmp_path / "images" / "3.png").write_bytes(png(60, (7, 7)))
    assert "has 7 x 7 pixels (rows x columns) and others 6 x 5" in refusal(path)
    assert both(path, size=(4, 4), channels=1)[0].inputs.shape == (6, 1, 4, 4)
    (tmp_path / "images" / "3.png").write_bytes(b"GIF89a")
    assert "row 4: the picture 'images/3.png' is not a whole picture" in refusal(path)
    (tmp_path / "images" / "3.png").unlink()
    assert "row 4: the picture 'images/3.png' cannot be read" in refusal(path)


@pytest.mark.parametrize("name", ["../secret.png", "/etc/secret.png", "images/link.png", "images/../../secret.png"])
def test_pictures_outside_the_folder_are_refused(tmp_path, name):
    folder = tmp_path / "data"
    folder.mkdir()
    (tmp_path / "secret.png").write_bytes(png(1))
    path = pictured(folder, ["images/0.png", "images/1.png", name])
    (folder / "images" / "link.png").unlink(missing_ok=True)
    (folder / "images" / "link.png").symlink_to(tmp_path / "secret.png")
    assert "outside the table's folder: refused" in refusal(path)


def test_labels_of_a_table(tmp_path):
    def labels(*values, column="label", **preparation):
        rows = [{"x": n, column: value} for n, value in enumerate(values * 4)]
        train, test = both(write(tmp_path / "it.csv", rows), **preparation)
        return train.class_names, sorted({*train.targets.tolist(), *test.targets.tolist()})

    assert labels("1", "0") == (("0", "1"), [0, 1])
    assert labels("7.0", "0.0e0")[0][7] == "7"
    assert labels("0.5", "0.25") == ((), [0.25, 0.5])
    assert labels("2.0", "0.0", column="target") == ((), [0, 2])
    assert labels("2.0", "0.0", column="target", task="classification") == (("0", "1", "2"), [0, 2])
    assert labels("a b", " a", "<i>") == (("<i>", "a", "a b"), [0, 1, 2])
    assert labels("-1", "5", task="regression") == ((), [-1, 5])


REFUSED = {
    "binary": (b"a,label\n1,\xe9\x02\n2,y\n", "no text in UTF-8"),
    "a zero byte": (b"a,label\n1,x\n2,\0\n", "UTF-8"),
    "ragged": (b"a,label\n1,x\n2,y,z\n", "as many values in every row"),
    "nothing": (b"", "no columns"),
    "a heading alone": (b"a,label\n", "no rows"),
    "one row": (b"a,label\n1,x\n", "one class only"),
    "columns twice": (b"a,a,label\n1,2,x\n2,3,y\n", "several columns named 'a'"),
    "a column from right to left": ("\u202ea,label\n1,x\n2,y\n".encode(), r"the column '\u202ea'"),
    "no targets": (
        b"a,b\n1,x\n2,y\n",
        "say which one holds the targets, such as --targets b. Its columns are 'a', 'b'",
    ),
    "no inputs": (b"label\nx\ny\n", "no inputs beside its targets"),
    "columns of words": (b"a,b,label\n1,x,0\n2,y,1\n", "column 'b' is not all numbers (row 1 has 'x')"),
    "a number is missing": (b"a,label\n1,x\n,y\n", "no value in row 2 (1 of 2 rows; columns 'a')"),
    "not finite": (b"a,label\n1,x\n2,y\ninf,x\n", "no value in row 3 (1 of 3 rows; columns 'a'; row 3 has 'inf'"),
    "another split": (b"a,label,split\n1,x,train\n2,y,holdout\n", "the split is 'holdout'"),
    "one split": (b"a,label,split\n1,x,train\n2,y,train\n", "the split train alone"),
    "negative": (b"a,label\n1,-1\n2,0\n", "the class -1"),
    "many columns": (b"label," + b"a," * 1_000_000 + b"b\n", "1,000,002 columns; at most 20,000"),
    "a row without an end": (b"x" * (1 << 18), "a heading that cannot be read (field larger than field limit"),
    "an open quotation mark": (b'a,label\n1,x\n2,"y\n', ""),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_table_is_a_sentence(tmp_path, what):
    content, sentence = REFUSED[what]
    (tmp_path / "it.csv").write_bytes(content)
    said = refusal(tmp_path / "it.csv")
    assert sentence in said
    assert str(tmp_path / "it.csv") in said


JSON_REFUSED = {
    "no records": ("[]", "no records"),
    "no objects": ("[1, 2]", "not of the form expected"),
    "other keys": ('[{"a": 1, "label": 0}, {"a": 1}]', "no value in row 2 (1 of 2 rows; columns 'label')"),
    "several kinds": ('[{"a": 1, "label": 0}, {"a": "x", "label": 1}]', "is not all numbers (row 2 has 'x')"),
    "several kinds, lists too": ('[{"a": [1], "label": 0}, {"a": "x", "label": 1}]', "several kinds"),
    "a key twice": ('[{"a": 1, "a": 2, "label": 0}]', "a key comes twice"),
    "not a number": ('[{"a": NaN, "label": 0}, {"a": 2, "label": 1}]', "no value in row 1"),
    "nothing where a number should be": ('[{"a": null, "label": 0}, {"a": 2, "label": 1}]', "no value in row 1"),
    "objects in it": ('[{"a": [{"b": 1}], "label": 0}, {"a": [{"b": 1}], "label": 1}]', "has lists of struct"),
}


@pytest.mark.parametrize("what", JSON_REFUSED)
def test_records_that_are_no_table_are_a_sentence(tmp_path, what):
    text, sentence = JSON_REFUSED[what]
    (tmp_path / "it.json").write_text(text)
    assert sentence in refusal(tmp_path / "it.json")
    lines = text[1:-1] if "twice" in what else "\n".join(json.dumps(one) for one in json.loads(text))
    (tmp_path / "it.jsonl").write_text(lines)
    assert sentence in refusal(tmp_path / "it.jsonl") or what == "no objects"


def test_the_line_of_a_wrong_record_is_told(tmp_path):
    (tmp_path / "it.jsonl").write_text('{"a": 1, "label": 0}\n\n{"a": 1,\n')
    assert "it.jsonl, line 3 cannot be read as JSON" in refusal(tmp_path / "it.jsonl")


def test_a_byte_order_mark_and_windows_line_ends_are_no_part_of_names(tmp_path):
    (tmp_path / "it.csv").write_bytes(b"\xef\xbb\xbf" + as_csv(ROWS).replace("\n", "\r\n").encode())
    assert both(tmp_path / "it.csv")[0].vocabulary == ("width", "height")


def test_limits_and_fingerprints_of_a_table(tmp_path):
    path = write(tmp_path / "it.csv", ROWS)
    whole = both(path)[0]
    with entered(path) as entry:
        some = load_dataset(entry.name, "train", 4)
        assert entry.input_shape == (2,)
    np.testing.assert_array_equal(some.inputs, whole.inputs[:4])
    assert both(path)[0].fingerprint == whole.fingerprint != some.fingerprint
    assert isinstance(whole.inputs, np.ndarray)
    assert Path(path).exists()
