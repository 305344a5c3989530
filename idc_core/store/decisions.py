"""What a person decided on the uncovered cells of a grid, and on inputs made for them: kept until it is taken back.

In the folder "decisions" of IDC_HOME, or of the platform's cache folder, one small JSON file per grid and owner.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Literal

from idc_core.errors import DataError
from idc_core.guarded import damaged, seal_text
from idc_core.store.documents import Documents, read_sealed

Verdict = Literal["not needed", "later"]
"""What can be decided on a cell itself; it counts as accepted where one of its inputs is."""


@dataclass(frozen=True)
class Decisions:
    """Decisions on cells, by their names such as ``2-1-0``, and on inputs, by their digests.

    An input that was accepted has its class, or its value in a regression; one that was rejected None.
    """

    cells: dict[str, Verdict] = field(default_factory=dict)
    inputs: dict[str, int | float | None] = field(default_factory=dict)
    owner: ClassVar[str] = ""
    shared: ClassVar[bool] = False

    def on_cell(self, cell: str, verdict: Verdict | None) -> Decisions:
        """Decide on a cell; None takes its decision back."""
        others = {name: held for name, held in self.cells.items() if name != cell}
        return replace(self, cells=others if verdict is None else {**others, cell: verdict})

    def on_inputs(self, decided: dict[str, int | float | None]) -> Decisions:
        """Accept inputs with their labels, or reject them by None."""
        return replace(self, inputs={**self.inputs, **decided})

    def forget(self, cell: str, inputs: tuple[str, ...]) -> Decisions:
        """Take back what was decided on a cell and on its inputs."""
        left = {name: label for name, label in self.inputs.items() if name not in inputs}
        return replace(self.on_cell(cell, None), inputs=left)


def _read(path: Path) -> Decisions:
    """Read decisions; `DataError` where the file holds what this program does not write."""
    held = read_sealed(path, f"The decisions {path}", Decisions)
    fits = all(re.fullmatch(r"\d+(-\d+)*", cell) for cell in held.cells)
    if not fits or not all(re.fullmatch("[0-9a-f]{16}", name) for name in held.inputs):
        raise DataError(f"The decisions {path} were not written by this program, or were changed: delete the file.")
    return held


DECISIONS = Documents(
    "decisions", "[0-9a-f]{32}(-[0-9a-f]{1,64})?", _read, unknown="There are no such decisions.", what="The decision"
)
"""The decisions that are kept."""


def grid_id(*depends: object) -> str:
    """Return what names a grid, 32 hexadecimal digits, from everything that its cells depend on."""
    return hashlib.sha256(repr(depends).encode()).hexdigest()[:32]


def decided(grid: str, owner: str = "") -> Decisions:
    """Return what an owner decided on a grid, by default everybody; what is damaged is logged, as if not decided."""
    name = _name(grid, owner)
    if name in DECISIONS.listed():
        return DECISIONS.find(name)
    if (reason := DECISIONS.damaged().get(name)) is not None:
        damaged(DECISIONS.path(name), DataError(reason))
    return Decisions()


def decide(grid: str, decisions: Decisions, owner: str = "") -> None:
    """Keep all that an owner decided on a grid, in place of what was kept before.

    Raises
    ------
    SettingError
        If `grid` is no id of one.
    DataError
        If it cannot be written.
    """
    if decisions == Decisions():
        DECISIONS.delete(_name(grid, owner), missing_ok=True)
    else:
        DECISIONS.write(_name(grid, owner), seal_text(json.dumps(asdict(decisions))))


def _name(grid: str, owner: str) -> str:
    return f"{grid}-{owner}" if owner else grid
