"""Names of a package that are imported when they are first used, so that what needs none of them starts at once."""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path


def lazy(package: str, file: str, **others: str) -> tuple[list[str], Callable[[str], object]]:
    """Return the `__all__` and the `__getattr__` of a package, from what its `__init__` imports for type checkers.

    Parameters
    ----------
    package, file : str
        The `__name__` and `__file__` of the package. Its names are those that the file imports as themselves,
        ``from home import name as name``, as type checkers take them, too.
    **others : str
        Further names, and the modules that have them.
    """
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    homes = {name.asname: node.module for node in imports if node.module for name in node.names if name.asname} | others

    def find(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if homes[name] == package:
            return import_module(f"{package}.{name}")
        return getattr(import_module(homes[name]), name)

    return sorted(homes), find
