"""The source as text. Which package may import which is in pyproject.toml, and checked by `make lint`."""

import ast
from functools import cache
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CODE = ("idc_core", "studio", "pages")


@cache
def modules():
    """Every module by its dotted name."""
    files = [ROOT / "app.py", *(file for folder in CODE for file in sorted((ROOT / folder).rglob("*.py")))]
    return {".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file for file in files}


def test_no_string_stands_alone():
    """A string is a docstring, or says what the assignment before it is; anything else is a text torn in two."""
    torn = []
    for name, file in modules().items():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            for part in ("body", "orelse", "finalbody"):
                body = getattr(node, part, None)
                for before, after in pairwise(body) if isinstance(body, list) else ():
                    said = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant | ast.JoinedStr)
                    if said and not isinstance(before, ast.Assign | ast.AnnAssign):
                        torn.append(f"{name}:{after.lineno}")
    assert torn == []
