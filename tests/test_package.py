"""The package: what it needs, what is in the wheel, and that an installed one works in any folder without the clone."""

import ast
import importlib.metadata
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

from packaging.requirements import Requirement

import idc_core

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
CODE = ("idc_core", "studio", "pages")


def pins():
    """Return the pinned version of every package in the requirement files."""
    files = ("requirements.txt", "requirements-cluster.txt", "requirements-login.txt")
    lines = "\n".join((ROOT / file).read_text(encoding="utf-8") for file in files)
    return dict(re.findall(r"^([\w-]+)==([\w.]+)$", lines, re.MULTILINE))


def needed():
    """Return what the package needs, its extras included."""
    return [
        Requirement(line)
        for line in [*PROJECT["project"]["dependencies"], *(one for all_ in EXTRAS.values() for one in all_)]
    ]


@cache
def imported():
    """Return the distributions that the program imports."""
    files = [ROOT / "app.py", *(file for folder in CODE for file in (ROOT / folder).rglob("*.py"))]
    names = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {one.name.split(".")[0] for one in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.split(".")[0])
    homes = importlib.metadata.packages_distributions()
    return {
        homes[name][0].lower().replace("_", "-")
        for name in names - set(sys.stdlib_module_names) - {*CODE}
        if name in homes
    }


BROUGHT = {"protobuf": "onnx", "tokenizers": "transformers", "uvicorn": "streamlit"}
"""Packages that others bring along, which are used only beside them."""


def test_it_needs_what_the_program_imports_and_nothing_else():
    names = {one.name for one in needed()}
    assert imported() - names == set(BROUGHT)
    assert names - imported() == {"authlib"}  # Streamlit's login imports it
    for package, other in BROUGHT.items():
        assert any(Requirement(line).name == package for line in importlib.metadata.requires(other))


def test_every_range_admits_the_pinned_version():
    assert [str(one) for one in needed() if not one.specifier.contains(pins()[one.name])] == []


def test_the_version_stands_once():
    assert PROJECT["project"]["dynamic"] == ["version"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE)[1] == idc_core.__version__


def test_what_is_shipped_lies_at_the_root_of_a_clone():
    from idc_core.files import COMMAND, SHIPPED

    assert (SHIPPED, COMMAND) == (ROOT, "python -m idc_core")
