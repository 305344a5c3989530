"""Tables for spreadsheets hold no formula of somebody else's, whichever command or page writes them."""

import ast
import csv
import io
from pathlib import Path

import pandas as pd
import pytest

from idc_core.base import spreadsheets
from idc_core.cli.console import comma_separated

ROOT = Path(__file__).resolve().parents[2]
FORMULAS = ["=1+1", "+cmd|' /c calc'!A1", "@SUM(A1)", "-2+3", "\t=1", "=cmd|' /c calc'!A1"]
OTHERS = ["cat", "-0.5", "+1e-3", "a=b", ""]


@pytest.mark.parametrize("write", [comma_separated, lambda rows: spreadsheets.csv(pd.DataFrame(rows))])
def test_names_of_others_are_no_formulas(write):
    names = FORMULAS + OTHERS
    rows = list(csv.DictReader(io.StringIO(write([{"=name": name, "score": -0.5} for name in names]))))
    assert [row["'=name"] for row in rows] == [f"'{name}" for name in FORMULAS] + OTHERS
    assert {row["score"] for row in rows} == {"-0.5"}


def test_nothing_else_writes_tables():
    writers = {"idc_core/base/spreadsheets.py", "idc_core/cli/console.py"}
    found, names = set(), ("to_csv", "DictWriter", "writer", "savetxt")
    for folder in ("idc_core", "studio", "pages"):
        for file in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                is_writer = isinstance(node, ast.Attribute) and node.attr in names
                if is_writer and (node.attr != "writer" or getattr(node.value, "id", "") == "csv"):
                    found.add(file.relative_to(ROOT).as_posix())
    assert found == writers
