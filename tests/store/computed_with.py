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

from idc_core.store.versions import _OTHERS, _VERSIONS

ROOT = Path(__file__).parents[2]
WRITTEN = Path(__file__).with_suffix(".json")
ASIDE = ("idc_core.cli", "idc_core.figures", "idc_core.report")
"""Beginnings of modules that show numbers and make none."""


@cache
def modules() -> dict[str, str]:
    """Return the source of the engine's and studio's modules by their names, without comments and docstrings."""
    return {module: _without(text, _tree(module)) for module, text in _texts().items()}


@cache
def _texts() -> dict[str, str]:
    paths = [path for package in ("idc_core", "studio") for path in sorted((ROOT / package).rglob("*.py"))]
    return {_name(path): path.read_text(encoding="utf-8") for path in paths}


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(_texts()[module])


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def code_of(text: str) -> str:
    """Take comments, empty lines, and texts that stand by themselves out of a source; the same in every Python."""
    return _without(text, ast.parse(text))


def _without(text: str, tree: ast.Module) -> str:
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline) if "#" in text else ():
        if token.type == tokenize.COMMENT:
            lines[token.start[0] - 1] = lines[token.start[0] - 1][: token.start[1]]
    for node in ast.walk(tree):
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
        for kind in _asked_for(module):
            found.setdefault(kind, set()).add(module)
    return dict(sorted(found.items()))


def _asked_for(module: str) -> set[str]:
    """Return the kinds that a module describes or plans, and those that it takes from another module."""
    texts = {
        one.targets[0].id: one.value.value
        for one in _tree(module).body
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name) and isinstance(one.value, ast.Constant)
    }
    found = set()
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.ImportFrom) and node.module in modules():
            described = _described(node.module)
            found |= {described[one.name] for one in node.names if one.name in described}
        elif isinstance(node, ast.Call) and node.args:
            first = node.args[0]
            if _called(node) in ("Planned", "store"):
                found.add(texts.get(first.id) if isinstance(first, ast.Name) else getattr(first, "value", None))
            elif _called(node) == "JobKind":
                found.add(_kept(node))
    return {kind for kind in found if isinstance(kind, str)}


@cache
def _described(module: str) -> dict[str, str | None]:
    """Return the kinds of jobs that a module describes under names of its own."""
    return {
        one.targets[0].id: _kept(one.value)
        for one in _tree(module).body
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call) and _called(one.value) == "JobKind"
    }


def _kept(call: ast.Call) -> str | None:
    """Return the kind that a `JobKind` describes; None where its results are not kept, or its name is another's."""
    is_kept = all(one.arg != "lives" for one in call.keywords)
    return getattr(call.args[0], "value", None) if is_kept else None


def _called(call: ast.Call) -> str:
    of = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    return getattr(of, "id", "")


@cache
def _digest(module: str) -> str:
    return hashlib.sha256(modules()[module].encode()).hexdigest()


def computed_with() -> dict[str, dict[str, str | int]]:
    """Return the version of each kind, and a digest of what it computes with."""
    return {
        kind: {
            "version": _VERSIONS.get(kind, _OTHERS),
            "modules": hashlib.sha256(" ".join(map(_digest, sorted(closure(roots)))).encode()).hexdigest()[:16],
        }
        for kind, roots in kinds().items()
    }


if __name__ == "__main__":
    WRITTEN.write_text(json.dumps(computed_with(), indent=1) + "\n", encoding="utf-8")
