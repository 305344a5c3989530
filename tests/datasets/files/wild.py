"""Files as other people have them: what is in each, and the lines that the sentences about it offer."""

import shlex
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from idc_core.cli import _make_parser
from idc_core.cli.own_options import _own_files
from idc_core.datasets.preparation import Preparation
from idc_core.errors import IdcError
from tests.datasets.files.reading import both

KINDS = ("ash", "elm", "oak")
TREES = pd.DataFrame({
    "size": [n / 4 + 0.5 for n in range(18)],
    "width": [3 * n - 20 for n in range(18)],
    "kind": [KINDS[n % 3] for n in range(18)],
})  # fmt: skip
"""What most of the tables hold."""


def points(table=TREES, kind="kind"):
    """The rows of a table as pairs that can be compared: inputs and target."""
    inputs = table.drop(columns=kind).to_numpy(np.float32)
    return sorted((tuple(row.tolist()), target) for row, target in zip(inputs, table[kind], strict=True))


@dataclass(frozen=True)
class Wild:
    """One file: its name, its content or what writes it, the lines that its sentences offer, and what it means.

    `expected` is every item as (inputs, class or number), in any order; `names` are the names of its features.
    """

    name: str
    content: bytes | str | Callable[[Path], Any]
    lines: tuple[str, ...] = ()
    expected: Any = None
    names: tuple[str, ...] = ("size", "width")
    note: str = ""

    def write(self, folder):
        """Write it into a folder; return its path."""
        path = folder / self.name
        if callable(self.content):
            self.content(path)
        else:
            path.write_bytes(self.content.encode() if isinstance(self.content, str) else self.content)
        return path


def prepared(path, words):
    """Return what options of the command line mean."""
    parsed = _make_parser().parse_args(["analyze", "--data", str(path), *words])
    return vars(_own_files(parsed).options.prepared(None) or Preparation())


def follow(file, folder, python):
    """Read a file as its sentences say: return its splits after their lines have been followed."""
    path, words = file.write(folder), []
    for line in file.lines:
        with pytest.raises(IdcError) as caught:
            both(path, **prepared(path, words))
        said = str(caught.value)
        assert line in said, said
        assert said.endswith("."), said
        assert len(said) < 2_000, said
        if line.startswith("--"):
            words += shlex.split(line)
            continue
        before = set(folder.iterdir())
        if line.startswith("python -m zipfile "):
            zipfile.main(shlex.split(line)[3:])
        elif line.startswith("mv "):
            path.rename(folder / shlex.split(line)[2])
        else:
            exec(said[said.index(line) : -1], dict(python))  # noqa: S102 (what a sentence says is done)
        (path,) = set(folder.iterdir()) - before
    return both(path, **prepared(path, words))


def items(*splits):
    """All items of both splits as pairs that can be compared."""
    return sorted(
        (
            one.texts[at] if one.texts else tuple(np.ravel(one.inputs[at]).tolist()),
            one.class_names[one.targets[at]] if one.class_names else float(one.targets[at]),
        )
        for one in splits
        for at in range(len(one))
    )
