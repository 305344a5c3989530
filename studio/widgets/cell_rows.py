"""The cells of a grid as rows, for its file: what reaches each, and its tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from idc_core.coverage.cell_table import CellTable
from idc_core.coverage.reach import CellState, Reach
from studio.text import cell_name

if TYPE_CHECKING:
    import pandas as pd


def cell_rows(table: CellTable, reach: Reach | None, class_names: Sequence[str] = ()) -> pd.DataFrame:
    """Return every covered cell with its tests, and every other cell that something else reaches."""
    import pandas as pd  # what is written above the grid does not wait for it

    states = [str(CellState.COVERED)] * table.covered
    tested = pd.DataFrame(
        {
            "cell": [cell_name(cell) for cell in table.cells.tolist()],
            "state": states,
            "tests": table.counts,
            "misclassified": table.wrong,
            **{f"class_{name}": table.by_class[:, i] for i, name in enumerate(class_names)},
        }
    )
    if reach is None or not len(reach.cells):
        return tested
    others = pd.DataFrame({"cell": [cell_name(cell) for cell in reach.cells.tolist()], "state": map(str, reach.states)})
    return pd.concat([tested, others.reindex(columns=tested.columns, fill_value=0)], ignore_index=True)
