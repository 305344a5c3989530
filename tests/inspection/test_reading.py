"""What was stopped goes on, more records are read after fewer, nothing is read twice, and no number is another."""

import numpy as np
import pytest

from idc_core.errors import CancelledError
from idc_core.inspection import Reading, inspect
from idc_core.inspection.extraction import _block_ends
from idc_core.tracing import batching
from tests.inspection.planted import Table, is_letter, letter_class, noisy_table, texts

COUNT = 2200
DATA = texts(COUNT, 6, seed=2)
HYPOTHESES = [is_letter(4), is_letter(1, 2), letter_class()]
MEASURES = ["pearson", "spearman", "information", "iou", "logistic"]


class Counted(Table):
    """Notes which records go through it; one by itself is the engine trying the network out."""

    def __init__(self) -> None:
        super().__init__(noisy_table())
        self.read: list[bytes] = []
        self.idc_code = ""  # what it notes is no part of what it computes
        self.register_forward_hook(lambda _, given, __: self.note(given[0]))

    def note(self, inputs) -> None:
        if len(inputs) > 1:
            self.read += [row.tobytes() for row in inputs.numpy()]


def run(model, reading=None, stop=None, **more):
    """Inspect; stop when so many records are read."""
    settings = {"measures": MEASURES, "layers": ["units"], "hypotheses": HYPOTHESES, "passes": 2, **more}
    progress = None if stop is None else lambda done, total, label: label != "records read" or done < stop
    return inspect(model, DATA, reading=reading, on_progress=progress, **settings)


def same(one, other) -> bool:
    """Whether two tables are the same, bit for bit."""
    assert len(one) == len(other) > 0
    for name, values in one.table.items():
        np.testing.assert_array_equal(values, other.table[name], err_msg=name)
    for place, values in one.units.items():
        np.testing.assert_array_equal(values, other.units[place])
    return True


@pytest.fixture(scope="module")
def whole():
    return {error: run(Counted(), error=error) for error in (None, 0.1)}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    monkeypatch.setattr(batching, "_must_run_alone", lambda *_: False)  # which runs some records beside one another
    return tmp_path


@pytest.mark.parametrize(
    ("stops", "error"),
    [
        ((300,), 0.1),
        *(pytest.param(stops, None, marks=pytest.mark.slow) for stops in ((1,), (1024, 1025, 2000), (COUNT,))),
    ],
)
def test_a_stopped_inspection_goes_on_and_reads_no_block_again(whole, home, stops, error):
    model, reading = Counted(), Reading()
    for stop in stops:
        with pytest.raises(CancelledError):
            run(model, reading, stop, error=error)
        assert len(model.read) == reading.records >= min(stop, 1024), "a whole number of blocks"
        for part in reading.parts.values():
            assert part.stream.store.in_memory == 0, "what waits does so on disk"
    found = run(model, reading, error=error)
    assert same(found, whole[error])
    assert len(model.read) == reading.records, "records that were read twice"
    assert list(home.rglob("*.npy"))
    reading.close()
    assert not list(home.rglob("*.npy"))
    assert (reading.parts, reading.records) == ({}, 0)


def test_single_measures_alone_keep_no_blocks(whole, home):
    model, reading = Counted(), Reading()
    with pytest.raises(CancelledError):
        run(model, reading, 1500, measures=MEASURES[:4])
    assert not list(home.rglob("*.npy"))
    found = run(model, reading, measures=MEASURES[:4])
    assert same(found, run(Counted(), measures=MEASURES[:4]))
    assert len(model.read) == COUNT


@pytest.mark.slow
def test_more_records_are_read_after_fewer(whole):
    model, reading = Counted(), Reading()
    for records in (1024, 2048, None):
        found = run(model, reading, records=records)
        assert same(found, whole[None] if records is None else run(Counted(), records=records))
        assert found.table["records"].max() == (records or COUNT)
        assert len(model.read) == (records or COUNT), "records that were read twice"


def test_more_are_asked_for_in_the_middle(whole):
    model, reading = Counted(), Reading()
    with pytest.raises(CancelledError):
        run(model, reading, 1100, records=2048)
    assert same(run(model, reading), whole[None])
    assert len(model.read) == COUNT


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"records": 256}, {"records": 1024}),  # other blocks, other thresholds
        ({"records": 1024}, {"records": 256}),
        ({"records": 1500}, {"records": 2048}),  # the last block was not whole
        ({"records": 1024, "error": 0.05}, {"records": 2048, "error": 0.05}),  # what was sure enough would not be
        ({"seed": 1}, {}),
        ({"hypotheses": HYPOTHESES[:2]}, {}),
        ({"measures": ["pearson"]}, {}),
        ({"confidence": 0.9}, {}),
    ],
)
def test_anything_else_begins_anew(before, after):
    reading = Reading()
    before, after = ({"measures": ["spearman"], **given} for given in (before, after))
    run(Counted(), reading, **before)
    model = Counted()
    found = run(model, reading, **after)
    assert same(found, run(Counted(), **after))
    assert len(model.read) == reading.records


def test_what_failed_is_not_gone_on_with():
    reading = Reading()

    def fail(found):
        raise ValueError("drawing failed")

    with pytest.raises(ValueError, match="drawing"):
        run(Counted(), reading, on_scores=fail)
    assert reading.parts == {}


@pytest.mark.parametrize("places", [1, 30, 784])
def test_blocks_of_fewer_records_are_the_first_of_more(places):
    whole = _block_ends(70_000, places)
    for count in (1024, 2048, 4096):
        ends = _block_ends(count, places)
        assert ends[-1] == count
        np.testing.assert_array_equal(ends, whole[: len(ends)])
    assert len(_block_ends(10, places)) == 10
    assert 16 <= len(_block_ends(100, places)) <= 100
    assert np.diff(whole).max() * places <= max(4096, 16 * places)
