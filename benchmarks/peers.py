"""Peers in an environment of their own, `.venv-peers`: a script times each in a process that holds nothing else."""

import importlib.machinery
import json
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PYTHON = ROOT / ".venv-peers" / "bin" / "python"


class PeerError(Exception):
    """A peer did not run; the message is its last line."""


def enter(name: str) -> None:
    """Enter a package so that its modules can be imported while its own code does not run, nor what it imports."""
    above = sys.modules.get(name.rpartition(".")[0])
    found = importlib.machinery.PathFinder.find_spec(name, above and above.__path__)
    if found is None or found.submodule_search_locations is None:
        sys.exit(f"There is no package {name} here.")
    package = types.ModuleType(name)
    package.__path__ = list(found.submodule_search_locations)
    sys.modules[name] = package


def ask(script: str, *arguments: str) -> Any:
    """Run a script of this folder's `peer_*` in the environment of the peers, and return what it prints as JSON.

    Raises
    ------
    PeerError
        If the peer does not run.
    """
    found = subprocess.run(
        [PYTHON, "-m", f"benchmarks.{script}", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode:
        raise PeerError((found.stderr.strip().splitlines() or ["it ended without a word"])[-1])
    return json.loads(found.stdout.splitlines()[-1])
