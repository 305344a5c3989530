"""What each kind of kept result computes with: `make versions` writes it down.

A kind computes with the modules that name it and with all of the engine that they import, at once or later, their
comments and docstrings left out. Where that has changed and the numbers of the kind can have, its version in
`idc_core/store/versions.py` is raised; where they cannot, as after a renaming, it stays.
"""

import ast
import hashlib
import io
import json
import tokenize
from functools import cache
from pathlib import Path

from idc_core.store.versions import VERSIONS
from studio.engine.tasks import LIVE

ROOT = Path(__file__).parents[2]
WRITTEN = Path(__file__).with_suffix(".json")
ASKED = {"waiting", "Waiting", "shelf", "jobs", "store"}
"""What is asked for a result of a kind, or makes what is asked; its methods take the kind first."""
ASIDE = ("idc_core.cli", "idc_core.figures", "idc_core.report")
"""Beginnings of modules that show numbers and make none."""


@cache
def modules() -> dict[str, str]:
    """Return the source of the engine's and studio's modules by their names, without comments and docstrings."""
    paths = [path for package in ("idc_core", "studio") for path in sorted((ROOT / package).rglob("*.py"))]
    return {_name(path): code_of(path.read_text(encoding="utf-8")) for path in paths}


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(modules()[module])


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def code_of(text: str) -> str:
    """Take comments, empty lines, and texts that stand by themselves out of a source; the same in every Python."""
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline) if "#" in text else ():
        if token.type == tokenize.COMMENT:
            lines[token.start[0] - 1] = lines[token.start[0] - 1][: token.start[1]]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            first = lines[node.lineno - 1][: node.col_offset]
            lines[node.lineno - 1 : node.end_lineno] = [f"{first}..."] + [""] * ((node.end_lineno or 0) - node.lineno)
    return "\n".join(line.rstrip() for line in lines if line.strip())


@cache
def imported(module: str) -> frozenset[str]:
    """Return the engine's modules that a module imports anywhere, or names as a text, as lazy imports do."""
    names = set()
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.Import):
            names |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
        elif "iter_modules" in (getattr(node, "attr", ""), getattr(node, "id", "")):  # all of its folder
            names |= {name for name in modules() if name.rpartition(".")[0] == module}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("idc_core."):
            names.add(node.value.partition(":")[0])
    return frozenset(name for name in names if name in modules() and name.startswith("idc_core."))


def closure(roots: set[str]) -> set[str]:
    """Return modules with all of the engine that they import, however far away."""
    found, left = set(), list(roots)
    while left:
        if (module := left.pop()) not in found:
            found.add(module)
            left.extend(one for one in imported(module) if not one.startswith(ASIDE))
    return found


def kinds() -> dict[str, set[str]]:
    """Return the kinds of kept results, and the modules that ask for each or plan it."""
    found: dict[str, set[str]] = {}
    for module in modules():
        for kind in _asked_for(_tree(module)) - LIVE:
            found.setdefault(kind, set()).add(module)
    return dict(sorted(found.items()))


def _asked_for(tree: ast.Module) -> set[str]:
    known = {
        one.targets[0].id: one.value.value
        for one in tree.body
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name) and isinstance(one.value, ast.Constant)
    }
    found = set()
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and call.args and _is_of_a_kind(call.func):
            first = call.args[0]
            found.add(known.get(first.id) if isinstance(first, ast.Name) else getattr(first, "value", None))
    return {kind for kind in found if isinstance(kind, str)}


def _is_of_a_kind(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        of = function.value.func if isinstance(function.value, ast.Call) else function.value
        return getattr(of, "attr", getattr(of, "id", "")) in ASKED
    return getattr(function, "id", "") == "Planned"


@cache
def _digest(module: str) -> str:
    return hashlib.sha256(modules()[module].encode()).hexdigest()


def computed_with() -> dict[str, dict[str, str | int]]:
    """Return the version of each kind, and a digest of what it computes with."""
    return {
        kind: {
            "version": VERSIONS.get(kind, 1),
            "modules": hashlib.sha256(" ".join(map(_digest, sorted(closure(roots)))).encode()).hexdigest()[:16],
        }
        for kind, roots in kinds().items()
    }


if __name__ == "__main__":
    WRITTEN.write_text(json.dumps(computed_with(), indent=1) + "\n", encoding="utf-8")
