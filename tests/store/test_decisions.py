"""Decisions on cells and made inputs: kept per grid and owner, taken back, and damaged files are as if not decided."""

import pytest

from idc_core.errors import SettingError
from idc_core.store.decisions import DECISIONS, Decisions, decide, decided, grid_id

GRID = grid_id("network", "training", "tests", "fc2", 6)


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))


def test_decisions_are_found_again_by_grid_and_owner():
    mine = Decisions().on_cell("0-1", "later").on_inputs({"a" * 16: 3, "b" * 16: None, "c" * 16: -0.25})
    decide(GRID, mine)
    decide(GRID, Decisions().on_cell("1-1", "not needed"), "ab12")
    assert decided(GRID) == mine
    assert decided(GRID, "ab12").cells == {"1-1": "not needed"}
    assert decided(GRID, "cd34") == Decisions()
    assert decided(grid_id("another")) == Decisions()


def test_what_is_taken_back_leaves_nothing_behind():
    held = Decisions().on_cell("0-1", "later").on_inputs({"a" * 16: 3, "b" * 16: None})
    decide(GRID, held)
    rest = held.forget("0-1", ("a" * 16, "b" * 16))
    assert rest == Decisions()
    decide(GRID, rest)
    assert not list(DECISIONS.folder.iterdir())
    decide(GRID, rest)


def test_another_verdict_replaces_the_first():
    held = Decisions().on_cell("0-1", "later").on_cell("0-1", "not needed").on_cell("2-2", "later")
    assert held.cells == {"0-1": "not needed", "2-2": "later"}
    assert held.on_cell("2-2", None).cells == {"0-1": "not needed"}


@pytest.mark.parametrize("change", [(b"later", b"never"), (b"0-1", b"0-x")])
def test_a_damaged_file_is_as_if_nothing_was_decided(change, caplog):
    decide(GRID, Decisions().on_cell("0-1", "later"))
    path = DECISIONS.path(GRID)
    path.write_bytes(path.read_bytes().replace(*change))
    assert decided(GRID) == Decisions()
    assert str(path) in caplog.text


def test_a_grid_has_an_id():
    with pytest.raises(SettingError):
        decide("../marks/x", Decisions().on_cell("0", "later"))
