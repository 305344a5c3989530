"""Tables as people have them: other signs, no heading, empty cells, dates, latin-1, and names of targets."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.datasets.files.reading import both, refusal

KINDS = ["setosa", "virginica", "versicolor"]


def rows(count=30):
    return [(n / 4, -n, KINDS[n % 3]) for n in range(count)]


def text(sign=",", heading="width,height,label", decimal=".", lines=None):
    head = [sign.join(heading.split(","))] if heading else []
    body = [sign.join((str(w).replace(".", decimal), str(h), kind)) for w, h, kind in lines or rows()]
    return "\n".join([*head, *body]) + "\n"


def points(*splits):
    return sorted(
        (*map(float, one.inputs[at]), one.class_names[one.targets[at]]) for one in splits for at in range(len(one))
    )


EXPECTED = sorted((w, float(h), kind) for w, h, kind in rows())

FORMS = {
    "semicolons": (text(";"), "semicolons between columns"),
    "semicolons and decimal commas": (text(";", decimal=","), "decimal commas"),
    "tabs in a CSV": (text("\t"), None),
    "tabs and decimal commas": (text("\t", decimal=","), "decimal commas"),
    "bars": (text("|"), "bars between columns"),
    "Windows": (text().replace("\n", "\r\n"), None),
}


@pytest.mark.parametrize("what", FORMS)
def test_signs_between_columns_are_told(tmp_path, what):
    content, note = FORMS[what]
    (tmp_path / "it.csv").write_bytes(content.encode())
    train, test = both(tmp_path / "it.csv")
    assert points(train, test) == EXPECTED
    assert note is None or note in train.notes


def test_thousands_with_points_and_quoted_signs(tmp_path):
    (tmp_path / "it.csv").write_text('"a;b";c;label\n"1.234,5";1;x\n2,5;"2";"y;z"\n3,5;3;x\n4;4;x\n')
    train, test = both(tmp_path / "it.csv", test_share=0.25)
    assert sorted(np.concatenate([train.inputs, test.inputs])[:, 0].tolist()) == [2.5, 3.5, 4, 1234.5]
    assert train.class_names == ("x", "y;z")


def test_a_comma_between_columns_is_no_decimal_comma(tmp_path):
    (tmp_path / "it.csv").write_text("text,label\n" + "\n".join(f"one; two {n},{n % 2}" for n in range(8)))
    assert both(tmp_path / "it.csv")[0].texts[0].startswith("one; two ")


def test_a_table_without_a_heading(tmp_path):
    (tmp_path / "iris.data.csv").write_text(text(heading=""))
    said = refusal(tmp_path / "iris.data.csv")
    assert "such as --targets column_3" in said
    train, test = both(tmp_path / "iris.data.csv", targets="column_3")
    assert points(train, test) == EXPECTED
    assert "no heading: columns are called column_1 and so on" in train.notes
    (tmp_path / "numbers.csv").write_text("\n".join(f"{n % 3},{n}.5,{n}" for n in range(20)))
    train, test = both(tmp_path / "numbers.csv", targets="column_1")
    assert len(train) + len(test) == 20


@pytest.mark.parametrize("heading", ["0,1,label", "1,2,label", "2019,2020,label", "0,1,2"])
def test_numbers_that_name_columns_are_a_heading(tmp_path, heading):
    (tmp_path / "it.csv").write_text(text(heading=heading))
    train, test = both(tmp_path / "it.csv", targets=heading.split(",")[-1])
    assert points(train, test) == EXPECTED


@pytest.mark.parametrize("nothing", ["", "NA", "?", "nan", " "])
def test_empty_cells_are_named_and_left_out_or_filled_on_request(tmp_path, nothing):
    lines = [(w, h, kind) for w, h, kind in rows()]
    lines[3] = (nothing, -3, KINDS[0])
    lines[7] = (7 / 4, nothing, KINDS[1])
    (tmp_path / "it.csv").write_text(text(lines=lines))
    said = refusal(tmp_path / "it.csv")
    assert "has no value in row 4, 8 (2 of 30 rows; columns 'width', 'height')" in said
    assert "--empty drop" in said
    train, test = both(tmp_path / "it.csv", empty="drop")
    assert points(train, test) == sorted(EXPECTED[n] for n in range(30) if EXPECTED[n][1] not in (-3, -7))
    assert "2 rows with empty cells left out ('width', 'height')" in train.notes
    train, test = both(tmp_path / "it.csv", empty="mean")
    mean = np.mean([n / 4 for n in range(30) if n != 3])
    assert len(train) + len(test) == 30
    assert any(np.isclose(w, mean) and h == -3 for w, h, _ in points(train, test))
    assert any("1 empty cells of width filled with their mean" in note for note in train.notes)


def test_empty_targets_are_left_out_and_never_filled(tmp_path):
    lines = [(w, h, kind if n != 5 else "") for n, (w, h, kind) in enumerate(rows())]
    (tmp_path / "it.csv").write_text(text(lines=lines))
    assert "has no value in row 6 (1 of 30 rows; columns 'label')" in refusal(tmp_path / "it.csv")
    for way in ("drop", "mean"):
        train, test = both(tmp_path / "it.csv", empty=way)
        assert (len(train) + len(test), train.class_names) == (29, tuple(sorted(KINDS)))


def test_truth_values_and_dates(tmp_path):
    lines = "\n".join(f"{n % 2 == 0},2024-01-{n + 1:02},{n},{'ab'[n % 2]}" for n in range(20))
    (tmp_path / "it.csv").write_text(f"smoker,day,dose,label\n{lines}\n")
    train, test = both(tmp_path / "it.csv")
    assert train.vocabulary == ("smoker", "dose")
    assert sorted(np.concatenate([train.inputs, test.inputs]).tolist()) == [[float(n % 2 == 0), n] for n in (
        *range(1, 20, 2), *range(0, 20, 2))]  # fmt: skip
    assert "left out, as dates: day" in train.notes
    (tmp_path / "it.csv").write_text("x,label\n" + "\n".join(f"{n},{n % 2 == 0}" for n in range(20)))
    assert both(tmp_path / "it.csv")[0].class_names == ("False", "True")


def test_latin_1_is_read_and_binary_files_are_not(tmp_path):
    lines = "\n".join(f"{n},{'Äpfel' if n % 2 else 'Möhren'}" for n in range(12))
    (tmp_path / "it.csv").write_bytes(f"größe,label\n{lines}\n".encode("latin-1"))
    train, _ = both(tmp_path / "it.csv")
    assert train.class_names == ("Möhren", "Äpfel")
    assert "read as latin-1" in train.notes
    (tmp_path / "it.csv").write_bytes(b"a,label\n\x01\x02\xff,x\n2,y\n")
    assert "no text in UTF-8, nor in latin-1" in refusal(tmp_path / "it.csv")


@pytest.mark.parametrize("orient", ["records", "columns", "index", "split", "values", "table"])
def test_every_form_in_which_pandas_writes_a_table(tmp_path, orient):
    table = pd.DataFrame(rows(), columns=["width", "height", "label"])
    table.to_json(tmp_path / "it.json", orient=orient)
    options = {"targets": "column_3"} if orient == "values" else {}
    assert points(*both(tmp_path / "it.json", **options)) == EXPECTED
    table.to_json(tmp_path / "it.jsonl", orient="records", lines=True)
    assert points(*both(tmp_path / "it.jsonl")) == EXPECTED


def test_lists_by_name_are_columns(tmp_path):
    table = pd.DataFrame(rows(), columns=["width", "height", "label"])
    (tmp_path / "it.json").write_text(json.dumps(table.to_dict("list")))
    assert points(*both(tmp_path / "it.json")) == EXPECTED


@pytest.mark.parametrize("name", ["species", "diagnosis", "Survived", "plant kind"])
def test_the_line_that_names_the_targets_is_offered(tmp_path, name):
    (tmp_path / "it.csv").write_text(text(heading=f"width,height,{name}"))
    said = refusal(tmp_path / "it.csv")
    quoted = f"'{name}'" if " " in name else name
    assert f"such as --targets {quoted}. Its columns are 'width', 'height', '{name}'." in said
    assert points(*both(tmp_path / "it.csv", targets=name)) == EXPECTED


def test_wrong_names_say_what_is_there(tmp_path):
    (tmp_path / "it.csv").write_text(text())
    assert "has no column 'kind'; its columns are 'width', 'height', 'label'" in refusal(
        tmp_path / "it.csv", targets="kind"
    )
    np.savez(tmp_path / "it.npz", x=np.zeros((6, 4), np.float32), classes=np.arange(6) % 2)
    said = refusal(tmp_path / "it.npz", targets="labels")
    assert "has no array 'labels', which --targets names; its arrays are 'classes', 'x'" in said
    (tmp_path / "words.csv").write_text("a,b,c,label\n" + "\n".join(f"{n},word{n},{n},{n % 2}" for n in range(8)))
    assert "such as --inputs a,c." in refusal(tmp_path / "words.csv")


def test_pickles_are_refused_with_what_to_save_instead(tmp_path):
    (tmp_path / "it.pkl").write_bytes(b"\x80\x04.")
    said = refusal(tmp_path / "it.pkl")
    assert 'numpy.savez("data.npz", x=inputs, y=targets)' in said
    (tmp_path / "it.xyz").write_bytes(b"x")
    assert "/files" not in refusal(tmp_path / "it.xyz").replace(str(tmp_path), "")


def test_a_column_of_numbers_called_image_is_a_feature(tmp_path):
    (tmp_path / "it.csv").write_text("image,size,label\n" + "\n".join(f"{n},{2 * n},{n % 2}" for n in range(12)))
    assert both(tmp_path / "it.csv")[0].vocabulary == ("image", "size")


# -- other columns that hold the targets


@pytest.mark.parametrize("other", ["target", "class", "y", "labels"])
def test_a_second_column_of_targets_is_no_input(tmp_path, other):
    lines = "\n".join(f"{n},{KINDS[n % 3]},{n % 3}" for n in range(30))
    (tmp_path / "it.csv").write_text(f"width,label,{other}\n{lines}\n")
    train, _ = both(tmp_path / "it.csv")
    assert train.inputs.shape[1] == 1
    assert f"left out, as it tells the targets: {other}" in train.notes
    train, _ = both(tmp_path / "it.csv", inputs=f"width,{other}")
    assert train.vocabulary == ("width", other)
    train, _ = both(tmp_path / "it.csv", targets=other)
    assert "left out, as it tells the targets: label" in train.notes


def test_coordinates_and_features_that_tell_nothing_stay(tmp_path):
    (tmp_path / "it.csv").write_text("x,y,label\n" + "\n".join(f"{n},{n % 5},{n % 2}" for n in range(20)))
    assert both(tmp_path / "it.csv")[0].vocabulary == ("x", "y")
    (tmp_path / "ship.csv").write_text("class,age,survived\n" + "\n".join(f"{n % 3},{n},{n % 2}" for n in range(24)))
    assert both(tmp_path / "ship.csv", targets="survived")[0].vocabulary == ("class", "age")


# -- what a person says holds


def test_the_task_that_was_said_holds(tmp_path):
    labels = np.arange(40) % 26
    (tmp_path / "it.csv").write_text("x,label\n" + "\n".join(f"{n},{label}" for n, label in enumerate(labels)))
    assert "say so with --task regression, and with --task classification where they are classes" in refusal(
        tmp_path / "it.csv"
    )
    train, _ = both(tmp_path / "it.csv", task="classification")
    assert (train.task, len(train.class_names)) == ("classification", 26)


def test_rows_and_columns_are_what_was_said_of_them(tmp_path):
    random = np.random.default_rng(0)
    np.savez(tmp_path / "it.npz", x=random.integers(0, 17, (20, 8, 8)).astype(np.float32), y=np.arange(20) % 2)
    assert both(tmp_path / "it.npz")[0].inputs.shape[1:] == (1, 8, 8)
    train, _ = both(tmp_path / "it.npz", read_as="series")
    assert (train.inputs.shape[1:], float(train.inputs.max())) == ((8, 8), 16)
    assert "series of 8 x 8 numbers, as they are" in train.notes
