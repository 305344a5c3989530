"""A copy of a toy in the folder of its kind is found there, under another name and with no other change."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMES = {"attack": "toy-attack", "constraint": "negative", "criterion": "toy", "family": "toy-family"}
NAMES |= {"limit": "toy-confidence", "objective": "probability", "transform": "toy-transform"}
HOMES = {
    "attack": "perturbation/attacks/mine.py",
    "constraint": "generation/my_constraint.py",
    "criterion": "coverage/mine.py",
    "family": "inspection/families/mine.py",
    "limit": "gate/on_mine.py",
    "objective": "generation/my_objective.py",
    "transform": "perturbation/mine.py",
}


@pytest.mark.slow
def test_files_in_their_folders_are_found(tmp_path):
    shutil.copytree(ROOT / "idc_core", tmp_path / "idc_core", ignore=shutil.ignore_patterns("__pycache__"))
    for kind, home in HOMES.items():
        toy = (ROOT / "tests" / "registries" / "toys" / f"{kind}.py").read_text(encoding="utf-8")
        assert f'"{NAMES[kind]}"' in toy
        (tmp_path / "idc_core" / home).write_text(toy.replace(f'"{NAMES[kind]}"', f'"my{kind}"'), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "idc_core", "list"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    listed = {line.split()[0] for line in done.stdout.splitlines() if line}
    assert {f"my{kind}" for kind in HOMES} - listed == set(), done.stderr
