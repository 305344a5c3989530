"""Which package may import which: the table in docs/ARCHITECTURE.md against the imports in the code."""

import ast
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CODE = ("idc_core", "studio", "pages")


@cache
def modules():
    """Every module by its dotted name."""
    files = [ROOT / "app.py", *(file for folder in CODE for file in sorted((ROOT / folder).rglob("*.py")))]
    return {".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file for file in files}


def package(module):
    """The package of a module: one folder of the engine or of the studio; all pages are one."""
    first, *rest = module.split(".")
    return first if first in ("app", "pages") or not rest else f"{first}.{rest[0]}"


@cache
def imported(file):
    """Modules that a module imports, inside functions and for the type checker too."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            wholes = (f"{node.module}.{one.name}" for one in node.names)
            found |= {whole if whole in modules() else node.module for whole in wholes}
    return found


def actual():
    """The packages that each package imports."""
    known = modules()
    found = {package(module): set() for module in known}
    for module, file in known.items():
        for target in imported(file):
            if target in known and package(target) != package(module):
                found[package(module)].add(package(target))
    return found


def documented():
    """The rows of the table: package, and the packages it imports, in the order of the document."""
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.split("| package | imports |", 1)[1].split("\n\n", 1)[0]
    rows = re.findall(r"^\| `([\w.]+)` \| (.*) \|$", table, re.MULTILINE)
    return {name: set(re.findall(r"`([\w.]+)`", names)) for name, names in rows}


def test_the_table_is_what_the_code_imports():
    found, said = actual(), documented()
    assert set(said) == set(found)
    wrong = {name: (sorted(found[name] - said[name]), sorted(said[name] - found[name])) for name in found}
    assert not {name: both for name, both in wrong.items() if any(both)}, (
        "(imported and not said, said and not imported)"
    )


def test_packages_import_only_packages_above_them_in_the_table():
    rows = list(documented().items())
    for place, (name, targets) in enumerate(rows):
        below = targets - {above for above, _ in rows[:place]}
        assert not below, f"{name} imports {sorted(below)}, which the table lists after it"


@pytest.mark.parametrize("forbidden", ["streamlit", "studio", "pages"])
def test_the_engine_never_imports(forbidden):
    for module, file in modules().items():
        if module.startswith("idc_core"):
            assert forbidden not in {target.split(".")[0] for target in imported(file)}, module


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
