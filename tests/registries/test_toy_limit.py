"""A kind of limit in one file outside the package: a file names it, and every report has it."""

import runpy
from pathlib import Path

import pytest

from idc_core.cli import main
from idc_core.gate import LIMITS

NAME = "toy-confidence"
TEXT = '[[check]]\nmodel = "lenet1-digits"\nlimit_test = 30\n[[check.limit]]\nkind = "toy-confidence"\n'


@pytest.fixture(autouse=True)
def toy():
    runpy.run_path(str(Path(__file__).parent / "toys" / "limit.py"))
    yield
    del LIMITS[NAME]


@pytest.mark.parametrize(
    ("bound", "status", "said"),
    [
        ("at_least = 0.5", 0, "1 of 1 limits kept"),
        ("at_least = 1", 1, "below its minimum of 1."),
        ("", 2, "expected at_least, may_fall_by, or both"),
    ],
)
def test_a_file_names_it(tmp_path, capsys, bound, status, said):
    file = tmp_path / "idc.toml"
    file.write_text(f"{TEXT}{bound}\n", encoding="utf-8")
    assert main(["check", str(file), "--junit", str(tmp_path / "idc.xml")]) == status
    output = capsys.readouterr()
    assert said in output.out + output.err
    if status < 2:
        assert '<testcase classname="lenet1-digits" name="confidence at least ' in (tmp_path / "idc.xml").read_text()
