"""Which program makes a result: results of another edition are other results."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path

from idc_core.store.values import PACKAGES

_LIBRARIES = ("captum", "numpy", "scikit-learn", "scipy", "torch", "umap-learn")
"""Libraries whose versions can change numbers."""


@cache
def edition() -> str:
    """Return 16 hexadecimal digits that change with the source of the program and the libraries it computes with."""
    digest = hashlib.blake2b(digest_size=8)
    root = Path(__file__).parents[2]
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            digest.update(f"{path.relative_to(root).as_posix()}\n".encode())
            digest.update(hashlib.blake2b(path.read_bytes()).digest())
    for library in _LIBRARIES:
        digest.update(f"{library} {version(library)}\n".encode())
    return digest.hexdigest()
