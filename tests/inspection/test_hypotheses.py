"""Ready-made hypotheses say what their names say, on inputs small enough to see."""

import numpy as np
import pytest
import torch

from idc_core.datasets import Dataset, load_dataset
from idc_core.errors import DataError, SettingError
from idc_core.inspection import FAMILIES, Hypothesis, Records, library, shuffled
from idc_core.inspection.blocks import _behaviour_rows, unit_rows
from idc_core.inspection.families import attribute, keyword, predictions, run_of, unit
from tests.inspection.planted import Table, noisy_table, texts

ALPHABET = "SELECT FROMabc1'="
VOCABULARY = ("", "?", *sorted(set(ALPHABET)))


def lines(*written):
    codes = {symbol: code for code, symbol in enumerate(VOCABULARY)}
    length = max(map(len, written))
    inputs = np.array([[codes[symbol] for symbol in text] + [0] * (length - len(text)) for text in written])
    count = len(written)
    return Dataset(
        "lines",
        "test",
        inputs,
        np.arange(count) % 2,
        ("even", "odd"),
        "classification",
        VOCABULARY,
        written,
        np.arange(count),
        "",
    )


def drawing(*rows):
    pictures = np.array([[[symbol == "#" for symbol in row] for row in one] for one in rows], np.float32)[:, None]
    count = len(pictures)
    zeros, ids = np.zeros(count, np.int64), np.arange(count)
    return Dataset("drawing", "test", pictures, zeros, ("a", "b"), "classification", (), (), ids, "")


def behaviour(data, name):
    (found,) = [one for one in library(data) if one.name == name]
    return found(Records(data, np.arange(len(data))))


def shown(row):
    return "".join("x" if value else "." for value in row)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("is a digit", ".........1......"),
        ("is a vowel", "x.x...........x."),
        ("is an upper-case letter", "...xxxxxx......."),
        ("is a space", "..x............."),
        ("is a quotation mark", ".......x........"),
        ("is a comparison sign", "........x......."),
    ],
)
def test_classes_of_characters(name, expected):
    data = lines("ab SELECT1'=a FO")
    wanted = {
        "is a digit": "1",
        "is a vowel": "aEO",
        "is a space": " ",
        "is a quotation mark": "'",
        "is a comparison sign": "=",
    }.get(name)
    expected = "".join(
        "x" if (symbol in wanted if wanted else symbol.isupper()) else "." for symbol in "ab SELECT1'=a FO"
    )
    assert shown(behaviour(data, name)[0]) == expected


def test_values_are_those_of_a_call_in_less_memory():
    data = load_dataset("sql", "test", 50)
    records = Records(data, np.arange(50))
    assert (records.tokens == records.inputs).all()
    assert records.tokens.dtype == np.uint8
    kinds = set()
    for one in library(data):
        values, called = one.values(records), one(records)
        kinds.add((one.kind, values.dtype.name))
        assert called.dtype == np.float32
        assert (values == called).all()
    assert {("binary", "bool"), ("number", "float32")} <= kinds
    symbol = library(data, ["symbols"])[0].name[4:-1]
    assert (behaviour(data, f"is “{symbol}”") == (records.inputs == data.vocabulary.index(symbol))).all()


def test_keywords_are_whole_words():
    data = lines("SELECT aSELECT FROM", "FROM1 SELECT", "SELECTa")
    records = Records(data, np.arange(3))
    assert [shown(row) for row in keyword(data, "SELECT")(records)] == [
        "xxxxxx.............",
        "......xxxxxx.......",
        "...................",
    ]
    assert shown(keyword(data, "FROM")(records)[1]) == "xxxx..............."
    assert not keyword(data, "SELECTSELECTSELECTSELECT")(records).any()
    words = texts()
    words = Dataset(**{**words.__dict__, "vocabulary": ("", "?", "two", "engine", *"efghi")})
    found = keyword(words, "engine")
    assert (found(Records(words, np.arange(5))) == (words.inputs[:5] == 3)).all()


def test_runs_end_where_they_end():
    data = lines("abcabab", "b")
    codes = [VOCABULARY.index(symbol) for symbol in "ab"]
    assert [shown(row) for row in run_of(codes, "ab")(Records(data, np.arange(2)))] == [".x..x.x", "......."]
    assert shown(behaviour(data, "ends “ab”")[0]) == ".x..x.x"


def test_positions_and_places_in_words():
    data = lines("ab SELEC")
    assert behaviour(data, "position")[0].tolist() == list(range(8))
    assert behaviour(data, "place in the word")[0].tolist() == [1, 2, 0, 1, 2, 3, 4, 5]
    assert shown(behaviour(data, "second half")[0]) == "....xxxx"


def test_grammar_of_the_sql_strings():
    data = load_dataset("sql", "test", 200)
    records = Records(data, np.arange(200))
    by_name = {one.name: one for one in library(data, ["grammar", "words"])}
    where = by_name["starts where clause"](records)
    rows, places = np.nonzero(where)
    assert len(rows) > 20
    pieces = [data.texts[row][place : place + 6] for row, place in zip(rows, places, strict=True)]
    assert all("WHERE ".startswith(piece) for piece in pieces)
    inside = by_name["inside where clause"](records)
    assert (inside[where > 0] == 1).all()
    assert (by_name["depth"](records) >= inside).all()
    assert (inside[by_name["word “WHERE”"](records) > 0] == 1).all()


EIGHT = (".......", ".#####.", ".#...#.", ".#####.", ".#...#.", ".#####.", ".......")
OPEN = (".......", ".#####.", ".#.....", ".#####.", ".....#.", ".#####.", ".......")


def test_holes():
    data = drawing(EIGHT, OPEN)
    assert behaviour(data, "has a hole").tolist() == [1, 0]
    assert behaviour(data, "has two holes").tolist() == [1, 0]
    assert np.argwhere(behaviour(data, "in a hole")[0]).tolist() == [[2, 2], [2, 3], [2, 4], [4, 2], [4, 3], [4, 4]]


def test_edges_and_strokes_run_their_way():
    blank = np.zeros((1, 12, 12), np.float32)
    across, down = np.mgrid[0:12, 0:12][1], np.mgrid[0:12, 0:12][0]
    pictures = {
        "horizontal": down >= 6,
        "vertical": across >= 6,
        "falling": across >= down,
        "rising": across + down >= 11,
    }
    inputs = np.stack([blank + picture for picture in pictures.values()]).astype(np.float32)
    data = Dataset(
        "edges", "test", inputs, np.zeros(4, np.int64), ("a", "b"), "classification", (), (), np.arange(4), ""
    )
    for row, name in enumerate(pictures):
        counts = behaviour(data, f"{name} edge")[:, 2:-2, 2:-2].sum((1, 2))
        assert counts.argmax() == row
        assert counts[row] > 0
    strokes = {
        "horizontal": down == 5,
        "vertical": across == 5,
        "falling": across == down,
        "rising": across + down == 11,
    }
    drawn = np.stack([blank + one for one in strokes.values()]).astype(np.float32)
    data = Dataset(**{**data.__dict__, "inputs": drawn})
    for row, name in enumerate(strokes):
        found = behaviour(data, f"{name} stroke")
        assert ((found[row] > 0) == strokes[name]).all()
        assert not np.delete(found, row, 0).any()


def test_ink_in_halves():
    data = drawing(("#.", "##"))
    names = ("ink", "ink above the middle", "ink below the middle", "ink left of the middle", "ink right of the middle")
    found = {name: behaviour(data, name)[0].tolist() for name in names}
    assert found == {
        "ink": [[1, 0], [1, 1]],
        "ink above the middle": [[1, 0], [0, 0]],
        "ink below the middle": [[0, 0], [1, 1]],
        "ink left of the middle": [[1, 0], [1, 0]],
        "ink right of the middle": [[0, 0], [0, 1]],
    }
    assert behaviour(data, "share of ink above")[0] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        (["yes", "no"], "type <U3"),
        ([1 + 0j, 2j], "type complex128"),
        ([None, 1], "type object"),
        (None, "shape"),
        ([0.5, 1], "whole numbers"),
        ([np.inf, 1], "whole numbers"),
    ],
)
def test_behaviours_that_are_no_behaviours_are_refused(behaviour, said):
    odd = Hypothesis("odd", "own", "binary", lambda records: behaviour)
    with pytest.raises(DataError, match=f"'odd' gave .*{said}"):
        odd(Records(drawing(("#.", "##"), ("..", "..")), np.arange(2)))


def test_masks_and_attributes_of_a_person():
    data = drawing(("#.", "##"), ("..", ".."))
    records = Records(data, np.array([1, 0]))
    mask = np.array([[True, False], [False, False]])
    assert attribute("mask", mask, data)(records).tolist() == [mask.tolist()] * 2
    assert attribute("size", np.array([3.0, 0.5]), data)(records).tolist() == [0.5, 3.0]
    assert attribute("size", np.array([3.0, 0.5]), data).kind == "number"
    with pytest.raises(DataError, match="shape"):
        attribute("wrong", np.zeros((3, 3)), data)
    with pytest.raises(DataError, match="rows of equal length"):
        attribute("wrong", [[1, 0], [1]], data)
    with pytest.raises(DataError, match="finite"):
        attribute("wrong", np.array([np.nan, 1]), data)


def test_other_units_and_other_models():
    data = texts(30)
    model = Table(noisy_table())
    records = Records(data, np.arange(30))
    with torch.no_grad():
        expected = model.units(torch.from_numpy(data.inputs))[..., 2].numpy()
        said = model(torch.from_numpy(data.inputs)).argmax(1).numpy()
    assert unit(model, "units", 2)(records) == pytest.approx(expected)
    *each, which = predictions(model, data.class_names, "it")
    assert which(records).tolist() == said.tolist()
    assert each[1](records).tolist() == (said == 1).tolist()
    with pytest.raises(SettingError, match=r"units 0\.\.6"):
        unit(model, "units", 9)(records)


def test_shuffled_behaviours_are_whole_behaviours_of_other_records():
    data = texts(50)
    original = Hypothesis("h", "t", "number", lambda records: records.inputs)
    rows = shuffled(original, 3)(Records(data, np.arange(50)))
    assert sorted(map(tuple, rows.tolist())) == sorted(map(tuple, data.inputs.tolist()))
    assert not (rows == data.inputs).all()
    assert (shuffled(original, 3)(Records(data, np.array([7])))[0] == rows[7]).all()


def test_behaviours_are_brought_to_a_layers_places():
    values = np.array([[0, 1, 0, 0, 0, 0]], np.float32)
    binary, number = (Hypothesis("h", "t", kind, lambda r: r) for kind in ("binary", "number"))
    classes = Hypothesis("h", "t", "classes", lambda r: r, 9)
    assert _behaviour_rows(values, binary, (3,)).tolist() == [1, 0, 0]
    assert _behaviour_rows(values, number, (3,)).tolist() == [0.5, 0, 0]
    assert _behaviour_rows(values, binary, ()).tolist() == [1]
    assert _behaviour_rows(np.array([2.0, 3.0], np.float32), number, (2,)).tolist() == [2, 2, 3, 3]
    assert _behaviour_rows(np.arange(6, dtype=np.float32)[None], classes, (3,)).tolist() == [1, 3, 5]
    with pytest.raises(DataError, match="do not lie on one another"):
        _behaviour_rows(values, binary, (2, 2))
    rows, shape = unit_rows(torch.arange(24.0).reshape(1, 2, 3, 4), 1)
    assert (shape, rows.shape) == ((3, 4), (12, 2))
    assert rows[:, 1].tolist() == list(range(12, 24))


@pytest.mark.parametrize("name", FAMILIES)
def test_families_are_described_and_offer_what_fits(name):
    entry = FAMILIES[name]
    assert entry.label
    assert entry.help.endswith(".")
    datasets = [load_dataset("digits", "test", 40), load_dataset("sql", "test", 40)]
    offered = [library(data, [name]) for data in datasets]
    assert any(offered)
    for data, hypotheses in zip(datasets, offered, strict=True):
        records = Records(data, np.arange(10))
        names = [one.name for one in hypotheses]
        assert len(set(names)) == len(names)
        for one in hypotheses:
            assert one.family == name
            assert one(records).shape in ((10,), (10, *records.symbols))


def test_no_two_hypotheses_share_a_name():
    for name in ("digits", "sql"):
        names = [one.name for one in library(load_dataset(name, "test", 40))]
        assert len(set(names)) == len(names)
    with pytest.raises(SettingError, match="Unknown family"):
        library(load_dataset("digits", "test", 4), ["nothing"])
